//! Runs in the pod before the command: fetches the code, resolves the peers, sets the
//! frameworks' variables, and executes the command. Uses only mounted files and DNS, never
//! the API.

pub mod dev;
mod environment;
mod error;
mod exec;
mod fetch;
mod install;
mod messages;
mod places;
mod prepare;
mod shell;
mod source;
pub mod supervise;
mod terminal;
#[cfg(test)]
mod tests;

pub use environment::{Environment, environment};
pub use error::BootstrapError;
pub use exec::exec;
pub use fetch::{fetch, fetch_into};
pub use install::install;
pub use places::Places;
pub use shell::shell;
pub(crate) use source::copy as copy_bundle;
