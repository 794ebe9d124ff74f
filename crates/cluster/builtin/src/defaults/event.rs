//! Defaults of Events.

use crate::json::{self, Object};

/// Adds the fields that every Event has.
pub(crate) fn fill(object: &mut Object) {
    for name in ["involvedObject", "source"] {
        json::child(object, name);
    }
    json::default(object, "reportingComponent", "");
    json::default(object, "reportingInstance", "");
}
