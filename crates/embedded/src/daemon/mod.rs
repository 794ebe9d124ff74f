//! The embedded cluster as a background process: how it is started, found
//! again and stopped.
//!
//! One folder is one instance. Whoever holds the folder's lock is its cluster;
//! the record beside it says where the cluster serves. A record without the
//! lock is a dead process's and means nothing.
//!
//! A cluster *on demand* lives as long as some command uses it (see
//! [`Usage`]); a *lasting* one until it is stopped.

mod find;
mod record;
mod serve;
mod spawn;
mod stop;
mod usage;

pub use find::{State, find};
pub use record::Record;
pub use serve::{ServeOptions, serve};
pub use spawn::{Report, SpawnOptions, spawn};
pub use stop::{Stopped, stop};
pub use usage::Usage;

use std::time::Duration;

/// How long a cluster may take to get ready, or to stop when asked kindly.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How often files and locks are looked at while waiting.
pub(crate) const STEP: Duration = Duration::from_millis(3);
