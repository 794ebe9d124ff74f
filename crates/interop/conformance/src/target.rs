//! The server under test: an embedded one, or the real one that `cargo xtask test
//! --cluster real` runs.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use crate::Server;

/// The file that describes the real server; if unset, tests use embedded servers.
const REAL: &str = "LONGSHORE_TEST_REAL";
/// The kubeconfig of a control plane; if unset, tests use embedded clusters.
const CONTROL_PLANE: &str = "LONGSHORE_TEST_CONTROL_PLANE";

/// The server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// The embedded server: behaves like the Kubernetes release in
    /// `longshore_model::release`.
    Embedded,
    /// A kube-apiserver of that release, without controllers and nodes.
    Real,
    /// A kube-apiserver 1.20, without controllers and nodes.
    Old,
}

/// The description of the real server.
#[derive(Deserialize)]
struct Real {
    kubeconfig: PathBuf,
    /// The URL of etcd's HTTP gateway, `http://127.0.0.1:2379`.
    etcd: String,
    /// The command line of the server.
    #[serde(default)]
    apiserver: Vec<String>,
    /// True if its version is 1.20.
    #[serde(default)]
    old: bool,
}

/// The server of one test.
pub(crate) struct Target {
    pub(crate) server_kind: ServerKind,
    pub(crate) kubeconfig: PathBuf,
    /// `127.0.0.1:6443`
    pub(crate) authority: String,
    pub(crate) token: String,
    /// The embedded server.
    pub(crate) server: Option<Server>,
    /// The etcd of the real server.
    pub(crate) etcd: Option<String>,
    /// The command line of the real server.
    pub(crate) apiserver: Vec<String>,
}

impl Target {
    /// The control plane that `cargo xtask controllers` runs, otherwise a new embedded
    /// cluster without a node.
    pub(crate) async fn control_plane() -> Self {
        let (kubeconfig, server) = match env::var_os(CONTROL_PLANE) {
            Some(file) => (PathBuf::from(file), None),
            None => {
                let server = Server::without_node().await;
                (server.kubeconfig(), Some(server))
            }
        };
        let (authority, token) = read_kubeconfig(&kubeconfig);
        Self {
            server_kind: ServerKind::Embedded,
            kubeconfig,
            authority,
            token,
            server,
            etcd: None,
            apiserver: Vec::new(),
        }
    }

    /// The real server if one is configured, otherwise a new embedded one. With `node`,
    /// the embedded server runs pods.
    pub(crate) async fn find(node: bool) -> Self {
        let Some(file) = env::var_os(REAL) else {
            let server = if node {
                Server::start().await
            } else {
                Server::bare().await
            };
            let (authority, token) = read_kubeconfig(&server.kubeconfig());
            return Self {
                server_kind: ServerKind::Embedded,
                kubeconfig: server.kubeconfig(),
                authority,
                token,
                server: Some(server),
                etcd: None,
                apiserver: Vec::new(),
            };
        };
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{REAL}={file:?}: {error}"));
        let real: Real = serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("{REAL}={file:?}: {error}"));
        let (authority, token) = read_kubeconfig(&real.kubeconfig);
        Self {
            server_kind: if real.old {
                ServerKind::Old
            } else {
                ServerKind::Real
            },
            kubeconfig: real.kubeconfig,
            authority,
            token,
            server: None,
            etcd: Some(real.etcd),
            apiserver: real.apiserver,
        }
    }
}

/// The server's address and the token of a kubeconfig with one cluster.
fn read_kubeconfig(path: &Path) -> (String, String) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let config: Value =
        serde_yaml_ng::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let server = word(&config["clusters"][0]["cluster"]["server"]);
    let authority = server.trim_start_matches("https://").trim_end_matches('/');
    (
        authority.to_owned(),
        word(&config["users"][0]["user"]["token"]),
    )
}
