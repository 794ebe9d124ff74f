//! A hostile environment: proxies in environment variables, and endless files.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::machine::{Answer, Machine};

/// Every variable from which some client takes a proxy.
const PROXIES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// A proxy that refuses every request and records it.
struct Proxy {
    url: String,
    requests: Arc<Mutex<String>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(String::new()));
        let hearing = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).unwrap_or(0);
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                hearing.lock().unwrap().push_str(&format!("{text}\n"));
                let refusal = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
                let _ = stream.write_all(refusal);
            }
        });
        Self { url, requests }
    }

    fn configure(&self, command: &mut Command) {
        for name in PROXIES {
            command.env(name, &self.url);
        }
    }

    /// The requests since the last call.
    fn requests(&self) -> String {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

fn kubeconfig(server: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: '{server}', insecure-skip-tls-verify: true{more}}}}}]\n\
         users: [{{name: u, user: {{token: s3cret}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    )
}

#[test]
fn requests_to_this_machine_do_not_use_the_proxy() {
    let machine = Machine::new();
    let proxy = Proxy::start();
    let through = |arguments: &[&str]| {
        let mut command = machine.command(arguments);
        proxy.configure(&mut command);
        Answer::new(&command.output().unwrap())
    };
    through(&["up", "--kubeconfig", "../ours"]).expect(0);
    let run = through(&["run", "--", "echo", "it ran"]).expect(0);
    assert!(run.out.contains("it ran"), "{}", run.out);
    let nodes = [
        "get",
        "nodes",
        "--output",
        "name",
        "--kubeconfig",
        "../ours",
    ];
    assert_eq!(through(&nodes).expect(0).out, "node/longshore\n");
    through(&["down", "--force"]).expect(0);
    // A plain URL of this machine: a proxy would see the token.
    machine.write("plain", &kubeconfig("http://127.0.0.1:1", ""));
    through(&["get", "nodes", "--kubeconfig", "plain"]).expect(3);
    machine.write("name", &kubeconfig("https://localhost:1", ""));
    through(&["get", "nodes", "--kubeconfig", "name"]).expect(3);
    assert_eq!(proxy.requests(), "");
}

#[test]
fn other_clusters_are_reached_through_the_proxy_unless_no_proxy_names_them() {
    let machine = Machine::new();
    let proxy = Proxy::start();
    machine.write("far", &kubeconfig("https://cluster.invalid:6443", ""));
    let ask = |file: &str, no_proxy: &str| {
        let mut command = machine.command(&["get", "nodes", "--kubeconfig", file]);
        proxy.configure(&mut command);
        let answer = Answer::new(&command.env("NO_PROXY", no_proxy).output().unwrap());
        (answer.expect(3).err, proxy.requests())
    };
    // The proxy's own address in `NO_PROXY` has no effect.
    for list in [
        "",
        "127.0.0.1",
        "other.invalid,10.0.0.0/8",
        "cluster.invalid:1",
    ] {
        let (_, requests) = ask("far", list);
        assert!(
            requests.starts_with("CONNECT cluster.invalid:6443 "),
            "{list}: {requests}"
        );
        assert!(!requests.contains("s3cret"), "{requests}");
    }
    for list in [
        "cluster.invalid",
        ".invalid",
        "*",
        "cluster.invalid:6443, x",
    ] {
        let (error, requests) = ask("far", list);
        assert_eq!(requests, "", "{list}");
        assert!(error.contains("cluster.invalid"), "{error}");
    }
    // A `proxy-url` in a kubeconfig applies to its cluster, wherever that is.
    let own = format!(", proxy-url: '{}'", proxy.url);
    machine.write("own", &kubeconfig("https://127.0.0.1:1", &own));
    let (_, requests) = ask("own", "");
    assert!(requests.starts_with("CONNECT 127.0.0.1:1 "), "{requests}");
    assert!(!requests.contains("s3cret"), "{requests}");
}

/// Limits the memory of a command.
fn bounded(machine: &Machine, arguments: &[&str], variables: &[(&str, &str)]) -> Answer {
    let script = "ulimit -v 6000000; exec \"$0\" \"$@\"";
    let mut command = machine.shell(script);
    command.arg(env!("CARGO_BIN_EXE_longshore")).args(arguments);
    command.envs(variables.iter().copied());
    let begin = Instant::now();
    let answer = Answer::new(&command.output().unwrap());
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(40), "{arguments:?}: {took:?}");
    answer
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

fn sparse(path: &Path) {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(1 << 40).unwrap();
}

/// A short YAML text that expands to a billion words.
fn bomb() -> String {
    let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (this, before) in ('b'..='k').zip('a'..) {
        let items = vec![format!("*{before}"); 10].join(", ");
        text.push_str(&format!("{this}: &{this} [{items}]\n"));
    }
    text
}

#[test]
fn endless_manifests_are_rejected() {
    let machine = Machine::new();
    let folder = machine.code();
    pipe(&folder.join("pipe"));
    sparse(&folder.join("sparse"));
    machine.write("bomb", &format!("---\n{}", bomb()));
    let large = "it is larger than 67108864 bytes";
    let machine = &machine;
    thread::scope(|scope| {
        for (file, part) in [
            ("pipe", "cannot read pipe: it is a pipe, and nothing"),
            ("sparse", &format!("cannot read sparse: {large}")),
            ("/dev/zero", &format!("cannot read /dev/zero: {large}")),
            ("bomb", "bomb: cannot read the manifest"),
        ] {
            for verb in ["apply", "create", "delete"] {
                let part = part.to_owned();
                scope.spawn(move || {
                    let answer = bounded(machine, &[verb, "-f", file], &[]).expect(2);
                    assert!(answer.err.contains(&part), "{file}: {}", answer.err);
                });
            }
        }
    });
    let mut command = machine.command(&["apply", "-f", "-"]);
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let answer = Answer::new(&command.stdin(endless).output().unwrap()).expect(2);
    let part = format!("cannot read the standard input: {large}");
    assert!(answer.err.contains(&part), "{}", answer.err);
    assert!(!machine.data().join("cluster.log").exists());
}

#[test]
fn endless_kubeconfigs_are_rejected() {
    let machine = Machine::new();
    let folder = machine.code();
    pipe(&folder.join("pipe"));
    pipe(&folder.join("key"));
    sparse(&folder.join("sparse"));
    machine.write("bomb", &bomb());
    machine.write("deep", &format!("clusters: {}", "[".repeat(200_000)));
    let authority = ", certificate-authority: key";
    machine.write("parts", &kubeconfig("https://127.0.0.1:1", authority));
    let (machine, folder) = (&machine, &folder);
    thread::scope(|scope| {
        for (file, part) in [
            ("pipe", "nothing was written to it"),
            ("sparse", "it is larger than 4194304 bytes"),
            ("/dev/zero", "it is larger than 4194304 bytes"),
            ("bomb", "aliases"),
            ("deep", "cannot be used"),
            ("parts", "it is not a regular file"),
        ] {
            scope.spawn(move || {
                let named = bounded(machine, &["get", "nodes", "--kubeconfig", file], &[]);
                let refused = named.expect(3).err;
                assert!(refused.contains(part), "{file}: {refused}");
            });
            scope.spawn(move || {
                // The same file at the default path.
                let path = folder.join(file).display().to_string();
                let listed = bounded(
                    machine,
                    &["get", "nodes", "--context", "c"],
                    &[("KUBECONFIG", &path)],
                );
                let refused = listed.expect(3).err;
                assert!(refused.contains(part), "{file}: {refused}");
            });
        }
    });
}

#[test]
fn endless_settings_and_env_files_are_rejected() {
    let machines: Vec<Machine> = (0..4).map(|_| Machine::new()).collect();
    pipe(&machines[0].code().join("longshore.toml"));
    sparse(&machines[1].code().join("longshore.toml"));
    machines[2].write(
        "longshore.toml",
        &format!("command = {}", "[".repeat(200_000)),
    );
    machines[3].write(
        "longshore.toml",
        "template = 'template.yaml'\ncommand = ['true']\n",
    );
    machines[3].write("template.yaml", &bomb());
    pipe(&machines[3].code().join("pipe.env"));
    sparse(&machines[3].code().join("sparse.env"));
    let run = ["run", "--", "true"];
    let with = |file| ["run", "--env-file", file, "--", "true"];
    let (pipe, sparse, zero) = (with("pipe.env"), with("sparse.env"), with("/dev/zero"));
    thread::scope(|scope| {
        for (machine, arguments, part) in [
            (&machines[0], &run[..], "nothing was written to it"),
            (&machines[1], &run, "it is larger than 4194304 bytes"),
            (&machines[2], &run, "longshore.toml"),
            (&machines[3], &run, "aliases"),
            (&machines[3], &pipe, "nothing was written to it"),
            (&machines[3], &sparse, "it is larger than 1048576 bytes"),
            (&machines[3], &zero, "it is larger than 1048576 bytes"),
        ] {
            scope.spawn(move || {
                let refused = bounded(machine, arguments, &[]).expect(2).err;
                assert!(refused.contains(part), "{arguments:?}: {refused}");
            });
        }
    });
}
