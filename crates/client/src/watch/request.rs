//! The requests of watches.

use rand::RngExt;

use crate::{error::Result, kind::Object, transport::Call, view::View};

/// A request for a watch of a view.
pub(super) fn request<K: Object>(view: &View<K>) -> Result<Call> {
    // Spread, so that many watches do not come back at once.
    let wanted = view.cluster().transport.timing().watch_connection;
    let spread = wanted.mul_f64(rand::rng().random_range(0.8..=1.0));
    Ok(view
        .selection()?
        .with("watch", "true")
        .with("allowWatchBookmarks", "true")
        .with("timeoutSeconds", spread.as_secs().max(1).to_string()))
}
