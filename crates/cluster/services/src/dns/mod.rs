//! The DNS server of the cluster.
//!
//! The server answers queries for the zone `cluster.local` by the [specification of Kubernetes],
//! from the Services, their endpoints, and the names of pods. For all other names, it asks the
//! machine's name servers. The server listens on UDP and TCP.
//!
//! [specification of Kubernetes]: https://github.com/kubernetes/dns/blob/master/docs/specification.md

mod foreign;
mod forward;
mod name;
mod newest;
mod record;
mod reply;
mod resolver_config;
mod server;
mod sockets;
#[cfg(test)]
mod testing;
mod zone;

pub use name::ZONE;
pub use resolver_config::ResolverConfig;
pub(crate) use server::Server;
pub use sockets::DnsSockets;
pub use zone::PodNames;
