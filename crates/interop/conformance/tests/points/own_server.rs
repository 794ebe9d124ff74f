//! A server that only one test uses and can restart: an embedded server, or a real one on
//! the same etcd as the server under test.

use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use longshore::{
    Cluster,
    embedded::{EmbeddedCluster, Options},
};
use longshore_conformance::ApiTest;

/// Long enough for the start of a real server.
const START_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct OwnServer {
    folder: tempfile::TempDir,
    /// The command line of the real server; empty for an embedded one.
    words: Vec<String>,
    kubeconfig: PathBuf,
    running: Option<Running>,
}

enum Running {
    Real(Child),
    Embedded(Box<EmbeddedCluster>),
}

impl OwnServer {
    pub(crate) async fn start(test: &ApiTest) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let words = command_line(test, folder.path(), &kubeconfig);
        let mut server = Self {
            folder,
            words,
            kubeconfig,
            running: None,
        };
        server.restart().await;
        server
    }

    /// Returns a new client, as another process would have.
    pub(crate) async fn cluster(&self) -> Cluster {
        let cluster = Cluster::from_kubeconfig(Some(&self.kubeconfig), None);
        cluster.await.unwrap()
    }

    /// Stops the server; kills a real one.
    pub(crate) async fn stop(&mut self) {
        match self.running.take() {
            Some(Running::Real(mut child)) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            Some(Running::Embedded(cluster)) => cluster.stop().await,
            None => {}
        }
    }

    /// Starts the server with the same data and waits until it is ready.
    pub(crate) async fn restart(&mut self) {
        self.running = Some(match self.words.split_first() {
            Some((program, words)) => {
                let log = File::create(self.folder.path().join("log")).unwrap();
                let mut command = Command::new(program);
                command.args(words).stdin(Stdio::null());
                command.stdout(Stdio::null()).stderr(log);
                Running::Real(command.spawn().unwrap())
            }
            None => {
                let options = Options {
                    ephemeral: false,
                    data_dir: Some(self.folder.path().join("data")),
                    listen: Some(([127, 0, 0, 1], 0).into()),
                    kubeconfig: Some(self.kubeconfig.clone()),
                    ..Options::server()
                };
                Running::Embedded(Box::new(EmbeddedCluster::start(options).await.unwrap()))
            }
        });
        let cluster = self.cluster().await;
        let begin = Instant::now();
        while let Err(error) = cluster.proxy().get("/api/v1/namespaces/default", &[]).await {
            assert!(begin.elapsed() < START_TIMEOUT, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        if let Some(Running::Real(child)) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command line of the real server with a different port and different certificates.
fn command_line(test: &ApiTest, folder: &Path, kubeconfig: &Path) -> Vec<String> {
    if !test.is_real() {
        return Vec::new();
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = std::fs::read_to_string(test.kubeconfig()).unwrap();
    let authority = format!("127.0.0.1:{port}");
    std::fs::write(kubeconfig, text.replace(test.authority(), &authority)).unwrap();
    let kept = test.apiserver().iter().filter(|word| {
        let own = ["--secure-port", "--cert-dir"];
        !own.iter().any(|own| word.starts_with(own))
    });
    let own = [
        format!("--secure-port={port}"),
        format!("--cert-dir={}", folder.join("certificates").display()),
        // The node names in these tests are not resolvable host names.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
    ];
    kept.cloned().chain(own).collect()
}
