//! A page on loopback for the launcher's runs, on any cluster.
//!
//! [`Server::bind`] opens a port of 127.0.0.1, [`Server::links`] creates links with a one-time
//! token, and [`Server::serve`] answers until its future ends.
//!
//! - `access`: checks of requests: hosts, tokens, sessions, origins. Pure.
//! - `route` and `text`: paths become values, and values become text. Pure.
//! - `redact`: removes the contents of Secrets. Pure.
//! - `view`: the data that pages show of a run's pods, usage and combinations. Pure.
//! - `pages`: HTML. Pure.
//! - `live`: watches the cluster, and sends changed parts of pages.
//! - `logs`: follows runs, and keeps their last lines for all tabs.
//! - `assets`: scripts and styles.
//! - `body`, `app`, `handlers` and `server`: HTTP.
//!
//! A module imports only from those before it.

mod access;
mod app;
mod assets;
mod body;
mod handlers;
mod live;
mod logs;
mod pages;
mod redact;
mod route;
mod server;
mod text;
mod view;

use futures::future::BoxFuture;
use longshore_launcher::{RunSummary, explain::Explanation, run_outputs::LocalOutputs};

pub use server::{Error, Links, Server};

/// The address and the contents of the page.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port of 127.0.0.1; 0 for any free port.
    pub port: u16,
    /// The namespace of the shown runs; `None` for all namespaces.
    pub namespace: Option<String>,
    /// The cluster's name, for people.
    pub cluster: String,
    /// The outputs of the runs, if the cluster keeps them on this machine.
    pub outputs: Option<LocalOutputs>,
    /// True to show all objects of the cluster, not only objects of runs. Intended for a cluster
    /// with a single user.
    pub browse: bool,
    /// Completes the commands in explanations with the options for this cluster.
    pub complete: Option<fn(&mut Explanation)>,
}

/// Removes runs with everything that belongs to them, which depends on the kind of the cluster.
pub trait RemoveRuns: Send + Sync {
    /// Removes a run. The error is a message for the user.
    fn remove<'a>(
        &'a self,
        all: &'a [RunSummary],
        run: &'a RunSummary,
    ) -> BoxFuture<'a, Result<(), String>>;
}
