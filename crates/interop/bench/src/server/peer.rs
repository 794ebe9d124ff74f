//! Finds, starts, measures and stops the servers.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use kube_client::Client;
use longshore::Cluster;
use tempfile::TempDir;

use crate::{program::Instance, report::Failure};

/// The variable with the folder of a kube-apiserver. `cargo xtask bench` sets it.
const FOLDER: &str = "LONGSHORE_REAL_APISERVER";
/// As many workers as large clusters give these controllers.
const CONCURRENT_SYNCS: [&str; 3] = [
    "--concurrent-deployment-syncs=50",
    "--concurrent-replicaset-syncs=50",
    "--concurrent-endpoint-syncs=50",
];
/// The timeout for the start of a server.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that has not been started.
#[derive(Clone)]
pub(crate) enum Peer {
    Ours,
    Real(PathBuf),
}

/// A running server in a temporary folder.
pub(crate) enum Server {
    Ours(Instance),
    Real(Real),
}

pub(crate) struct Real {
    folder: TempDir,
    /// The kube-apiserver's program.
    program: PathBuf,
    children: Vec<Child>,
}

impl Drop for Real {
    fn drop(&mut self) {
        // Stops kube-apiserver before etcd.
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Peer {
    pub(crate) fn ours() -> Self {
        Self::Ours
    }

    /// The real kube-apiserver, if it is available.
    pub(crate) fn real() -> Option<Self> {
        let binary = Path::new(&env::var_os(FOLDER)?).join("kube-apiserver");
        binary.is_file().then_some(Self::Real(binary))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ours => "the embedded server",
            Self::Real(_) => "kube-apiserver and etcd",
        }
    }

    /// Starts the server. Also returns the time until it is ready.
    pub(crate) async fn start(self) -> Result<(Server, Duration), Failure> {
        let started = Instant::now();
        let server = match self {
            Self::Ours => {
                let instance = Instance::new()?;
                instance.up(&[])?;
                Server::Ours(instance)
            }
            Self::Real(binary) => Server::Real(Real::start(&binary)?),
        };
        let client = server.client().await?;
        loop {
            let ready = client
                .request_text(http::Request::get("/readyz").body(Vec::new())?)
                .await;
            match ready {
                Ok(text) if text == "ok" => return Ok((server, started.elapsed())),
                _ if started.elapsed() < START_TIMEOUT => {
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                Ok(text) => return Err(format!("not ready: {text}").into()),
                Err(error) => return Err(format!("not ready: {error}").into()),
            }
        }
    }
}

impl Server {
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Ours(instance) => instance.kubeconfig(),
            Self::Real(real) => real.folder.path().join("kubeconfig"),
        }
    }

    /// A client with its own connections.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let cluster = Cluster::from_kubeconfig(Some(&self.kubeconfig()), None).await?;
        Ok(cluster.kube_client())
    }

    /// Starts the controllers and the scheduler, if they are separate programs: the ones next to
    /// the kube-apiserver, with high request limits.
    pub(crate) fn start_controllers(&mut self) -> Result<(), Failure> {
        let Self::Real(real) = self else {
            return Ok(());
        };
        let kubeconfig = real.path("kubeconfig");
        let common = [
            format!("--kubeconfig={kubeconfig}"),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
            "--kube-api-qps=10000".into(),
            "--kube-api-burst=10000".into(),
        ];
        let mut manager = common.to_vec();
        let key = real.path("key");
        manager.push(format!("--service-account-private-key-file={key}"));
        manager.extend(CONCURRENT_SYNCS.map(str::to_owned));
        real.run_adjacent("kube-controller-manager", manager)?;
        real.run_adjacent("kube-scheduler", common.to_vec())
    }

    /// The processor time of all the server's processes in seconds.
    pub(crate) fn processor_time(&self) -> Result<f64, Failure> {
        match self {
            Self::Ours(instance) => processor_time(instance.pid()?),
            Self::Real(real) => {
                let children = real.children.iter();
                children.map(|child| processor_time(child.id())).sum()
            }
        }
    }

    /// The resident memory of all the server's processes in megabytes.
    pub(super) fn memory(&self) -> Result<f64, Failure> {
        match self {
            Self::Ours(instance) => Ok(instance.memory()?.0),
            Self::Real(real) => real.children.iter().map(|child| resident(child.id())).sum(),
        }
    }

    pub(crate) async fn stop(self) {
        drop(self);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

fn processor_time(pid: u32) -> Result<f64, Failure> {
    // Linux reports user and system time in hundredths of a second.
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text
        .rsplit_once(')')
        .ok_or("the process's stat is incomplete")?;
    let mut times = fields.split_whitespace().skip(11).take(2);
    let ticks = times.try_fold(0, |sum, time| time.parse::<u64>().map(|time| sum + time))?;
    Ok(ticks as f64 / 100.0)
}

fn resident(pid: u32) -> Result<f64, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.ok_or("the server has exited")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// Finds free ports.
fn ports<const N: usize>() -> Result<[u16; N], Failure> {
    let listeners: Vec<_> = (0..N)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// Starts a program in the background.
fn run(program: &Path, arguments: Vec<String>) -> Result<Child, String> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))
}

impl Real {
    fn start(binary: &Path) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let [port, store, peers] = ports()?;
        let (store, peers) = (
            format!("http://127.0.0.1:{store}"),
            format!("http://127.0.0.1:{peers}"),
        );
        let key = Command::new("openssl")
            .args(["genrsa", "-out", &path("key"), "2048"])
            .stderr(Stdio::null())
            .status()?;
        if !key.success() {
            return Err("openssl cannot create a key".into());
        }
        fs::write(path("tokens"), "token,admin,admin,system:masters\n")?;
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": {"server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true}}],
            "users": [{"name": "admin", "user": {"token": "token"}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        });
        fs::write(path("kubeconfig"), kubeconfig.to_string())?;
        // The etcd in the same folder, or the one in `PATH`.
        let adjacent_etcd = binary.with_file_name("etcd");
        let program = Some(adjacent_etcd.as_path()).filter(|path| path.is_file());
        let etcd = run(
            program.unwrap_or(Path::new("etcd")),
            vec![
                format!("--data-dir={}", path("etcd")),
                format!("--listen-client-urls={store}"),
                format!("--advertise-client-urls={store}"),
                format!("--listen-peer-urls={peers}"),
                format!("--initial-advertise-peer-urls={peers}"),
                format!("--initial-cluster=default={peers}"),
            ],
        )?;
        let arguments = vec![
            format!("--etcd-servers={store}"),
            format!("--service-account-key-file={}", path("key")),
            format!("--service-account-signing-key-file={}", path("key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--cert-dir={}", path("certs")),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".into(),
            format!("--token-auth-file={}", path("tokens")),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            "--disable-admission-plugins=ServiceAccount".into(),
        ];
        let mut real = Self {
            folder,
            program: binary.to_owned(),
            children: vec![etcd],
        };
        real.children.push(run(binary, arguments)?);
        Ok(real)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs another program of the kube-apiserver's folder.
    fn run_adjacent(&mut self, name: &str, arguments: Vec<String>) -> Result<(), Failure> {
        let program = self.program.with_file_name(name);
        self.children.push(run(&program, arguments)?);
        Ok(())
    }
}
