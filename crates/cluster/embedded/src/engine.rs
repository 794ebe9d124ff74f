//! Opens the engine of a cluster.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use longshore_apiserver::AuthorizationMode;
use longshore_engine::{Engine, OpenError, ReadVersion, Snapshot, Storage};

use crate::{Error, Options, layout::Layout};

/// The objects of a new server in memory, which are the same for each. Tests start many servers in
/// one process, and creating these objects takes most of the time.
static NEW: OnceLock<Snapshot> = OnceLock::new();

/// Time that a deleted CustomResourceDefinition is kept. Kubernetes takes 10 to 100 milliseconds.
const DEFINITION_END: Duration = Duration::from_millis(20);

/// Removes CustomResourceDefinitions some time after they are deleted.
pub(crate) async fn end_definitions(engine: Engine) {
    engine.end_definitions(DEFINITION_END).await;
}

/// An engine.
pub(crate) struct Opened {
    pub(crate) engine: Engine,
    /// True if the engine already has the default roles and bindings.
    pub(crate) has_policy: bool,
}

impl Opened {
    pub(crate) async fn open(options: &Options, layout: &Layout) -> Result<Self, Error> {
        let engine = match &options.snapshot {
            Some(snapshot) if options.ephemeral => {
                let engine = open_at(snapshot, options)?;
                let has_policy = has_policy(&engine);
                return Ok(Self { engine, has_policy });
            }
            Some(_) => return Err(Error::StoredSnapshot),
            None => {
                let new = NEW.get().filter(|_| is_usual(options));
                let new =
                    new.and_then(|new| new.renewed(&engine_options(options, Storage::Memory)));
                if let Some(new) = new {
                    let engine = open_at(&new, options)?;
                    return Ok(Self {
                        engine,
                        has_policy: true,
                    });
                }
                open_store(options, layout).await?
            }
        };
        Ok(Self {
            engine,
            has_policy: false,
        })
    }
}

/// Stores the objects of a new server that no client has used, for the next servers of this
/// process.
pub(crate) fn keep_new(engine: &Engine, options: &Options) {
    if is_usual(options) && options.snapshot.is_none() {
        NEW.get_or_init(|| engine.snapshot());
    }
}

/// Returns true if the server of a snapshot had the default roles. This version created them, so
/// they are complete unless a client has changed them.
fn has_policy(engine: &Engine) -> bool {
    let roles = engine.find("rbac.authorization.k8s.io", "v1", "clusterroles");
    let role = roles.map(|kind| engine.get(&kind, None, "cluster-admin", ReadVersion::Latest));
    role.is_some_and(|role| role.is_ok())
}

/// Returns true if a new cluster has the objects of [`NEW`].
fn is_usual(options: &Options) -> bool {
    options.ephemeral && options.authorization == AuthorizationMode::Rbac
}

fn open_at(snapshot: &Snapshot, options: &Options) -> Result<Engine, Error> {
    Engine::open_at(snapshot, engine_options(options, Storage::Memory))
        .map_err(Error::part("engine"))
}

fn engine_options(options: &Options, storage: Storage) -> longshore_engine::Options {
    longshore_engine::Options {
        storage,
        // Until the start has ended.
        defer_sync: true,
        clock: Arc::new(options.clock.clone()),
        ..longshore_engine::Options::default()
    }
}

/// Opens the store. This process holds the instance's lock, so if the store is in
/// use, the previous process is about to exit and release it.
async fn open_store(options: &Options, layout: &Layout) -> Result<Engine, Error> {
    const TRIES: u32 = 3000;
    let mut tries = 0;
    loop {
        let storage = if options.ephemeral {
            Storage::Memory
        } else {
            Storage::File(layout.store())
        };
        let opened = Engine::open(engine_options(options, storage));
        match opened {
            Err(OpenError::InUse { .. }) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            opened => return opened.map_err(Error::part("store")),
        }
    }
}
