//! Runs in the pod before the command: fetches the code, resolves the peers, sets the
//! frameworks' variables, and executes the command. Uses only mounted files and DNS, never
//! the API.

mod data;
mod environment;
mod error;
mod exec;
mod fetch;
mod install;
mod messages;
mod places;
mod prepare;
mod source;
pub mod supervise;
mod terminal;
#[cfg(test)]
mod tests;

pub use data::{fetch_data, fetch_data_into};
pub use environment::{Environment, environment};
pub use error::BootstrapError;
pub use exec::exec;
pub use fetch::{fetch, fetch_into};
pub use install::install;
pub use places::Places;
pub(crate) use source::copy as copy_bundle;
