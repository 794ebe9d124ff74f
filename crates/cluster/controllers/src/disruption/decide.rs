//! Decides the status of a PodDisruptionBudget. Pure: the current time is an argument.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use longshore_model::time;

use super::{
    budget::Budget,
    pod::PodFacts,
    status::{Condition, Status, set_condition},
};

/// The time for which an evicted pod counts as unavailable although it has not been deleted.
pub(super) const DELETION_TIMEOUT: Duration = Duration::from_secs(120);
const CONDITION: &str = "DisruptionAllowed";

/// The number of pods that a budget expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) pods: i32,
    pub(super) healthy: i32,
}

/// Returns true if the number of expected pods comes from the pods' controllers.
pub(super) fn needs_scale(budget: &Budget) -> bool {
    use super::budget::Amount::Percentage;
    budget.max_unavailable.is_some() || matches!(budget.min_available, Some(Percentage(_)))
}

/// Returns the numbers of pods that a budget expects and requires. `scale` is the sum of the
/// desired pods of the pods' controllers.
///
/// # Errors
/// A percentage is invalid.
pub(super) fn expected(budget: &Budget, pods: usize, scale: i32) -> Result<Expected, String> {
    let pods = i32::try_from(pods).unwrap_or(i32::MAX);
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(most), _) => Ok(Expected {
            pods: scale,
            healthy: scale.saturating_sub(most.of(scale)?).max(0),
        }),
        (None, Some(least)) => {
            let total = if needs_scale(budget) { scale } else { pods };
            Ok(Expected {
                pods: total,
                healthy: least.of(total)?,
            })
        }
        (None, None) => Ok(Expected {
            pods: 0,
            healthy: 0,
        }),
    }
}

/// The new status, and the time until the next check.
#[derive(Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) status: Status,
    pub(super) check_after: Option<Duration>,
    /// The pods that were evicted but not deleted in time.
    pub(super) not_deleted: Vec<usize>,
}

/// Returns the time at which an evicted pod counts as available again if it has not been deleted.
fn deadline(evicted: &str) -> Option<Timestamp> {
    time::parse(evicted)?.checked_add(DELETION_TIMEOUT).ok()
}

/// Decides the status of a budget.
pub(super) fn decide(
    budget: &Budget,
    pods: &[PodFacts],
    expected: Expected,
    now: Timestamp,
) -> Decision {
    let old = &budget.status;
    let mut disrupted = BTreeMap::new();
    let mut next: Option<Timestamp> = None;
    let mut not_deleted = Vec::new();
    let evicted = old.disrupted_pods.as_ref();
    let mut healthy = 0_i32;
    for (at, pod) in pods.iter().enumerate().filter(|(_, pod)| !pod.deleting) {
        let evicted = evicted.and_then(|pods| pods.get(&pod.key.name));
        let until = evicted.and_then(|time| deadline(time));
        if let (Some(time), Some(until)) = (evicted, until) {
            if until < now {
                not_deleted.push(at);
            } else {
                next = Some(next.map_or(until, |next| next.min(until)));
                disrupted.insert(pod.key.name.clone(), time.clone());
            }
        }
        let is_leaving = until.is_some_and(|until| until > now);
        if pod.ready && !is_leaving {
            healthy = healthy.saturating_add(1);
        }
    }
    let allowed = match expected.pods {
        ..=0 => 0,
        _ => healthy.saturating_sub(expected.healthy).max(0),
    };
    let (status, reason) = match allowed {
        0 => ("False", "InsufficientPods"),
        _ => ("True", "SufficientPods"),
    };
    let mut conditions = old.conditions.clone().unwrap_or_default();
    let condition = Condition {
        r#type: CONDITION.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        observed_generation: Some(budget.generation),
        ..Condition::default()
    };
    set_condition(&mut conditions, condition, now);
    Decision {
        status: Status {
            current_healthy: healthy,
            desired_healthy: expected.healthy,
            disruptions_allowed: allowed,
            expected_pods: expected.pods,
            observed_generation: budget.generation,
            disrupted_pods: Some(disrupted).filter(|pods| !pods.is_empty()),
            conditions: Some(conditions),
        },
        check_after: next.and_then(|at| Duration::try_from(at.duration_since(now)).ok()),
        not_deleted,
    }
}

/// Returns the status for an unknown number of expected pods, which allows no disruptions.
pub(super) fn failed(old: &Status, problem: &str, now: Timestamp) -> Status {
    let mut status = old.clone();
    status.disruptions_allowed = 0;
    let mut conditions = status.conditions.take().unwrap_or_default();
    let condition = Condition {
        r#type: CONDITION.to_owned(),
        status: "False".to_owned(),
        reason: "SyncFailed".to_owned(),
        message: problem.to_owned(),
        observed_generation: Some(old.observed_generation),
        ..Condition::default()
    };
    set_condition(&mut conditions, condition, now);
    status.conditions = Some(conditions);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disruption::{
        budget::Amount,
        testing::{budget, now, pod},
    };

    fn allowed(budget: &Budget, pods: &[PodFacts], scale: i32) -> Result<Status, String> {
        let expected = expected(budget, pods.len(), scale)?;
        Ok(decide(budget, pods, expected, now()).status)
    }

    #[test]
    fn numbers_and_percentages() -> Result<(), String> {
        let pods: Vec<_> = (0..4).map(|n| pod(&format!("p{n}"))).collect();
        let half = || Some(Amount::Percentage("50%".into()));
        let number = |number| Some(Amount::Number(number));
        // (minAvailable, maxUnavailable, scale): (expected, desired, allowed)
        for (min, max, scale, result) in [
            (number(3), None, 9, (4, 3, 1)),
            (number(5), None, 9, (4, 5, 0)),
            (half(), None, 5, (5, 3, 1)),
            (None, number(1), 4, (4, 3, 1)),
            (None, number(1), 6, (6, 5, 0)),
            (None, half(), 5, (5, 2, 2)),
            (None, number(9), 4, (4, 0, 4)),
            (None, number(1), 0, (0, 0, 0)),
            (None, None, 4, (0, 0, 0)),
        ] {
            let mut budget = budget();
            (budget.min_available, budget.max_unavailable) = (min, max);
            let status = allowed(&budget, &pods, scale)?;
            let found = (
                status.expected_pods,
                status.desired_healthy,
                status.disruptions_allowed,
            );
            assert_eq!(found, result, "{budget:?}");
            assert_eq!(status.current_healthy, 4);
        }
        Ok(())
    }

    #[test]
    fn only_ready_pods_that_stay_are_healthy() -> Result<(), String> {
        let (budget, mut unready, mut deleting) = (budget(), pod("b"), pod("c"));
        unready.ready = false;
        deleting.deleting = true;
        let status = allowed(&budget, &[pod("a"), unready, deleting], 0)?;
        assert_eq!((status.expected_pods, status.current_healthy), (3, 1));
        Ok(())
    }

    #[test]
    fn an_evicted_pod_counts_as_unavailable_for_two_minutes() {
        let mut budget = budget();
        let evicted = |seconds: i64| time::seconds(now() - jiff::Span::new().seconds(seconds));
        let evictions = [("a", 30), ("b", 120), ("c", 121), ("gone", 5)];
        let evictions = evictions.map(|(name, age)| (name.to_owned(), evicted(age)));
        budget.status.disrupted_pods = Some(evictions.clone().into());
        let pods = ["a", "b", "c", "d"].map(pod);
        let decision = decide(
            &budget,
            &pods,
            Expected {
                pods: 4,
                healthy: 1,
            },
            now(),
        );
        let left = decision.status.disrupted_pods.unwrap_or_default();
        assert_eq!(left.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(decision.not_deleted, [2]);
        assert_eq!(decision.status.current_healthy, 3);
        assert_eq!(decision.check_after, Some(Duration::ZERO));
    }

    #[test]
    fn the_condition_keeps_its_time_while_its_status_is_the_same() -> Result<(), String> {
        let mut budget = budget();
        let pods = ["a", "b"].map(pod);
        budget.status = allowed(&budget, &pods, 0)?;
        let first = budget.status.conditions.clone().unwrap_or_default();
        assert_eq!(
            (&*first[0].status, &*first[0].reason),
            ("True", "SufficientPods")
        );
        let later = now() + jiff::Span::new().seconds(9);
        let expected = expected(&budget, 2, 0)?;
        assert_eq!(
            decide(&budget, &pods, expected, later).status,
            budget.status
        );
        let mut unready = pods;
        unready[0].ready = false;
        let status = decide(&budget, &unready, expected, later).status;
        let second = status.conditions.unwrap_or_default();
        assert_eq!(
            (&*second[0].status, &*second[0].reason),
            ("False", "InsufficientPods")
        );
        assert_eq!(second[0].last_transition_time, time::seconds(later));
        let failed = failed(&budget.status, "no", later);
        let third = failed.conditions.unwrap_or_default();
        assert_eq!(
            (failed.disruptions_allowed, &*third[0].reason),
            (0, "SyncFailed")
        );
        Ok(())
    }
}
