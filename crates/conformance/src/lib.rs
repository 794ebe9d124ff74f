//! Others' clients as judges of the embedded cluster: how the tests start them.
//!
//! [`Kubectl::all`] gives the pinned kubectls that `cargo xtask test` fetched;
//! [`Server::start`] an embedded cluster with a socket for them.

mod kubectl;
mod server;

pub use kubectl::{Following, Kubectl, Ran};
pub use server::Server;
