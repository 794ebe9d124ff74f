//! Sessions with containers: exec, attach and port-forward, over WebSockets and
//! SPDY.

mod activity;
mod channel;
mod command;
mod forward;
mod protocol;
mod socket;
mod status;
mod tunnel;
mod unread;
mod upgrade;

pub(crate) use command::Command;
pub(crate) use forward::Forward;
pub(crate) use upgrade::{Upgrade, answer};
