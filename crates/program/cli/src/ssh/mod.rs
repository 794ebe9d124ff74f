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

use longshore_embedded::Layout;
use longshore_ssh::Keys;

use crate::error::{Error, Kind, Result};
pub(crate) use install::install;

/// The keys in the data folder. They are created with the folder if they do not exist.
pub(crate) fn keys(layout: &Layout) -> Result<Keys> {
    let failed =
        |error: &(dyn std::error::Error + 'static)| Error::from_source(Kind::Failed, error);
    layout.create().map_err(|error| failed(&error))?;
    Keys::open(&layout.ssh()).map_err(|error| failed(&error))
}
