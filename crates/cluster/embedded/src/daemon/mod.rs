//! Runs the embedded cluster as a background process: starts it, finds it and stops
//! it.
//!
//! Each folder is one instance. The process that holds the folder's lock runs its
//! cluster. The record in the same folder contains the cluster's endpoint. A record
//! without a held lock belongs to a process that has died and is ignored.
//!
//! A cluster *on demand* runs as long as a command uses it (see [`Usage`]) or it
//! has work: a pod, a Job or a CronJob that has not finished. A *lasting* cluster
//! runs until it is stopped. Both run in a separate session, so that they are
//! independent of the command that started them and its terminal.

mod fate;
mod find;
mod log;
mod open;
mod record;
mod serve;
mod spawn;
mod stop;
mod usage;
mod work;

pub use crate::end::End;
pub use fate::{Fate, fate};
pub use find::{State, find};
pub use log::ClusterLog;
pub use open::{Opened, open};
pub use record::Record;
pub use serve::{ServeOptions, serve};
pub use spawn::{Report, SpawnOptions, spawn};
pub use stop::{Stop, Stopped, stop};
pub use usage::Usage;

use std::time::Duration;

/// The timeout for a cluster to become ready, or to stop after SIGTERM.
const TRANSITION_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval at which files and locks are checked while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(3);
