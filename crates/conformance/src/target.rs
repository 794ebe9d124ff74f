//! Which server is checked: an embedded one, or the real one that
//! `cargo xtask test --cluster real` runs.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use crate::Server;

/// Names the file that describes the real server; unset: embedded ones.
const REAL: &str = "LONGSHORE_TEST_REAL";

/// The kind of server that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Ours: it is as the release of Kubernetes that `longshore_model::release` names.
    Embedded,
    /// Kubernetes' own of that release, without controllers and nodes.
    Real,
    /// Kubernetes' own of version 1.20, without controllers and nodes.
    Old,
}

/// What the file of the real server says.
#[derive(Deserialize)]
struct Real {
    kubeconfig: PathBuf,
    /// Base of etcd's HTTP gateway, `http://127.0.0.1:2379`.
    etcd: String,
    /// The command line of the server.
    #[serde(default)]
    apiserver: Vec<String>,
    /// Whether it is of version 1.20.
    #[serde(default)]
    old: bool,
}

/// The server of one test.
pub(crate) struct Target {
    pub(crate) flavour: Flavour,
    pub(crate) kubeconfig: PathBuf,
    /// `127.0.0.1:6443`
    pub(crate) authority: String,
    pub(crate) token: String,
    /// The embedded one.
    pub(crate) server: Option<Server>,
    /// The real one's.
    pub(crate) etcd: Option<String>,
    /// The real one's command line.
    pub(crate) apiserver: Vec<String>,
}

impl Target {
    /// The real server when there is one, or else a fresh embedded one.
    /// With `node`, one that runs pods.
    pub(crate) async fn find(node: bool) -> Self {
        let Some(file) = env::var_os(REAL) else {
            let server = if node {
                Server::start().await
            } else {
                Server::bare().await
            };
            let (authority, token) = read_kubeconfig(&server.kubeconfig());
            return Self {
                flavour: Flavour::Embedded,
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
            flavour: if real.old {
                Flavour::Old
            } else {
                Flavour::Real
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
