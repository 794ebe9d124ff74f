//! Runs in the pod before the command: fetches the code, resolves the peers, sets the frameworks'
//! variables, and executes the command; after it, uploads outputs to a store. Uses only mounted
//! files, signed URLs, DNS and connections between the run's tasks, never the API.
//! [`crate::notifier`] runs in a separate pod.

mod attempt;
mod data;
pub mod dev;
mod environment;
mod error;
mod exec;
mod fetch;
mod idle;
mod install;
mod messages;
mod outputs;
mod peers;
mod places;
mod prepare;
mod shell;
mod source;
mod ssh;
mod start;
pub mod supervise;
mod task;
mod terminal;
#[cfg(test)]
mod tests;
mod together;
pub mod usage;

pub use data::{fetch_data, fetch_data_into};
pub use environment::{Environment, environment};
pub use error::BootstrapError;
pub use exec::{exec, fetch_and_exec};
pub use fetch::{fetch, fetch_into};
pub use install::install;
pub use outputs::upload_now;
pub use places::Places;
pub use shell::shell;
pub(crate) use source::copy as copy_bundle;
pub use ssh::{signal, ssh};
