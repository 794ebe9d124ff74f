//! The cluster's DNS server on this node, and the access of pods to it.

mod pod_config;
mod service;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use longshore_client::Cluster;
use longshore_services::DnsSockets;

pub(crate) use pod_config::{DnsSettings, has_own_settings, uses_cluster_server};

/// The settings of the machine's resolver.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The port at which clients expect name servers.
const PORT: u16 = 53;

/// The DNS server of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterDns {
    /// The address of the server in the pods' `resolv.conf`.
    pub(crate) address: Ipv4Addr,
    /// The address at which the server listens.
    listener: SocketAddr,
}

/// A destination of connections, and the destination that replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

impl ClusterDns {
    /// Returns the redirection through which pods reach the server, or `None` if they need none.
    pub(crate) fn redirect(&self) -> Option<Redirect> {
        let from = SocketAddr::from((self.address, PORT));
        (self.listener != from).then_some(Redirect {
            from,
            to: self.listener,
        })
    }
}

/// Creates the Service of the DNS server, and listens at its address. If this fails, pods use the
/// machine's name servers.
pub(crate) async fn open(cluster: &Cluster) -> Option<(ClusterDns, DnsSockets)> {
    let address = match service::address(cluster).await {
        Ok(Some(address)) => address,
        Ok(None) => {
            tracing::warn!(
                "the Service kube-system/kube-dns has no cluster IP of this cluster, so that \
                 there is no DNS server; delete the Service and start the cluster again"
            );
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "no DNS server: cannot make the Service kube-system/kube-dns");
            return None;
        }
    };
    match DnsSockets::open(address) {
        Ok(sockets) => {
            let listener = sockets.address();
            Some((ClusterDns { address, listener }, sockets))
        }
        Err(error) => {
            tracing::warn!(%address, %error, "no DNS server: cannot listen at its address");
            None
        }
    }
}

/// Returns the path of the settings of the machine's resolver.
pub(crate) fn machine_settings() -> &'static Path {
    Path::new(RESOLV_CONF)
}
