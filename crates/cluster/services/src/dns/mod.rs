//! The DNS server of the cluster.
//!
//! It answers for the zone `cluster.local` by the [specification of Kubernetes], from the
//! Services, their endpoints, and the names of pods, and asks the machine's name servers for
//! all other names. It listens on UDP and TCP.
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
