//! The controllers and the scheduler of the embedded cluster. They can also run as clients of
//! another API server, in place of the kube-controller-manager and the kube-scheduler.

use std::{
    fs,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use longshore_apiserver::TokenKey;
use longshore_client::Cluster;
use longshore_controllers::{Controllers, LocalVolumes, Signer, TokenSigner};
use tokio::{sync::oneshot, task::JoinHandle};

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
/// The pause before another attempt to start.
const PAUSE: Duration = Duration::from_secs(1);

/// Files that the controllers need to know about the API server.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The CA certificate of the API server. Each namespace gets it in the ConfigMap
    /// `kube-root-ca.crt`, and each Secret with a token contains it.
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

/// The controllers of an embedded cluster. Dropping the value also stops them, without
/// waiting.
pub(crate) struct Running {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts the controllers concurrently with the rest of the cluster. Until they have read all
    /// objects, they count as work for a manual clock.
    pub(crate) fn start(cluster: Cluster, settings: longshore_controllers::Options) -> Self {
        let (end, ended) = oneshot::channel();
        let starting = settings.clock.busy("the start of the controllers");
        let task = tokio::spawn(async move {
            let mut ended = pin!(ended);
            let started = tokio::select! {
                started = start(&cluster, &settings) => started,
                _ = &mut ended => return,
            };
            drop(starting);
            let _ = ended.await;
            started.stop().await;
        });
        Self { end, task }
    }

    /// Stops the controllers. Returns when they have stopped.
    pub(crate) async fn stop(self) {
        let _ = self.end.send(());
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the start of the controllers failed");
        }
    }
}

/// Starts the controllers, and tries again after a failure.
async fn start(cluster: &Cluster, settings: &longshore_controllers::Options) -> Controllers {
    loop {
        match Controllers::start_with(cluster.clone(), settings.clone()).await {
            Ok(started) => return started,
            Err(error) => {
                tracing::error!(%error, "the controllers cannot start; next attempt in 1 s");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Runs all controllers and the scheduler on an API server until `end`. Calls `ready` when
/// they have read all objects.
///
/// The controllers do not elect a leader, so run them once for each API server. They do not sign
/// certificate requests, and do not provision volumes for claims.
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
    options.root_ca = files.root_ca.as_deref().map(read).transpose()?;
    if let Some(path) = &files.service_account_key {
        let key = TokenKey::load(path).map_err(Error::part("service account key"))?;
        options.token_signer = Some(TokenSigner(Arc::new(KeySigner(key))));
    }
    let cluster = cluster.with_user_agent(AGENT);
    let controllers = Controllers::start_with(cluster.clone(), options).await;
    let controllers = controllers.map_err(Error::part(PART))?;
    ready();
    end.await;
    controllers.stop().await;
    cluster.close();
    Ok(())
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}
