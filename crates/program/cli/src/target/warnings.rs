//! Warnings of the API server.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use longshore::client::Cluster;

use crate::ui;

/// The maximum number of remembered warnings.
const WARNINGS_REMEMBERED: usize = 1000;

/// Prints the server's warnings, each once.
pub(super) fn show(cluster: Cluster) -> Cluster {
    let shown = Mutex::new(HashSet::new());
    cluster.with_warning_handler(move |text| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= WARNINGS_REMEMBERED {
            shown.clear();
        }
        if shown.insert(text.to_owned()) {
            ui::warning(text);
        }
    })
}
