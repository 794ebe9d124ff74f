//! Starts and stops the programs of a control plane, on free ports of the loopback interface.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::{Combination, Origin, files::Files};
use crate::{
    kubernetes,
    real::{Process, free_ports, request},
    run::{Outcome, output, target},
};

/// The namespace and name of the tests' service account, which is an administrator.
const TESTER: (&str, &str) = ("kube-system", "tester");

/// A running control plane. Dropping this stops its programs and removes its files.
pub(super) struct ControlPlane {
    files: Files,
    combination: Combination,
    // Dropped in this order: the last started program stops first.
    processes: Vec<Process>,
}

impl ControlPlane {
    /// Starts the programs and waits until they are ready.
    pub(super) fn start(program: &Path, combination: Combination) -> Outcome<Self> {
        let [secure, etcd, peer] = free_ports()?;
        let url = format!("https://127.0.0.1:{secure}");
        let folder = target().join(format!("control-plane-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let files = Files::create(&folder, &url)?;
        let mut this = Self {
            files,
            combination,
            processes: Vec::new(),
        };
        let api_server = match combination.api_server {
            Origin::Kubernetes => {
                this.start_etcd(etcd, peer)?;
                kubernetes::programs().join("kube-apiserver")
            }
            // Under this name, the program takes the flags of kube-apiserver.
            Origin::Longshore => {
                let link = this.files.path("kube-apiserver");
                symlink(program, &link).map_err(|error| format!("{}: {error}", link.display()))?;
                link
            }
        };
        this.start_api_server(api_server, secure, etcd)?;
        this.create_tester(&url)?;
        match combination.controllers {
            Origin::Longshore => this.start_embedded_controllers(program)?,
            Origin::Kubernetes => this.start_controllers()?,
        }
        Ok(this)
    }

    /// The kubeconfig of the tests, with a token.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.files.kubeconfig(TESTER.1)
    }

    /// Copies the logs to a folder that remains, and prints its path.
    pub(super) fn keep_logs(&self) {
        let name = match (self.combination.api_server, self.combination.controllers) {
            (Origin::Longshore, Origin::Longshore) => "embedded",
            (Origin::Longshore, Origin::Kubernetes) => "embedded-api-server",
            (Origin::Kubernetes, Origin::Longshore) => "embedded-controllers",
            (Origin::Kubernetes, Origin::Kubernetes) => "kubernetes",
        };
        let to = target().join("control-plane-logs").join(name);
        let _ = fs::create_dir_all(&to);
        for process in &self.processes {
            if let Some(file) = process.log().file_name() {
                let _ = fs::copy(process.log(), to.join(file));
            }
        }
        println!("logs: {}", to.display());
    }

    fn option(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.files.path(file).display())
    }

    fn spawn(
        &mut self,
        name: &'static str,
        command: Command,
        is_ready: impl Fn() -> bool,
    ) -> Outcome {
        let mut process = Process::start(name, command, &self.files.folder)?;
        let ready = process.wait_until(is_ready);
        self.processes.insert(0, process);
        ready
    }

    fn start_etcd(&mut self, client: u16, peer: u16) -> Outcome {
        let client_url = format!("http://127.0.0.1:{client}");
        let peer_url = format!("http://127.0.0.1:{peer}");
        let mut etcd = Command::new(kubernetes::programs().join("etcd"));
        etcd.arg("--data-dir").arg(self.files.path("etcd")).args([
            format!("--listen-client-urls={client_url}"),
            format!("--advertise-client-urls={client_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            // The data is deleted after the run.
            "--unsafe-no-fsync".into(),
        ]);
        self.spawn("etcd", etcd, || {
            request(client, "GET", "/health", "").is_some_and(|body| body.contains("true"))
        })
    }

    fn start_api_server(&mut self, program: PathBuf, secure: u16, etcd: u16) -> Outcome {
        let mut server = Command::new(program);
        server.args([
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={secure}"),
            self.option("tls-cert-file", "apiserver.crt"),
            self.option("tls-private-key-file", "apiserver.key"),
            self.option("client-ca-file", "ca.crt"),
            self.option("cert-dir", "certificates"),
            self.option("service-account-key-file", "sa.pub"),
            self.option("service-account-signing-key-file", "sa.key"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            "--authorization-mode=RBAC".into(),
            "--allow-privileged=true".into(),
            "--service-cluster-ip-range=10.0.0.0/16".into(),
        ]);
        let mut ready = self.kubectl();
        ready.args(["get", "--raw", "/readyz"]);
        let ready = std::cell::RefCell::new(ready);
        self.spawn("kube-apiserver", server, || {
            output(&mut ready.borrow_mut()).is_ok_and(|response| response == "ok")
        })
    }

    fn kubectl(&self) -> Command {
        self.files.kubectl(kubernetes::programs().join("kubectl"))
    }

    /// Creates the service account of the tests, whose connections authenticate with tokens.
    fn create_tester(&self, url: &str) -> Outcome {
        let (namespace, name) = TESTER;
        let account = format!("{namespace}:{name}");
        let binding = ["--clusterrole=cluster-admin", "--serviceaccount", &account];
        let create = |words: &[&str]| output(self.kubectl().arg("create").args(words));
        // The namespace appears a moment after the API server is ready.
        let process = || create(&["serviceaccount", name, "--namespace", namespace]).is_ok();
        kubernetes::wait_until("the service account of the tests is created", process)?;
        create(&[&["clusterrolebinding", name], &binding[..]].concat())?;
        let token = create(&["token", name, "--namespace", namespace, "--duration=24h"])?;
        let user = json!({"token": token.trim()});
        self.files.write_kubeconfig(name, url, &user)
    }

    fn start_embedded_controllers(&mut self, program: &Path) -> Outcome {
        let mut controllers = Command::new(program);
        controllers.arg("controllers").args([
            self.option("kubeconfig", "admin.kubeconfig"),
            self.option("root-ca-file", "ca.crt"),
            self.option("service-account-private-key-file", "sa.key"),
        ]);
        let log = self.files.path("controllers.log");
        self.spawn("controllers", controllers, || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("the controllers run on"))
        })
    }

    fn start_controllers(&mut self) -> Outcome {
        let [manager, scheduler, _] = free_ports()?;
        let common = |this: &Self, user: &str, port: u16| {
            let kubeconfig = format!("{user}.kubeconfig");
            let names = [
                "kubeconfig",
                "authentication-kubeconfig",
                "authorization-kubeconfig",
            ];
            let mut options = names.map(|name| this.option(name, &kubeconfig)).to_vec();
            options.extend([
                "--authentication-tolerate-lookup-failure=true".into(),
                "--bind-address=127.0.0.1".into(),
                "--leader-elect=false".into(),
                format!("--secure-port={port}"),
                this.option("cert-dir", "certificates"),
            ]);
            options
        };
        let mut command = Command::new(kubernetes::programs().join("kube-controller-manager"));
        command
            .args(common(self, "controller-manager", manager))
            .args([
                self.option("service-account-private-key-file", "sa.key"),
                self.option("root-ca-file", "ca.crt"),
                self.option("cluster-signing-cert-file", "ca.crt"),
                self.option("cluster-signing-key-file", "ca.key"),
                "--use-service-account-credentials=true".into(),
                // The tests run at the same time.
                "--kube-api-qps=500".into(),
                "--kube-api-burst=1000".into(),
            ]);
        self.spawn("kube-controller-manager", command, || {
            responds(manager, "healthz")
        })?;
        let mut command = Command::new(kubernetes::programs().join("kube-scheduler"));
        command.args(common(self, "scheduler", scheduler));
        self.spawn("kube-scheduler", command, || responds(scheduler, "readyz"))
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.processes.clear();
        let _ = fs::remove_dir_all(&self.files.folder);
    }
}

/// Returns true if the program at a port reports that it is healthy.
fn responds(port: u16, path: &str) -> bool {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--max-time", "5"]);
    let response = curl
        .arg(format!("https://127.0.0.1:{port}/{path}"))
        .output();
    response.is_ok_and(|response| response.stdout == b"ok")
}
