//! Errors of queries about runs.

use jiff::Timestamp;

/// An error of a query about runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// There is no such run.
    #[error("no run {name:?} in namespace {namespace:?}{}; `longshore runs` lists them", nearest.as_ref().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default())]
    NoSuchRun {
        /// The requested name.
        name: String,
        /// The searched namespace.
        namespace: String,
        /// The closest run name.
        nearest: Option<String>,
    },
    /// The prefix matches several runs.
    #[error("{name:?} is ambiguous, {count} runs match: {}{}", candidates.join(", "), more(*count, candidates.len()))]
    Ambiguous {
        /// The word.
        name: String,
        /// The number of matching runs.
        count: usize,
        /// The first matching runs, newest first.
        candidates: Vec<String>,
    },
    /// The newest run was requested, and there is none.
    #[error("there are no runs in namespace {namespace:?}")]
    NoRuns {
        /// The searched namespace.
        namespace: String,
    },
    /// The schedule has created no run yet, or all of its runs were deleted.
    #[error("the schedule {name:?} has no runs{}", next.map(|next| format!("; the next is due at {next}")).unwrap_or_default())]
    NotYet {
        /// The schedule's name.
        name: String,
        /// When it creates the next run.
        next: Option<Timestamp>,
    },
}

/// The end of a truncated list.
fn more(count: usize, named: usize) -> String {
    match count.saturating_sub(named) {
        0 => String::new(),
        more => format!(", and {more} more"),
    }
}
