//! Runs etcd and kube-apiserver on free ports with a temporary folder; stops and removes them at
//! the end.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use super::{Release, http::request, shown};
use crate::{
    packages::find,
    run::{Outcome, output, run_command, target},
};

/// The time to wait until each server is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// The token of the administrator. The server listens on 127.0.0.1 only.
const TOKEN: &str = "admin-token";

/// Admission plugins that depend on controllers, or on objects that controllers create.
const DISABLED_ADMISSION_PLUGINS: [&str; 1] = ["ServiceAccount"];

/// A running API server without controllers and nodes.
pub(crate) struct Cluster {
    // `Drop` stops them in this order.
    apiserver: Process,
    etcd: Process,
    folder: PathBuf,
    /// The version as kube-apiserver prints it: `Kubernetes v1.20.2`.
    pub(crate) version: String,
}

/// A process with a log; dropping this kills the process.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Cluster {
    /// Starts the servers and waits until they are ready.
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
            // The data is deleted after the run.
            "--unsafe-no-fsync".into(),
        ]);
        let mut etcd = Process::start("etcd", etcd, folder)?;
        etcd.wait_until(|| {
            request(client, "GET", "/health", "").is_some_and(|body| body.contains("true"))
        })?;
        // Compacts the first revisions before the server starts, so that there are resource
        // versions that are too old for all of its caches.
        for _ in 0..9 {
            request(
                client,
                "POST",
                "/v3/kv/put",
                r#"{"key":"YQ==","value":"YQ=="}"#,
            );
        }
        request(client, "POST", "/v3/kv/compaction", r#"{"revision":"9"}"#)
            .ok_or("etcd did not compact its first revisions")?;

        let file = |name: &str| folder.join(name);
        let key = file("key.pem");
        let mut openssl = Command::new("openssl");
        openssl.args(["genrsa", "-out"]).arg(&key).arg("2048");
        run_command(openssl.stdout(Stdio::null()).stderr(Stdio::null()))?;
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
            format!(
                "--disable-admission-plugins={}",
                DISABLED_ADMISSION_PLUGINS.join(",")
            ),
        ]);
        let words = std::iter::once(server.get_program()).chain(server.get_args());
        let words: Vec<_> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let mut apiserver = Process::start("kube-apiserver", server, folder)?;
        let url = format!("https://127.0.0.1:{secure}");
        apiserver.wait_until(|| {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--insecure", "--max-time", "5", "--header"]);
            curl.arg(format!("Authorization: Bearer {TOKEN}"));
            let response = curl.arg(format!("{url}/readyz")).output();
            response.is_ok_and(|response| response.stdout == b"ok")
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

    /// The file that describes the server for the tests.
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

impl Process {
    /// Starts the program of a command, with the log `NAME.log` in `folder`.
    pub(crate) fn start(name: &'static str, mut command: Command, folder: &Path) -> Outcome<Self> {
        let log = folder.join(format!("{name}.log"));
        let open = || File::create(&log).map_err(|error| format!("{}: {error}", shown(&log)));
        let (out, err) = (open()?, open()?);
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { name, child, log })
    }

    /// Waits until `is_ready`; the error contains the end of the log.
    pub(crate) fn wait_until(&mut self, is_ready: impl Fn() -> bool) -> Outcome {
        let begin = Instant::now();
        while !is_ready() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || begin.elapsed() > READY_TIMEOUT {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(5).collect();
                let last: Vec<&str> = lines.into_iter().rev().collect();
                let what = ended.map_or("was not ready in time".to_owned(), |status| {
                    format!("exited: {status}")
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

    /// The file with its output.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("{}: {error}", shown(path)))
}

/// Returns ports that are currently free.
pub(crate) fn free_ports() -> Outcome<[u16; 3]> {
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
