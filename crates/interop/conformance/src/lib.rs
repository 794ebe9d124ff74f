//! Tests of the embedded cluster: the rules of the Kubernetes API at the HTTP level, and
//! third-party clients.
//!
//! [`ApiTest`] gives a test raw requests to the server under test and its own namespace. The server
//! is a new embedded one for each test; or, with `cargo xtask test --cluster real`, a real
//! kube-apiserver that the tests share. Tests of features that the old one lacks are marked, not
//! removed ([`ApiTest::skip_on_old`], [`ApiTest::is_newer`], [`ApiTest::old_or_new`]).
//!
//! [`Kubectl::all`] returns the pinned kubectl binaries that `cargo xtask test` fetched;
//! [`Server::start`] starts an embedded cluster that they can connect to.

mod api_test;
mod etcd;
mod kubectl;
mod notes;
mod request;
mod response;
mod server;
mod target;
mod transport;
mod watch;

pub use api_test::ApiTest;
pub use kubectl::{CommandResult, Kubectl, RunningCommand};
pub use request::{PatchType, RequestBuilder};
pub use response::Response;
pub use server::Server;
pub use target::ServerKind;
pub use watch::Watch;

/// Longer than any single response or event of the tests takes on a busy machine.
pub(crate) const RESPONSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
