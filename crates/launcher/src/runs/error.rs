//! Why a question about runs has no answer.

use jiff::Timestamp;

/// Why a question about runs has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// The cluster refused, or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// There is no such run.
    #[error("no run {name:?} in namespace {namespace:?}{}; `longshore runs` lists them", nearest.as_ref().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default())]
    NoSuchRun {
        /// The name asked for.
        name: String,
        /// The namespace it was looked for in.
        namespace: String,
        /// The run whose name is closest.
        nearest: Option<String>,
    },
    /// The names of several runs begin so.
    #[error("{name:?} is the beginning of {count} names of runs: {}{}", candidates.join(", "), more(*count, candidates.len()))]
    Ambiguous {
        /// The word.
        name: String,
        /// How many runs it may mean.
        count: usize,
        /// The first of them, newest first.
        candidates: Vec<String>,
    },
    /// The newest run was asked for, and there is none.
    #[error("there is no run in namespace {namespace:?}")]
    NoRuns {
        /// The namespace it was looked for in.
        namespace: String,
    },
    /// A schedule that has made no run yet, or none that is still there.
    #[error("the schedule {name:?} has made no run that is still there{}", next.map(|next| format!("; the next is due at {next}")).unwrap_or_default())]
    NotYet {
        /// The schedule's name.
        name: String,
        /// When it makes the next.
        next: Option<Timestamp>,
    },
}

/// The end of a list that names only the first.
fn more(count: usize, named: usize) -> String {
    match count.saturating_sub(named) {
        0 => String::new(),
        more => format!(", and {more} more"),
    }
}
