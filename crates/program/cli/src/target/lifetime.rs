//! The lifetime of the embedded cluster.

use longshore_embedded::{Layout, daemon::Record};

use crate::ui;

/// The lifetime of the embedded cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until it has no work and no command uses it.
    OnDemand,
    /// Until `longshore down`.
    Lasting,
}

impl Lifetime {
    pub(crate) fn of(record: &Record, layout: &Layout) -> Self {
        match record.is_lasting(layout) {
            true => Self::Lasting,
            false => Self::OnDemand,
        }
    }

    /// The name in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Lasting => "lasting",
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::OnDemand => "stops when no runs are active",
            Self::Lasting => "stays until `longshore down`",
        }
    }

    /// Describes the condition for the cluster's stop.
    pub(crate) fn until(self) -> &'static str {
        match self {
            Self::OnDemand => "no run, pod or schedule is active and no command uses it",
            Self::Lasting => "`longshore down`",
        }
    }
}

/// Returns the time since a cluster's start, in human-readable form.
pub(crate) fn age(record: &Record) -> String {
    let now = jiff::Timestamp::now().as_second();
    ui::span(now.saturating_sub(record.started.as_second()))
}
