//! The requests of watches.

use crate::{error::Result, kind::Object, transport::Call, view::View};

/// Returns the request for a watch of a view.
pub(super) fn request<K: Object>(view: &View<K>) -> Result<Call> {
    // A random part is removed, so that many watches do not reconnect at the same time.
    let wanted = view.cluster().transport.timing().watch_connection;
    let spread = wanted.mul_f64(1.0 - 0.2 * fastrand::f64());
    Ok(view
        .selection()?
        .with("watch", "true")
        .with("allowWatchBookmarks", "true")
        .with("timeoutSeconds", spread.as_secs().max(1).to_string()))
}
