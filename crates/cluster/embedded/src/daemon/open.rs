//! Uses the cluster of a folder, and starts it if needed.

use std::path::Path;

use super::{Record, SpawnOptions, State, Usage, find, spawn};
use crate::{Error, Layout};

/// A running cluster, while it is used.
#[derive(Debug)]
pub struct Opened {
    /// The process that runs the cluster.
    pub record: Record,
    /// A cluster on demand does not stop while this value exists.
    pub usage: Usage,
    /// True if the cluster was started by this call.
    pub is_new: bool,
}

/// Finds the cluster of a folder. If none is running, starts one on demand with `program`, the
/// path of the program `longshore`.
///
/// # Errors
/// The folder cannot be used, or the cluster cannot be started.
pub async fn open(layout: &Layout, program: &Path) -> Result<Opened, Error> {
    // Before checking: from here on, an on-demand cluster does not stop.
    let usage = Usage::begin(layout).await?;
    let (record, is_new) = match find(layout).await? {
        State::Running(record) => (record, false),
        State::Stopped => {
            let mut options = SpawnOptions::new(program, layout);
            options.arguments.push("--on-demand".into());
            (spawn(options).await?, true)
        }
    };
    Ok(Opened {
        record,
        usage,
        is_new,
    })
}
