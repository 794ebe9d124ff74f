//! Sidecars, which the containers of a pod wait for.

use super::*;

/// A pod that is being initialized by these init containers.
fn initializing(specs: Value, statuses: Value) -> Seen {
    let Seen::Pod(mut pod) = pod(
        "main",
        0,
        json!({"phase": "Pending", "initContainerStatuses": statuses}),
    ) else {
        panic!()
    };
    pod.spec.init_containers = serde_json::from_value(specs).unwrap();
    Seen::Pod(pod)
}

/// A pod whose code was fetched, and whose sidecar has this state.
fn with_sidecar(state: Value, started: bool) -> Seen {
    let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    let last = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    initializing(
        json!([{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}]),
        json!([
            {"name": "fetch", "state": done},
            {"name": "proxy", "state": state, "lastState": last, "started": started},
        ]),
    )
}

#[test]
fn a_task_whose_sidecar_does_not_start_is_given_up() {
    let mut track = track(&[role("main", 1)]);
    track.see(with_sidecar(json!({"running": {}}), false), at(10));
    assert_eq!(outcome(&track.see(Seen::Tick, at(609))), None);
    let steps = track.see(Seen::Tick, at(611));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::NotStarted, 4));
    assert_eq!(
        found.reason,
        "main/0: its sidecar \"proxy\" did not start within 600 s"
    );
}

/// Each of these states lasts for less than the shortest limit.
#[test]
fn a_task_whose_sidecar_is_restarted_without_end_is_given_up() {
    let mut track = track(&[role("main", 1)]);
    let states = [
        json!({"running": {}}),
        json!({"terminated": {"exitCode": 1, "reason": "Error"}}),
        json!({"waiting": {"reason": "CrashLoopBackOff"}}),
    ];
    let changes = (0..62).zip(states.iter().cycle());
    let given_up = changes.into_iter().find_map(|(number, state)| {
        let steps = track.see(with_sidecar(state.clone(), false), at(number * 10));
        let (found, _) = outcome(&steps)?;
        Some((number * 10, found.ending))
    });
    assert_eq!(given_up, Some((600, Ending::NotStarted)));
}

#[test]
fn a_sidecar_that_has_started_does_not_limit_init_containers() {
    let mut track = track(&[role("main", 1)]);
    let waits = initializing(
        json!([{"name": "proxy", "restartPolicy": "Always"}, {"name": "fetch"}]),
        json!([
            {"name": "proxy", "state": {"running": {}}, "started": true},
            {"name": "fetch", "state": {"running": {}}},
        ]),
    );
    track.see(waits, at(0));
    assert_eq!(outcome(&track.see(Seen::Tick, at(5_000))), None);
}
