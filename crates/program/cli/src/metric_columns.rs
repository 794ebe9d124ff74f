//! Metrics in tables.

use crate::ui;

/// The maximum number of metrics that are columns of a table.
const MOST_COLUMNS: usize = 12;

/// The metrics that are columns of a table. The others are in the JSON and YAML output only.
pub(crate) fn columns<T>(metrics: &[T]) -> &[T] {
    metrics.get(..MOST_COLUMNS).unwrap_or(metrics)
}

/// Prints the number of metrics that a table does not show.
pub(crate) fn note_omitted(all: usize, shown: usize) {
    let more = all.saturating_sub(shown);
    if more > 0 {
        ui::note(format!("{more} more metrics: --output json prints them"));
    }
}
