//! The times when a run began and ended.

use super::*;
use crate::track::span::span;

#[test]
fn the_span_of_a_run_is_that_of_its_pods() {
    let created = json!({"metadata": {"name": "run-main", "labels": {"longshore.dev/role": "main"},
        "creationTimestamp": at(0).to_string()},
        "status": {"completionTime": at(500).to_string()}});
    let job: JobEvidence = serde_json::from_value(created).unwrap();
    let pod = |index: u32, seen: Seen| match seen {
        Seen::Pod(pod) => *pod,
        _ => panic!("{index} is not a pod"),
    };
    let pods = [
        pod(0, super::pod("main", 0, ended(0, 7))),
        pod(1, super::pod("main", 1, ended(0, 9))),
    ];
    let all: Vec<_> = pods.iter().collect();
    let roles = [role("main", 2)];
    // The Job controller may have been down when the pods ended.
    assert_eq!(span(&roles, &[&job], &all), (Some(at(0)), Some(at(9))));
    // Only the Job knows about deleted pods.
    assert_eq!(
        span(&roles, &[&job], &all[..1]),
        (Some(at(0)), Some(at(500)))
    );
    assert_eq!(span(&roles, &[&job], &[]), (Some(at(0)), Some(at(500))));
}
