//! Arguments for the deletion of objects.

use longshore::client::{self, Propagation};
use pyo3::prelude::*;

use crate::exceptions::invalid;

pub(crate) fn options(
    propagation: Option<&str>,
    grace_seconds: Option<u32>,
    uid: Option<String>,
    version: Option<String>,
) -> PyResult<client::DeleteOptions> {
    let propagation = match propagation {
        None => None,
        Some("background") => Some(Propagation::Background),
        Some("foreground") => Some(Propagation::Foreground),
        Some("orphan") => Some(Propagation::Orphan),
        Some(other) => {
            return Err(invalid(format!(
                "propagation cannot be {other:?}: choose background, foreground or orphan"
            )));
        }
    };
    Ok(client::DeleteOptions {
        propagation,
        grace_seconds,
        uid,
        version,
    })
}
