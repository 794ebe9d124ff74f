//! Selects and sorts runs of a list. Pure.

use std::{cmp::Ordering, str::FromStr};

use globset::{GlobBuilder, GlobMatcher};
use jiff::Timestamp;

use super::{RunState, RunSummary};
use crate::owner::{Owner, Ownership};

/// The states by which runs can be selected: single states, and names for several states.
pub const STATE_FILTERS: &[&str] = &[
    "active",
    "finished",
    "pending",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "scheduled",
    "paused",
];

/// A single state, or several states with a common name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFilter {
    /// Pending or running.
    Active,
    /// Succeeded, failed or cancelled.
    Finished,
    /// A single state.
    Only(RunState),
}

impl StateFilter {
    fn matches(self, state: RunState) -> bool {
        match self {
            Self::Active => matches!(state, RunState::Pending | RunState::Running),
            Self::Finished => state.is_over(),
            Self::Only(only) => only == state,
        }
    }
}

/// An invalid text of a filter, with the violated rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(String);

impl FromStr for StateFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let only = |state: &RunState| state.as_str() == text;
        match text {
            "active" => Ok(Self::Active),
            "finished" => Ok(Self::Finished),
            _ => RunState::ALL
                .iter()
                .find(|state| only(state))
                .map(|&state| Self::Only(state))
                .ok_or_else(|| {
                    FilterError(format!(
                        "{text:?} is not a state: use {}",
                        STATE_FILTERS.join(", ")
                    ))
                }),
        }
    }
}

/// A filter for a list of runs. Keeps the runs that match each of its parts.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Any of these states. Empty for all states.
    pub states: Vec<StateFilter>,
    /// Created at this time or later.
    pub since: Option<Timestamp>,
    /// A pattern of the name. See [`RunFilter::named`].
    pub name: Option<GlobMatcher>,
    /// Tags that a run must have, with these values or with any value.
    pub tags: Vec<(String, Option<String>)>,
    /// The user who owns the runs.
    pub owner: Option<Owner>,
}

impl RunFilter {
    /// Keeps only runs whose name matches a pattern with `*` and `?`.
    ///
    /// # Errors
    /// The pattern is invalid.
    pub fn named(mut self, pattern: &str) -> Result<Self, FilterError> {
        let glob = GlobBuilder::new(pattern)
            .build()
            .map_err(|error| FilterError(format!("the pattern {pattern:?}: {}", error.kind())))?;
        self.name = Some(glob.compile_matcher());
        Ok(self)
    }

    /// Returns true if the filter keeps all runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
            && self.since.is_none()
            && self.name.is_none()
            && self.tags.is_empty()
            && self.owner.is_none()
    }

    /// Returns true if a run matches.
    #[must_use]
    pub fn matches(&self, run: &RunSummary) -> bool {
        let has_tag = |(key, value): &(String, Option<String>)| {
            let own = run.tags.get(key);
            own.is_some_and(|own| value.as_ref().is_none_or(|value| value == own))
        };
        (self.states.is_empty() || self.states.iter().any(|state| state.matches(run.state)))
            && self
                .since
                .is_none_or(|since| run.created.is_some_and(|created| created >= since))
            && self
                .name
                .as_ref()
                .is_none_or(|name| name.is_match(run.run.name.as_str()))
            && self.tags.iter().all(has_tag)
            && self
                .owner
                .as_ref()
                .is_none_or(|owner| owner.ownership(run.owner.as_ref()) == Ownership::Own)
    }
}

/// The order of a list of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// The newest run first.
    #[default]
    Created,
    /// The run that ended last first, with active runs at the end.
    Finished,
    /// By name.
    Name,
    /// By state.
    State,
    /// The longest run first, with active runs at the end.
    Took,
}

impl RunOrder {
    /// Sorts runs. The sort is stable, so equal runs of a list that is newest first stay in order.
    pub fn sort(self, runs: &mut [RunSummary]) {
        runs.sort_by(|one, other| self.compare(one, other));
    }

    /// Compares two runs, for a stable sort of runs that are sorted newest first.
    #[must_use]
    pub fn compare(self, one: &RunSummary, other: &RunSummary) -> Ordering {
        let took = |run: &RunSummary| {
            let span = run.created.zip(run.finished);
            span.map(|(from, to)| to.as_millisecond().saturating_sub(from.as_millisecond()))
        };
        match self {
            Self::Created => Ordering::Equal,
            Self::Finished => other.finished.cmp(&one.finished),
            Self::Name => one.run.name.cmp(&other.run.name),
            Self::State => one.state.as_str().cmp(other.state.as_str()),
            Self::Took => took(other).cmp(&took(one)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_diagnosis::names::RunName;

    use super::*;
    use crate::runs::Run;

    fn run(name: &str, state: RunState, created: i64, took: Option<i64>) -> RunSummary {
        let at = |second| Timestamp::from_second(second).unwrap();
        RunSummary {
            run: Run {
                name: RunName::existing(name).unwrap(),
                namespace: "default".into(),
                roles: Vec::new(),
                schedule: None,
            },
            full_name: name.into(),
            state,
            created: Some(at(created)),
            submitted: None,
            owner: None,
            finished: took.map(|took| at(created + took)),
            command: Vec::new(),
            bundle: None,
            labels: Default::default(),
            tags: [("lr".to_owned(), "0.1".to_owned())].into(),
            note: None,
            exit_code: None,
            outcome: None,
            succeeded: (0, 1),
            restarts: 0,
            webhook_problem: None,
            sweep: None,
            schedule: None,
        }
    }

    fn all() -> Vec<RunSummary> {
        vec![
            run("b-1", RunState::Running, 30, None),
            run("a-2", RunState::Failed, 20, Some(5)),
            run("a-1", RunState::Succeeded, 10, Some(9)),
        ]
    }

    fn names(filter: &RunFilter) -> Vec<String> {
        let all = all();
        let kept = all.iter().filter(|run| filter.matches(run));
        kept.map(|run| run.run.name.to_string()).collect()
    }

    #[test]
    fn parts_of_a_filter_all_have_to_match() {
        let of = |states: &[&str]| RunFilter {
            states: states.iter().map(|text| text.parse().unwrap()).collect(),
            ..RunFilter::default()
        };
        assert!(of(&[]).is_empty());
        assert_eq!(names(&of(&[])), ["b-1", "a-2", "a-1"]);
        assert_eq!(names(&of(&["finished"])), ["a-2", "a-1"]);
        assert_eq!(names(&of(&["active", "failed"])), ["b-1", "a-2"]);
        let named = of(&["finished"]).named("a-?").unwrap();
        assert_eq!(names(&named), ["a-2", "a-1"]);
        assert!(names(&of(&["running"]).named("a*").unwrap()).is_empty());
        let mut since = of(&[]);
        since.since = Some(Timestamp::from_second(20).unwrap());
        assert_eq!(names(&since), ["b-1", "a-2"]);
        let mut tags = of(&[]);
        tags.tags = vec![("lr".into(), None)];
        assert_eq!(names(&tags).len(), 3);
        tags.tags = vec![("lr".into(), Some("0.1".into()))];
        assert_eq!(names(&tags).len(), 3);
        tags.tags = vec![("lr".into(), Some("0.2".into()))];
        assert!(names(&tags).is_empty());
        tags.tags = vec![("seed".into(), None)];
        assert!(names(&tags).is_empty());
    }

    #[test]
    fn states_and_patterns_are_checked() {
        let error = "runing".parse::<StateFilter>().unwrap_err().to_string();
        assert!(error.contains("use active, finished, pending"), "{error}");
        for state in STATE_FILTERS {
            assert!(state.parse::<StateFilter>().is_ok(), "{state}");
        }
        let error = RunFilter::default().named("[a").unwrap_err().to_string();
        assert!(error.contains("\"[a\""), "{error}");
    }

    #[test]
    fn each_order_sorts() {
        let by = |order: RunOrder| {
            let mut runs = all();
            order.sort(&mut runs);
            let names = runs.iter().map(|run| run.run.name.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(by(RunOrder::Created), ["b-1", "a-2", "a-1"]);
        assert_eq!(by(RunOrder::Finished), ["a-2", "a-1", "b-1"]);
        assert_eq!(by(RunOrder::Name), ["a-1", "a-2", "b-1"]);
        assert_eq!(by(RunOrder::State), ["a-2", "b-1", "a-1"]);
        assert_eq!(by(RunOrder::Took), ["a-1", "a-2", "b-1"]);
    }
}
