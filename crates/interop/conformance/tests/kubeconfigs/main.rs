//! Kubeconfigs: the client sends the request that kubectl sends, or refuses the file as kubectl does.
#![allow(clippy::unwrap_used)]

mod server;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore::Cluster;
use longshore_conformance::Kubectl;

use server::{Recorder, Seen, write};

/// The parts of a kubeconfig, with default values that work. `SERVER` and `CA` are replaced.
struct Config {
    cluster: &'static str,
    user: &'static str,
    context: &'static str,
    /// Additional fields, next to the lists.
    rest: &'static str,
}

const PLAIN: Config = Config {
    cluster: "{server: 'SERVER', certificate-authority-data: CA}",
    user: "{token: t}",
    context: "{cluster: c, user: u}",
    rest: "current-context: c",
};

const fn user(user: &'static str) -> Config {
    Config { user, ..PLAIN }
}

const fn cluster(cluster: &'static str) -> Config {
    Config { cluster, ..PLAIN }
}

const fn context(context: &'static str) -> Config {
    Config { context, ..PLAIN }
}

const fn rest(rest: &'static str) -> Config {
    Config { rest, ..PLAIN }
}

const CASES: &[(&str, Config)] = &[
    ("plain", PLAIN),
    ("token file with a newline", user("{tokenFile: token}")),
    ("token file with white space", user("{tokenFile: spaced}")),
    (
        "token and token file",
        user("{token: old, tokenFile: token}"),
    ),
    (
        "token and missing file",
        user("{token: old, tokenFile: missing}"),
    ),
    (
        "token and empty file",
        user("{token: old, tokenFile: empty}"),
    ),
    ("empty token", user("{token: '', tokenFile: token}")),
    ("empty token file", user("{token: t, tokenFile: ''}")),
    ("missing token file", user("{tokenFile: missing}")),
    ("token with a newline", user("{token: \"t\\n\"}")),
    ("user name and password", user("{username: a, password: b}")),
    (
        "empty token, password",
        user("{token: '', username: a, password: b}"),
    ),
    ("user name only", user("{username: a}")),
    (
        "token and password",
        user("{token: t, username: a, password: b}"),
    ),
    (
        "token file and password",
        user("{tokenFile: token, username: a, password: b}"),
    ),
    (
        "empty certificates",
        user("{token: t, client-certificate: '', client-key-data: ''}"),
    ),
    (
        "certificate without key",
        user("{client-certificate: ca.pem}"),
    ),
    (
        "impersonation",
        user("{token: t, as: ann, as-uid: '1', as-groups: [a, b]}"),
    ),
    (
        "empty impersonation",
        user("{token: t, as: '', as-groups: [], as-user-extra: {}}"),
    ),
    (
        "null impersonation",
        user("{token: t, as: null, as-groups: null}"),
    ),
    ("groups without a user", user("{token: t, as-groups: [a]}")),
    (
        "plugin",
        user(
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}",
        ),
    ),
    (
        "plugin, nulls",
        user(
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never, args: null, env: null}}",
        ),
    ),
    (
        "plugin, cluster",
        user(
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: IfAvailable, provideClusterInfo: true}}",
        ),
    ),
    (
        "plugin and token",
        user(
            "{token: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}",
        ),
    ),
    (
        "plugin without version",
        user("{exec: {command: ./plugin, interactiveMode: Never}}"),
    ),
    (
        "plugin without command",
        user("{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}"),
    ),
    (
        "plugin that is missing",
        user(
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./missing, interactiveMode: Never}}",
        ),
    ),
    (
        "authority in a file",
        cluster("{server: 'SERVER', certificate-authority: ca.pem}"),
    ),
    (
        "authority in a file, empty data",
        cluster(
            "{server: 'SERVER', certificate-authority: ca.pem, certificate-authority-data: ''}",
        ),
    ),
    (
        "authority as data, empty file",
        cluster("{server: 'SERVER', certificate-authority: '', certificate-authority-data: CA}"),
    ),
    (
        "authority with line breaks",
        cluster("{server: 'SERVER', certificate-authority-data: \"BROKEN\"}"),
    ),
    (
        "both authorities",
        cluster(
            "{server: 'SERVER', certificate-authority: missing, certificate-authority-data: CA}",
        ),
    ),
    ("no authority", cluster("{server: 'SERVER'}")),
    (
        "missing authority",
        cluster("{server: 'SERVER', certificate-authority: missing}"),
    ),
    (
        "invalid authority",
        cluster("{server: 'SERVER', certificate-authority-data: '!!'}"),
    ),
    (
        "insecure",
        cluster("{server: 'SERVER', insecure-skip-tls-verify: true}"),
    ),
    (
        "insecure, empty authority",
        cluster(
            "{server: 'SERVER', insecure-skip-tls-verify: true, certificate-authority-data: ''}",
        ),
    ),
    (
        "insecure with authority",
        cluster(
            "{server: 'SERVER', insecure-skip-tls-verify: true, certificate-authority-data: CA}",
        ),
    ),
    (
        "server name",
        cluster(
            "{server: 'SERVER', tls-server-name: example.invalid, certificate-authority-data: CA}",
        ),
    ),
    (
        "other server name",
        cluster(
            "{server: 'SERVER', tls-server-name: other.invalid, certificate-authority-data: CA}",
        ),
    ),
    (
        "empty server name",
        cluster("{server: 'SERVER', tls-server-name: '', certificate-authority-data: CA}"),
    ),
    (
        "empty proxy",
        cluster("{server: 'SERVER', proxy-url: '', certificate-authority-data: CA}"),
    ),
    (
        "invalid proxy",
        cluster("{server: 'SERVER', proxy-url: 'ftp://x', certificate-authority-data: CA}"),
    ),
    (
        "slash after the server",
        cluster("{server: 'SERVER/', certificate-authority-data: CA}"),
    ),
    (
        "compression",
        cluster("{server: 'SERVER', disable-compression: true, certificate-authority-data: CA}"),
    ),
    ("no server", cluster("{certificate-authority-data: CA}")),
    (
        "empty namespace",
        context("{cluster: c, user: u, namespace: ''}"),
    ),
    (
        "namespace",
        context("{cluster: c, user: u, namespace: team}"),
    ),
    (
        "null namespace",
        context("{cluster: c, user: u, namespace: null}"),
    ),
    ("unknown cluster", context("{cluster: other, user: u}")),
    ("no cluster", context("{user: u}")),
    ("no context", rest("")),
    ("empty context", rest("current-context: ''")),
    ("unknown context", rest("current-context: other")),
    (
        "kind",
        rest("{apiVersion: v1, kind: Config, current-context: c}"),
    ),
    (
        "other kind",
        rest("{apiVersion: v1, kind: Pod, current-context: c}"),
    ),
    (
        "other version",
        rest("{apiVersion: v2, kind: Config, current-context: c}"),
    ),
    (
        "null preferences",
        rest("{current-context: c, preferences: null, extensions: null}"),
    ),
    ("unknown field", rest("{current-context: c, unknown: 1}")),
];

/// Whole files.
const FILES: &[(&str, &str)] = &[
    (
        "two users of one name",
        "current-context: c\nclusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}]\nusers: [{name: u, user: {token: one}}, {name: u, user: {token: two}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n",
    ),
    (
        "two clusters of one name",
        "current-context: c\nclusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}, {name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: one}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n",
    ),
    (
        "two contexts of one name",
        "current-context: c\nclusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}]\nusers: [{name: u, user: {token: one}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}, {name: c, context: {cluster: c}}]\n",
    ),
    (
        "second document",
        "current-context: c\nclusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}]\nusers: [{name: u, user: {token: one}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n---\ncurrent-context: d\nusers: [{name: u, user: {token: two}}]\n",
    ),
    (
        "null lists",
        "current-context: c\nclusters: null\nusers: null\ncontexts: null\n",
    ),
];

/// Lists of files, with the parts of each.
const LISTS: &[(&str, &[&str])] = &[
    (
        "parts in files",
        &[
            "clusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}]",
            "users: [{name: u, user: {token: t}}]",
            "{contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}",
        ],
    ),
    (
        "the first entry of a name",
        &[
            "users: [{name: u, user: {token: first}}]",
            "{users: [{name: u, user: {token: second, as: ann}}], clusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}], contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}",
        ],
    ),
    (
        "the first current context that is not empty",
        &[
            "current-context: ''",
            "{current-context: c, clusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}], users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}",
            "current-context: other",
        ],
    ),
    (
        "an empty file",
        &[
            "",
            "{current-context: c, clusters: [{name: c, cluster: {server: 'SERVER', certificate-authority-data: CA}}], users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}",
        ],
    ),
];

/// The requested path.
const PROBE: &str = "/probe";

struct Bench {
    recorder: Recorder,
    folder: tempfile::TempDir,
    kubectl: PathBuf,
}

impl Bench {
    async fn new() -> Option<Self> {
        let kubectl = Kubectl::binaries().into_iter().next_back()?;
        let recorder = Recorder::start().await;
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("token", "filetoken\n"),
            ("spaced", " filetoken \r\n"),
            ("empty", ""),
        ] {
            write(&folder.path().join(name), text, 0o600);
        }
        write(&folder.path().join("ca.pem"), &recorder.authority, 0o600);
        let plugin = "#!/bin/sh\necho '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"plugged\"}}'\n";
        write(&folder.path().join("plugin"), plugin, 0o700);
        Some(Self {
            recorder,
            folder,
            kubectl,
        })
    }

    /// Writes a kubeconfig; returns its path.
    fn config(&self, name: &str, text: &str) -> PathBuf {
        let data = STANDARD.encode(&self.recorder.authority);
        let broken: Vec<&str> = data
            .as_bytes()
            .chunks(60)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        let text = text
            .replace(
                "SERVER",
                &format!("https://127.0.0.1:{}", self.recorder.port),
            )
            .replace("BROKEN", &broken.join("\\n"))
            .replace(": CA", &format!(": {data}"));
        let path = self.folder.path().join(name);
        write(&path, &text, 0o600);
        path
    }

    /// The request of kubectl, and the namespace of the context. `None` if it refuses the file.
    fn kubectl(&self, option: Option<&Path>, list: Option<&str>) -> Option<(Seen, String)> {
        let run = |words: &[&str]| {
            let mut command = Command::new(&self.kubectl);
            command
                .env_clear()
                .env("HOME", self.folder.path())
                .stdin(Stdio::null());
            command
                .env("PATH", std::env::var_os("PATH").unwrap())
                .current_dir("/");
            if let Some(list) = list {
                command.env("KUBECONFIG", list);
            }
            if let Some(path) = option {
                command.arg("--kubeconfig").arg(path);
            }
            let output = command.args(words).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        self.recorder.take(PROBE);
        run(&["get", "--raw", PROBE]);
        let seen = self.recorder.take(PROBE)?;
        let namespace = run(&[
            "config",
            "view",
            "--minify",
            "--output",
            "jsonpath={..namespace}",
        ]);
        let namespace = match namespace.is_empty() {
            true => "default".to_owned(),
            false => namespace,
        };
        Some((seen, namespace))
    }

    /// Returns the request of this client and the namespace, or the error.
    async fn own(&self, path: &Path) -> Result<(Seen, String), String> {
        self.recorder.take(PROBE);
        let cluster = Cluster::from_kubeconfig(Some(path), None).await;
        let cluster = cluster.map_err(|error| error.to_string())?;
        let sent = cluster.proxy().get(PROBE, &[]).await;
        sent.map_err(|error| error.to_string())?;
        let seen = self.recorder.take(PROBE).ok_or("no request")?;
        Ok((seen, cluster.default_namespace().to_owned()))
    }
}

fn text(config: &Config) -> String {
    let rest = match config
        .rest
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    {
        Some(fields) => fields.replace(", ", "\n"),
        None => config.rest.to_owned(),
    };
    let Config {
        cluster,
        user,
        context,
        ..
    } = config;
    format!(
        "{rest}\nclusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\ncontexts: [{{name: c, context: {context}}}]\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_selects_the_same_request_as_with_kubectl() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    let of_parts = CASES.iter().map(|(name, config)| (*name, text(config)));
    let whole = FILES.iter().map(|(name, text)| (*name, (*text).to_owned()));
    let (mut accepted, mut wrong) = (0, Vec::new());
    for (name, text) in of_parts.chain(whole) {
        let path = bench.config("config", &text);
        let kubectl = bench.kubectl(Some(&path), None);
        let own = bench.own(&path).await;
        accepted += usize::from(kubectl.is_some());
        if own.as_ref().ok() != kubectl.as_ref() {
            wrong.push(format!("{name}: kubectl {kubectl:?}, the client {own:?}"));
        }
    }
    for (name, texts) in LISTS {
        let paths = texts.iter().enumerate();
        let paths = paths.map(|(n, text)| bench.config(&format!("part{n}"), text));
        let mut paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        // Missing files and empty names are ignored.
        paths.insert(1, "/nowhere/config".to_owned());
        paths.push(String::new());
        let list = paths.join(":");
        let kubectl = bench.kubectl(None, Some(&list));
        let own = bench.own(Path::new(&list)).await;
        accepted += usize::from(kubectl.is_some());
        if own.as_ref().ok() != kubectl.as_ref() {
            wrong.push(format!("{name}: kubectl {kubectl:?}, the client {own:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(accepted > 30, "{accepted}");
}
