//! Aggregation of other API servers: an APIService with a Service is served by the endpoints of
//! that Service.
//!
//! A request compares the revision of the last change of APIServices with the revision of the
//! index, like for webhooks. A task checks the servers, and reads their discovery documents.

mod availability;
mod checks;
mod convert;
mod forward;
mod headers;
mod identity;
mod index;
mod registration;
mod requests;
mod server;
mod service;
mod task;

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use longshore_engine::Engine;
use longshore_model::{KindInfo, kind::builtin};
use longshore_schema::openapi::V2Part;
use serde_json::Value;

pub(crate) use self::{
    forward::{Client, Forwarding},
    registration::{GROUP_PRIORITY, VERSION_PRIORITY},
    task::run,
};
use self::{identity::FrontProxy, index::Index};
use crate::tls::TlsError;

/// The kind APIService, in the form that the engine expects.
static KIND: LazyLock<Vec<Arc<KindInfo>>> = LazyLock::new(|| {
    let kind = builtin("apiregistration.k8s.io", "APIService");
    kind.cloned().map(Arc::new).into_iter().collect()
});

/// The discovery data of a version of an aggregated API server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Discovered {
    /// The resources, in the form of aggregated discovery.
    pub(crate) resources: Vec<Value>,
    /// The entry in the index of OpenAPI v3.
    pub(crate) openapi: Option<Value>,
    /// The part of the document of OpenAPI v2.
    pub(crate) openapi_v2: Option<Arc<V2Part>>,
    /// The `ETag` of the document of OpenAPI v2.
    openapi_v2_tag: Option<String>,
    /// True if the server did not respond the last time.
    pub(crate) is_stale: bool,
}

/// A version of an aggregated API server, for discovery.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AggregatedVersion {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    pub(crate) discovered: Discovered,
}

/// The aggregated API servers.
#[derive(Default)]
pub(crate) struct Aggregation {
    /// The APIServices at a revision.
    current: Mutex<(u64, Arc<Index>)>,
    proxy: OnceLock<Result<FrontProxy, String>>,
    /// The discovery data of versions, by the name of their APIService.
    discovered: Mutex<BTreeMap<String, Discovered>>,
    /// A counter that grows with every change of the documents that clients see.
    epoch: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Aggregation {
    /// The data with which an aggregated API server authenticates this server.
    ///
    /// # Errors
    /// The machine has no source of randomness.
    pub(crate) fn request_headers(&self) -> Result<Vec<(&'static str, String)>, TlsError> {
        let proxy = self.proxy().map_err(TlsError::Certificate)?;
        let list = |text: &str| Value::from(vec![text]).to_string();
        Ok(vec![
            ("requestheader-allowed-names", list(identity::NAME)),
            ("requestheader-client-ca-file", proxy.authority_pem.clone()),
            (
                "requestheader-extra-headers-prefix",
                list("X-Remote-Extra-"),
            ),
            ("requestheader-group-headers", list("X-Remote-Group")),
            ("requestheader-uid-headers", list("X-Remote-Uid")),
            ("requestheader-username-headers", list("X-Remote-User")),
        ])
    }

    fn proxy(&self) -> Result<&FrontProxy, String> {
        let made = self
            .proxy
            .get_or_init(|| FrontProxy::new().map_err(|error| error.to_string()));
        made.as_ref().map_err(Clone::clone)
    }

    /// The APIServices.
    fn index(&self, engine: &Engine) -> Arc<Index> {
        let revision = engine.last_change(&KIND);
        let mut current = locked(&self.current);
        let Some(kind) = KIND.first() else {
            return Arc::default();
        };
        if current.0 != revision {
            let index = Index::read(engine, kind, &current.1);
            if !index.is_empty() || !current.1.is_empty() {
                self.epoch.fetch_add(1, Ordering::Relaxed);
            }
            // An APIService that changes meanwhile has a later revision.
            *current = (revision, Arc::new(index));
        }
        current.1.clone()
    }

    /// A number that grows with every change of [`Aggregation::versions`]; 0 if no
    /// API server has been aggregated.
    pub(crate) fn epoch(&self, engine: &Engine) -> u64 {
        self.index(engine);
        self.epoch.load(Ordering::Relaxed)
    }

    /// The versions of aggregated API servers.
    pub(crate) fn versions(&self, engine: &Engine) -> Vec<AggregatedVersion> {
        let index = self.index(engine);
        if index.is_empty() {
            return Vec::new();
        }
        let discovered = locked(&self.discovered);
        let versions = index.remotes().map(|remote| {
            let service = &remote.service;
            let unknown = || Discovered {
                is_stale: true,
                ..Discovered::default()
            };
            AggregatedVersion {
                group: service.group.clone(),
                version: service.version.clone(),
                group_priority: service.group_priority,
                version_priority: service.version_priority,
                discovered: discovered
                    .get(&service.name)
                    .cloned()
                    .unwrap_or_else(unknown),
            }
        });
        versions.collect()
    }

    /// Stores the discovery data of the version of an APIService; `None` keeps the previous data
    /// and marks it as stale.
    fn learn(&self, name: &str, found: Option<Discovered>) {
        let mut discovered = locked(&self.discovered);
        let known = discovered.entry(name.to_owned()).or_default();
        let found = found.unwrap_or_else(|| Discovered {
            is_stale: true,
            ..known.clone()
        });
        if *known != found {
            *known = found;
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The discovery data of the version of an APIService.
    fn known(&self, name: &str) -> Option<Discovered> {
        locked(&self.discovered).get(name).cloned()
    }

    /// The parts of the documents of OpenAPI v2, in the order in which they are merged.
    pub(crate) fn openapi_v2(&self, engine: &Engine) -> Vec<Arc<V2Part>> {
        let mut versions = self.versions(engine);
        versions.sort_by_cached_key(|found| {
            let name = (found.group.clone(), found.version.clone());
            (
                Reverse(found.group_priority),
                Reverse(found.version_priority),
                name,
            )
        });
        let parts = versions
            .into_iter()
            .map(|found| found.discovered.openapi_v2);
        parts.flatten().collect()
    }

    /// Removes versions whose APIService no longer exists.
    fn forget_others(&self, index: &Index) {
        let mut discovered = locked(&self.discovered);
        discovered.retain(|name, _| index.remotes().any(|remote| remote.service.name == *name));
    }
}
