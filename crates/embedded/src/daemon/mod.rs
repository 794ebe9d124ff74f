//! The embedded cluster as a background process: how it is started, found
//! again and stopped.
//!
//! One folder is one instance. The process that holds the folder's lock is its
//! cluster; the record beside it says where the cluster serves. A record
//! without the lock is a dead process's and means nothing.
//!
//! A cluster *on demand* lives as long as some command uses it (see [`Usage`])
//! or it has work: a pod, a Job or a schedule that is not over. A *lasting* one
//! lives until it is stopped. Either has a session of its own: nothing that
//! becomes of the command that started it, or of its terminal, reaches it.

mod fate;
mod find;
mod log;
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
pub use record::Record;
pub use serve::{ServeOptions, serve};
pub use spawn::{Report, SpawnOptions, spawn};
pub use stop::{Stop, Stopped, stop};
pub use usage::Usage;

use std::time::Duration;

/// How long a cluster may take to get ready, or to stop after SIGTERM.
const TRANSITION_TIMEOUT: Duration = Duration::from_secs(20);
/// How often files and locks are checked while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(3);
