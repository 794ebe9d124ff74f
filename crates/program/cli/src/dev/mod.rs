//! `longshore dev` at work: watches the folder, sends changes to all tasks, and reports restarts.

mod connection;
mod folder;
mod keys;
mod own_output;
mod report;
mod session;
mod settings;
mod tasks;
mod versions;
mod watch;

pub(crate) use session::{Attached, DevOptions, Start, develop};
