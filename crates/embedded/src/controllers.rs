//! The controllers and the scheduler of the embedded cluster, also as clients of another API
//! server, in place of the kube-controller-manager and the kube-scheduler.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use longshore_apiserver::TokenKey;
use longshore_client::Cluster;
use longshore_controllers::{Controllers, LocalVolumes, Signer, TokenSigner};
use tokio::task::JoinSet;

use crate::{
    Error, Options,
    keys::Keys,
    layout::Layout,
    node_names,
    signer::{AuthoritySigner, KeySigner},
};

/// The user agent of the controllers.
pub(crate) const AGENT: &str = "longshore-controllers";
/// A part of the cluster, for errors.
const PART: &str = "controllers";

/// Files that the controllers need to know about the API server.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The CA certificate of the API server, which each namespace gets in the ConfigMap
    /// `kube-root-ca.crt`, as do Secrets with tokens.
    pub root_ca: Option<PathBuf>,
    /// The key with which the tokens in Secrets of service accounts are signed: ECDSA on
    /// the curve P-256.
    pub service_account_key: Option<PathBuf>,
}

/// The settings of the controllers of an embedded cluster.
pub(crate) fn settings(
    options: &Options,
    layout: &Layout,
    keys: &Keys,
) -> longshore_controllers::Options {
    let authority = keys.authority.as_ref();
    let mut settings = longshore_controllers::Options::default();
    settings.clock = options.clock.clone();
    settings.root_ca = authority.map(|authority| authority.ca_pem());
    settings.signer = Some(Signer(Arc::new(AuthoritySigner::of(authority))));
    settings.token_signer = Some(TokenSigner(Arc::new(KeySigner(keys.tokens.clone()))));
    settings.local_volumes = (options.nodes > 0).then(|| LocalVolumes {
        folder: layout.volumes(options.ephemeral),
        nodes: node_names(options.nodes),
    });
    settings
}

/// Starts the controllers in a task of their own: it takes as long as the start of a node.
pub(crate) async fn start(
    cluster: Cluster,
    settings: longshore_controllers::Options,
) -> Result<Controllers, Error> {
    let mut starting = JoinSet::new();
    starting.spawn(Controllers::start_with(cluster, settings));
    match starting.join_next().await {
        Some(Ok(started)) => started.map_err(Error::part(PART)),
        Some(Err(panicked)) => Err(Error::part(PART)(panicked)),
        None => Err(Error::part(PART)("they were not started")),
    }
}

/// Runs all controllers and the scheduler on an API server until `end`. Calls `ready` when
/// they have read all objects.
///
/// The controllers elect no leader: run them once for each API server. They sign no
/// certificate requests, and make no volumes for claims.
///
/// # Errors
/// A file cannot be read, or an initial list failed.
pub async fn run(
    cluster: Cluster,
    files: Files,
    ready: impl FnOnce(),
    end: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut options = longshore_controllers::Options::default();
    // The API server does this itself.
    options.service_addresses = false;
    options.flow_control = false;
    options.root_ca = files.root_ca.as_deref().map(read).transpose()?;
    if let Some(path) = &files.service_account_key {
        let key = TokenKey::load(path).map_err(Error::part("service account key"))?;
        options.token_signer = Some(TokenSigner(Arc::new(KeySigner(key))));
    }
    let cluster = cluster.with_user_agent(AGENT);
    let controllers = start(cluster.clone(), options).await?;
    ready();
    end.await;
    controllers.stop().await;
    cluster.close();
    Ok(())
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}
