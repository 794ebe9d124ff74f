//! Errors of queries about runs.

use jiff::Timestamp;

use crate::owner::Owner;

/// An error of a query about runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The run does not exist.
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
        /// The given prefix.
        name: String,
        /// The number of matching runs.
        count: usize,
        /// The first matching runs, newest first.
        candidates: Vec<String>,
    },
    /// The newest run was requested, but the namespace has no runs.
    #[error("there are no runs in namespace {namespace:?}")]
    NoRuns {
        /// The searched namespace.
        namespace: String,
    },
    /// A pattern of names is invalid.
    #[error("invalid pattern {pattern:?}: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The violated rule.
        problem: String,
    },
    /// No name matches a pattern.
    #[error("no run in namespace {namespace:?} matches {pattern:?}")]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// The searched namespace.
        namespace: String,
    },
    /// Only runs of other users match. These runs must be specified by their full names.
    #[error("{wanted} in namespace {namespace:?} is yours; runs of other users: {}{}", candidates.join(", "), more(*count, candidates.len()))]
    OfOthers {
        /// The requested runs, as in `no run that matches "digits"`.
        wanted: String,
        /// The searched namespace.
        namespace: String,
        /// The number of matching runs.
        count: usize,
        /// The first matching runs with their owners, newest first.
        candidates: Vec<String>,
    },
    /// The run belongs to another user.
    #[error("{}", not_own(name, owner.as_ref(), me))]
    NotOwn {
        /// The run's name.
        name: String,
        /// The owner of the run. `None` if the run does not record its owner.
        owner: Option<Owner>,
        /// The current user.
        me: Owner,
    },
    /// The schedule has created no run yet, or all of its runs were deleted.
    #[error("the schedule {name:?} has no runs{}", next.map(|next| format!("; the next is due at {next}")).unwrap_or_default())]
    NotYet {
        /// The schedule's name.
        name: String,
        /// The time when the schedule creates the next run.
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

fn not_own(name: &str, owner: Option<&Owner>, me: &Owner) -> String {
    match owner {
        Some(owner) => format!("the run {name} belongs to {owner}, and you are {me}"),
        None => format!("the run {name} records no owner, so it may belong to another user"),
    }
}
