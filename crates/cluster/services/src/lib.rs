//! The Services of the embedded cluster.
//!
//! This crate listens on the cluster IP and the ports of each Service. It forwards connections
//! (TCP) and packets (UDP) to the ready endpoints in turn, or forwards each client to one endpoint
//! if the Service has `sessionAffinity: ClientIP`. Cluster IPs are loopback addresses
//! ([`longshore_model::network`]), so programs on this machine and pods can use them without
//! privileges. Node ports are forwarded at the addresses of the nodes and at 127.0.0.1. Like with
//! kube-proxy, a port without ready endpoints refuses connections, and connections survive changes
//! of the endpoints. A port that cannot be opened is reported in an Event.
//!
//! [`HostPorts`] forwards ports of the node to pods.
//!
//! [`Services`] also provides the names of the Services for hosts files and for the cluster's DNS
//! server, and the variables of `enableServiceLinks`.

mod dns;
mod external;
mod forward;
mod host_ports;
mod links;
mod objects;
mod report;
mod table;
mod watch;

use std::{net::Ipv4Addr, path::Path, sync::Arc};

use longshore_client::{Cluster, Error};
use longshore_clock::Clock;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch as signal};

pub use dns::{DnsSockets, PodNames, ResolverConfig, ZONE};
pub use host_ports::{ForwardedPort, HostPorts};
pub use table::ServiceName;

use self::{
    objects::{Address, RawService},
    table::{Key, Table},
};

/// The shared state of this crate.
struct Shared {
    cluster: Cluster,
    /// The addresses of the nodes.
    nodes: Vec<Ipv4Addr>,
    /// The clock of the cluster.
    clock: Clock,
    table: Mutex<Table>,
    /// Counts the changes of names.
    names: signal::Sender<u64>,
    /// True after all Services have been read.
    ready: signal::Sender<bool>,
    external_changed: Notify,
}

impl Shared {
    fn note_names(&self) {
        self.names
            .send_modify(|version| *version = version.wrapping_add(1));
    }
}

/// The Services of a cluster, for the pods of the nodes of a machine. Clones share them.
#[derive(Clone)]
pub struct Services(Arc<Shared>);

impl std::fmt::Debug for Services {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Services").finish_non_exhaustive()
    }
}

impl Services {
    /// Returns the Services of a cluster, and the work that follows and forwards them until
    /// the cluster is closed. Node ports listen at the addresses `nodes` and 127.0.0.1. Dropping the work closes all
    /// connections.
    pub fn new(
        cluster: Cluster,
        nodes: Vec<Ipv4Addr>,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let shared = Arc::new(Shared {
            cluster,
            nodes,
            clock,
            table: Mutex::default(),
            names: signal::Sender::new(0),
            ready: signal::Sender::new(false),
            external_changed: Notify::new(),
        });
        let work = {
            let shared = shared.clone();
            async move {
                tokio::select! {
                    () = watch::run(&shared) => {}
                    () = external::follow(&shared) => {}
                }
            }
        };
        (Self(shared), work)
    }

    /// Returns the names of all Services that have addresses.
    #[must_use]
    pub fn names(&self) -> Vec<ServiceName> {
        self.0.table.lock().names()
    }

    /// Returns a receiver that is notified when the names or their addresses change.
    #[must_use]
    pub fn changes(&self) -> signal::Receiver<u64> {
        self.0.names.subscribe()
    }

    /// Returns the work that answers DNS queries for the names of Services and pods, and asks
    /// the name servers of the file `config` for all others, at `address`, until it is dropped.
    pub fn dns(
        &self,
        sockets: DnsSockets,
        address: Ipv4Addr,
        pods: Arc<dyn PodNames>,
        config: &Path,
    ) -> impl Future<Output = ()> + Send + use<> {
        dns::Server::new(self.0.clone(), pods, address, config).serve(sockets)
    }

    /// Returns the environment variables that name the Services of a namespace, such as
    /// `WEB_SERVICE_HOST`. Waits until all Services have been read.
    pub async fn variables(&self, namespace: &str) -> Vec<(String, String)> {
        // The sender is in `self`, so that waiting cannot fail.
        let _ = self.0.ready.subscribe().wait_for(|ready| *ready).await;
        let table = self.0.table.lock();
        table
            .with_address(namespace)
            .flat_map(|(key, address, service)| links::of_service(key, address, service))
            .collect()
    }

    /// Returns these variables for the Services that exist now. The watch may report the newest
    /// of them later.
    ///
    /// # Errors
    /// The API rejects the request or cannot be reached.
    pub async fn listed_variables(&self, namespace: &str) -> Result<Vec<(String, String)>, Error> {
        let view = self.0.cluster.services().in_namespace(namespace)?;
        let mut variables = Vec::new();
        for item in view.list().await?.items {
            let service = item.typed::<RawService>()?.read(item.uid());
            let key = Key::new(item.namespace(), item.name());
            if let Address::Cluster(address) = service.address {
                variables.extend(links::of_service(&key, address, &service));
            }
        }
        Ok(variables)
    }
}
