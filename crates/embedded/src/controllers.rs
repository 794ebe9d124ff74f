//! The controllers and the scheduler of the embedded cluster as clients of another API
//! server, in place of the kube-controller-manager and the kube-scheduler.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use longshore_apiserver::TokenKey;
use longshore_client::Cluster;
use longshore_controllers::{Controllers, TokenSigner};

use crate::{Error, signer::KeySigner};

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
    let cluster = cluster.with_user_agent("longshore-controllers");
    let controllers = Controllers::start_with(cluster.clone(), options).await;
    let controllers = controllers.map_err(Error::part("controllers"))?;
    ready();
    end.await;
    controllers.stop().await;
    cluster.close();
    Ok(())
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}
