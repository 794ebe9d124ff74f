//! Sessions with containers: exec, attach and port-forward, over WebSockets and
//! SPDY; and logs over WebSockets.

mod activity;
mod channel;
mod command;
mod forward;
mod protocol;
mod reading;
mod socket;
mod status;
mod tunnel;
mod unread;
mod upgrade;

pub(crate) use command::Command;
pub(crate) use forward::Forward;
pub(crate) use reading::Reading;
pub(crate) use upgrade::{Upgrade, answer, is_websocket};
