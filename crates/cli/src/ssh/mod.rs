//! SSH access to tasks: the SSH server of `longshore ssh-proxy`, and the options with which
//! OpenSSH's client uses it. Nothing listens, neither here nor in the pods.

mod host;
pub(crate) mod host_name;
mod install;
pub(crate) mod options;
mod own_names;
pub(crate) mod proxy;
mod session;
mod stdio;

pub(crate) use install::install;
