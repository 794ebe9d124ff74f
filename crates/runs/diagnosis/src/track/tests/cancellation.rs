//! Runs that the user cancelled or removed.

use super::*;

#[test]
fn a_pod_that_ends_because_of_a_cancellation_is_not_a_failure() {
    let mut track = track(&[role("main", 1)]);
    let Seen::Pod(mut killed) = pod("main", 0, ended(143, 2)) else {
        panic!()
    };
    killed.metadata.deletion_timestamp = Some(at(1));
    assert_eq!(outcome(&track.see(Seen::Pod(killed), at(2))), None);
    let annotations = json!({"longshore.dev/cancelled": "now"});
    let steps = track.see(changed_job("main", json!({}), annotations, 0), at(2));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::Cancelled);
}

#[test]
fn cancelled_and_removed_runs_end() {
    let mut cancelled = track(&[role("main", 1)]);
    cancelled.see(pod("main", 0, running()), at(1));
    let annotations = json!({"longshore.dev/cancelled": "now"});
    let steps = cancelled.see(changed_job("main", json!({}), annotations, 0), at(2));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::Cancelled, 130));
    assert!(cancelled.going_on().is_empty());

    let mut removed = track(&[role("main", 1)]);
    let steps = removed.see(Seen::JobGone("main".into()), at(2));
    assert_eq!(outcome(&steps).unwrap().0.reason, "the run was removed");
}

/// A run that was created a moment ago is not treated as removed before its watch reports it.
#[test]
fn a_run_without_jobs_is_looked_at_again_before_it_counts_as_removed() {
    let mut track = Track::new(vec![role("main", 1)], Duration::from_secs(600), at(0));
    let steps = track.see(Seen::Synced, at(1));
    let Some(Step::Decided { outcome, .. }) = steps.last() else {
        panic!("{steps:?}")
    };
    assert_eq!(outcome.ending, Ending::Cancelled);
    track.reconsider();
    let steps = track.see(job("main", json!({})), at(1));
    assert_eq!(super::outcome(&steps), None);
}
