//! The versions that aggregated API servers serve, by group and version.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use longshore_engine::{Engine, ListRequest};
use longshore_model::KindInfo;
use rustls::{ClientConfig, pki_types::ServerName};

use super::{
    identity::FrontProxy,
    service::{ApiService, Backend},
};
use crate::remote::{connect, service, trust};

/// A version that an aggregated API server serves.
pub(super) struct Remote {
    pub(super) service: ApiService,
    pub(super) backend: Backend,
    /// Created at the first connection.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// The APIServices at a revision.
#[derive(Default)]
pub(super) struct Index {
    /// By group and version.
    remotes: HashMap<String, HashMap<String, Arc<Remote>>>,
    pub(super) services: Vec<ApiService>,
}

impl Remote {
    fn new(service: ApiService, backend: Backend) -> Self {
        Self {
            service,
            backend,
            tls: OnceLock::new(),
        }
    }

    /// The name that the certificate of the server must have.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.backend.name, self.backend.namespace)
    }

    /// The TLS configuration.
    ///
    /// # Errors
    /// The trusted certificates are not valid.
    pub(super) fn tls(&self, proxy: &FrontProxy) -> Result<Arc<ClientConfig>, String> {
        let config = self.tls.get_or_init(|| match self.backend.insecure {
            true => trust::any(Some(&proxy.identity)),
            false => trust::config(&self.backend.bundle, Some(&proxy.identity)),
        });
        config.clone()
    }

    pub(super) fn server_name(&self) -> Result<ServerName<'static>, String> {
        let host = self.host();
        let name = ServerName::try_from(host.clone());
        name.map_err(|_| format!("{host:?} is not a DNS name"))
    }

    /// The sockets of the server.
    ///
    /// # Errors
    /// The problem, in the words of Kubernetes.
    pub(super) async fn sockets(&self, engine: &Engine) -> Result<Vec<SocketAddr>, String> {
        let Backend {
            namespace,
            name,
            port,
            ..
        } = &self.backend;
        let endpoints = service::resolve(engine, namespace, name, *port)?;
        connect::sockets(endpoints, *port).await
    }
}

impl Index {
    /// Reads all APIServices. Unchanged APIServices keep their TLS configuration.
    pub(super) fn read(engine: &Engine, kind: &Arc<KindInfo>, before: &Self) -> Self {
        let page = engine.list(&ListRequest::of(kind.clone()));
        let objects = page.map(|page| page.items).unwrap_or_default();
        let services: Vec<_> = objects
            .iter()
            .map(|object| ApiService::read(object))
            .collect();
        let mut remotes: HashMap<String, HashMap<String, Arc<Remote>>> = HashMap::new();
        for service in &services {
            let Some(backend) = &service.backend else {
                continue;
            };
            let known = before.find(&service.group, &service.version);
            let remote = match known.filter(|known| known.service == *service) {
                Some(known) => known,
                None => Arc::new(Remote::new(service.clone(), backend.clone())),
            };
            let versions = remotes.entry(service.group.clone()).or_default();
            versions.insert(service.version.clone(), remote);
        }
        Self { remotes, services }
    }

    pub(super) fn find(&self, group: &str, version: &str) -> Option<Arc<Remote>> {
        self.remotes.get(group)?.get(version).cloned()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.remotes.is_empty()
    }

    pub(super) fn remotes(&self) -> impl Iterator<Item = &Arc<Remote>> {
        self.remotes.values().flat_map(HashMap::values)
    }
}
