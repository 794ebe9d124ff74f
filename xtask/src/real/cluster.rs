//! etcd and kube-apiserver with ports and a folder of their own, stopped and
//! removed at the end.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use super::{Release, http::ask, shown};
use crate::{
    packages::find,
    run::{Outcome, finish, output, target},
};

/// How long either may take to be ready.
const PATIENCE: Duration = Duration::from_secs(120);
/// The server's one token; it is reached from this machine only.
const TOKEN: &str = "judge";

/// Admission plugins that wait for controllers, or for objects that controllers make.
const WITHOUT: [&str; 4] = [
    "PersistentVolumeClaimResize",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
];

/// A running real cluster: an API server, no controllers, no nodes.
pub(crate) struct Cluster {
    // Stopped in this order.
    apiserver: Running,
    etcd: Running,
    folder: PathBuf,
    /// `Kubernetes v1.20.2`
    pub(crate) version: String,
}

/// A process with a log; dropping it stops it and waits for its end.
struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Cluster {
    /// Starts one and waits until it serves.
    pub(crate) fn start(release: Release) -> Outcome<Self> {
        let program = release.program("kube-apiserver")?;
        for tool in ["openssl", "curl"] {
            if find(tool).is_none() {
                return Err(format!(
                    "{tool} is missing (Debian: apt-get install {tool})"
                ));
            }
        }
        let version = output(Command::new(&program).arg("--version"))?;
        let folder = target().join(format!("real-cluster-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", shown(&folder)))?;
        let started = Self::start_in(&folder, release, &program, version.trim());
        if started.is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        started
    }

    fn start_in(folder: &Path, release: Release, program: &Path, version: &str) -> Outcome<Self> {
        let begin = Instant::now();
        let [client, peer, secure] = free_ports()?;
        let etcd_url = format!("http://127.0.0.1:{client}");
        let peer_url = format!("http://127.0.0.1:{peer}");
        let mut etcd = Command::new(release.program("etcd")?);
        etcd.arg("--data-dir").arg(folder.join("etcd")).args([
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            // Nothing here outlives the run.
            "--unsafe-no-fsync".into(),
        ]);
        let mut etcd = Running::start("etcd", etcd, folder)?;
        etcd.until(|| ask(client, "GET", "/health", "").is_some_and(|body| body.contains("true")))?;
        // The first revisions are forgotten before the server starts, so that
        // there are versions that are too old for all of its caches.
        for _ in 0..9 {
            ask(
                client,
                "POST",
                "/v3/kv/put",
                r#"{"key":"YQ==","value":"YQ=="}"#,
            );
        }
        ask(client, "POST", "/v3/kv/compaction", r#"{"revision":"9"}"#)
            .ok_or("etcd does not forget its first revisions")?;

        let file = |name: &str| folder.join(name);
        let key = file("key.pem");
        let mut openssl = Command::new("openssl");
        openssl.args(["genrsa", "-out"]).arg(&key).arg("2048");
        finish(openssl.stdout(Stdio::null()).stderr(Stdio::null()))?;
        write(
            &file("tokens.csv"),
            &format!("{TOKEN},admin,admin,system:masters\n"),
        )?;
        let mut server = Command::new(program);
        let path = |name: &str, path: PathBuf| format!("--{name}={}", shown(&path));
        server.args([
            format!("--etcd-servers={etcd_url}"),
            path("service-account-key-file", key.clone()),
            path("service-account-signing-key-file", key),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            path("cert-dir", file("certificates")),
            format!("--secure-port={secure}"),
            "--bind-address=127.0.0.1".into(),
            path("token-auth-file", file("tokens.csv")),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            "--allow-privileged=true".into(),
            format!("--disable-admission-plugins={}", WITHOUT.join(",")),
        ]);
        let words = std::iter::once(server.get_program()).chain(server.get_args());
        let words: Vec<_> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let mut apiserver = Running::start("kube-apiserver", server, folder)?;
        let url = format!("https://127.0.0.1:{secure}");
        apiserver.until(|| {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--insecure", "--max-time", "5", "--header"]);
            curl.arg(format!("Authorization: Bearer {TOKEN}"));
            let answer = curl.arg(format!("{url}/readyz")).output();
            answer.is_ok_and(|answer| answer.stdout == b"ok")
        })?;

        let kubeconfig = file("kubeconfig");
        write(&kubeconfig, &kubeconfig_text(&url))?;
        let description = serde_json::json!({
            "kubeconfig": kubeconfig, "etcd": etcd_url, "apiserver": words,
            "old": release == Release::Old,
        });
        write(&file("real.json"), &description.to_string())?;
        println!(
            "{version} with etcd is ready ({:.1} s)",
            begin.elapsed().as_secs_f32()
        );
        Ok(Self {
            apiserver,
            etcd,
            folder: folder.to_owned(),
            version: version.to_owned(),
        })
    }

    /// The file that describes it to the tests.
    pub(crate) fn description(&self) -> PathBuf {
        self.folder.join("real.json")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.apiserver.stop();
        self.etcd.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Running {
    fn start(name: &'static str, mut command: Command, folder: &Path) -> Outcome<Self> {
        let log = folder.join(format!("{name}.log"));
        let open = || File::create(&log).map_err(|error| format!("{}: {error}", shown(&log)));
        let (out, err) = (open()?, open()?);
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        Ok(Self { name, child, log })
    }

    /// Waits until `ready`; fails with the end of the log.
    fn until(&mut self, ready: impl Fn() -> bool) -> Outcome {
        let begin = Instant::now();
        while !ready() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || begin.elapsed() > PATIENCE {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(5).collect();
                let last: Vec<&str> = lines.into_iter().rev().collect();
                let what = ended.map_or("is not ready in time".to_owned(), |status| {
                    format!("ended: {status}")
                });
                return Err(format!(
                    "{} {what}; its log ends:\n{}",
                    self.name,
                    last.join("\n")
                ));
            }
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("{}: {error}", shown(path)))
}

/// Ports that were free a moment ago.
fn free_ports() -> Outcome<[u16; 3]> {
    let bind = || TcpListener::bind(("127.0.0.1", 0));
    let listeners = [bind(), bind(), bind()];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        let address = listener.as_ref().map_err(ToString::to_string);
        let address = address?.local_addr().map_err(|error| error.to_string())?;
        *port = address.port();
    }
    Ok(ports)
}

fn kubeconfig_text(url: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters: [{{name: real, cluster: {{server: \"{url}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: admin, user: {{token: {TOKEN}}}}}]\n\
         contexts: [{{name: real, context: {{cluster: real, user: admin}}}}]\n\
         current-context: real\n"
    )
}
