//! Tests of the embedded cluster: Kubernetes' rules at the level of HTTP, and
//! others' clients.
//!
//! [`ApiTest`] is what a test of a rule works with: raw requests to the server
//! under test and a namespace of its own. The server is an embedded one, fresh
//! for each test; or, under `cargo xtask test --cluster real`, a real
//! kube-apiserver that the tests share. What that old one lacks is marked, not
//! dropped ([`ApiTest::lacks`], [`ApiTest::newer`], [`ApiTest::old_or_new`]).
//!
//! [`Kubectl::all`] gives the pinned kubectls that `cargo xtask test` fetched;
//! [`Server::start`] an embedded cluster with a socket for them.

mod answer;
mod api_test;
mod call;
mod etcd;
mod kubectl;
mod notes;
mod server;
mod target;
mod transport;
mod watching;

pub use answer::Answer;
pub use api_test::ApiTest;
pub use call::{Call, PatchType};
pub use kubectl::{Following, Kubectl, Ran};
pub use server::Server;
pub use target::Flavour;
pub use watching::Watching;

/// No single answer or event of the tests takes this long, also on a busy
/// machine.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
