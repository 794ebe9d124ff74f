//! Defaults of Leases.

use crate::json::{self, Object};

/// Adds the spec.
pub(crate) fn fill(lease: &mut Object) {
    json::child(lease, "spec");
}
