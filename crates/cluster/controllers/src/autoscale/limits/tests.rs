//! Cases with the results of Kubernetes' controller.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::autoscale::testing::at;

fn range(current: i32, desired: i32, min: i32, max: i32) -> Range {
    Range {
        current,
        desired,
        min,
        max,
    }
}

/// Rules with a policy for a number of pods and a policy for a percentage, each with its period,
/// unless the number is 0.
fn rules(pods: (i32, i32), percent: (i32, i32), select: &str) -> HPAScalingRules {
    let policies = [("Pods", pods), ("Percent", percent)].into_iter();
    let policies = policies.filter(|(_, (value, _))| *value != 0);
    let policies = policies.map(
        |(kind, (value, period))| json!({"type": kind, "value": value, "periodSeconds": period}),
    );
    let policies: Vec<_> = policies.collect();
    serde_json::from_value(json!({"policies": policies, "selectPolicy": select})).unwrap()
}

/// The default rules of the API server.
fn defaults() -> Behavior {
    Behavior {
        up: rules((4, 15), (100, 15), "Max"),
        down: rules((0, 0), (100, 15), "Max"),
    }
}

/// A history of changes that are spread over the last 120 seconds.
fn history(ups: &[i32], downs: &[i32]) -> History {
    let mut history = History::default();
    for (changes, sign) in [(ups, 1), (downs, -1)] {
        let count = i64::try_from(changes.len()).unwrap();
        for (change, index) in changes.iter().zip(0..) {
            let age = 120 - 120 * (index + 1) / count + 60 / count;
            history.record_change(0, sign * change, 1800, at(-age));
        }
    }
    history
}

#[test]
fn limits_without_rules() {
    for (current, desired, min, max, replicas, reason) in [
        (5, 7, 3, 8, 7, "DesiredWithinRange"),
        (3, 1, 2, 8, 2, "TooFewReplicas"),
        (1, 0, 0, 10, 0, "DesiredWithinRange"),
        (20, 1000, 1, 10, 10, "TooManyReplicas"),
        (3, 1000, 1, 2000, 6, "ScaleUpLimit"),
        (1, 1000, 1, 2000, 4, "ScaleUpLimit"),
    ] {
        let found = plain(range(current, desired, min, max));
        assert_eq!((found.replicas, found.reason), (replicas, reason));
    }
}

#[test]
fn the_lowest_change_of_the_policies() {
    let rules = rules((2, 60), (50, 60), "Min");
    let history = History::default();
    assert_eq!(most(1, &rules, &history, at(0)), 2);
    assert_eq!(least(5, &rules, &history, at(0)), 3);
}

#[test]
fn a_disabled_direction() {
    let mut behavior = defaults();
    behavior.up.select_policy = Some("Disabled".into());
    behavior.down.select_policy = Some("Disabled".into());
    for (desired, reason) in [(9, "ScaleUpLimit"), (1, "ScaleDownLimit")] {
        let found = by_rules(
            range(5, desired, 1, 10),
            &behavior,
            &History::default(),
            at(0),
        );
        assert_eq!((found.replicas, found.reason), (5, reason));
    }
}

#[test]
fn increases_by_rules() {
    type Policy = (i32, i32);
    const NONE: Policy = (0, 0);
    // current, desired, min, max, policies, increases: replicas, reason
    type Case<'a> = (i32, i32, i32, i32, Policy, Policy, &'a [i32], i32, &'a str);
    let cases: [Case<'_>; 18] = [
        (5, 7, 3, 8, (4, 15), (100, 15), &[], 7, "DesiredWithinRange"),
        (
            20,
            1000,
            1,
            10,
            (4, 15),
            (100, 15),
            &[],
            10,
            "TooManyReplicas",
        ),
        (
            100,
            1000,
            100,
            150,
            (4, 15),
            (100, 15),
            &[],
            150,
            "TooManyReplicas",
        ),
        (3, 1000, 1, 2000, NONE, (1, 60), &[], 4, "ScaleUpLimit"),
        (10, 50, 1, 1000, (4, 15), (100, 15), &[], 20, "ScaleUpLimit"),
        (
            10,
            500,
            1,
            1000,
            (100, 60),
            (100, 60),
            &[],
            110,
            "ScaleUpLimit",
        ),
        (
            10,
            500,
            1,
            1000,
            (2, 60),
            (100, 60),
            &[],
            20,
            "ScaleUpLimit",
        ),
        (
            10,
            50,
            1,
            1000,
            (100, 60),
            NONE,
            &[],
            50,
            "DesiredWithinRange",
        ),
        (10, 50, 1, 1000, (30, 60), NONE, &[], 40, "ScaleUpLimit"),
        (10, 50, 1, 1000, NONE, (200, 60), &[], 30, "ScaleUpLimit"),
        (
            100,
            500,
            1,
            200,
            (300, 60),
            NONE,
            &[1, 5, 9],
            200,
            "TooManyReplicas",
        ),
        (
            100,
            500,
            1,
            200,
            NONE,
            (10_000, 60),
            &[1, 5, 9],
            200,
            "TooManyReplicas",
        ),
        (
            100,
            500,
            1,
            1000,
            (5, 120),
            NONE,
            &[1, 5, 9],
            100,
            "ScaleUpLimit",
        ),
        (
            100,
            500,
            1,
            1000,
            (150, 120),
            NONE,
            &[1, 5, 9],
            235,
            "ScaleUpLimit",
        ),
        (
            100,
            500,
            1,
            1000,
            NONE,
            (200, 120),
            &[1, 5, 9],
            255,
            "ScaleUpLimit",
        ),
        (
            100,
            200,
            1,
            1000,
            (1000, 60),
            NONE,
            &[8, 12, 9, 11],
            200,
            "DesiredWithinRange",
        ),
        (
            100,
            200,
            1,
            1000,
            (1000, 120),
            (100, 60),
            &[8, 12, 9, 11],
            200,
            "DesiredWithinRange",
        ),
        (
            100,
            200,
            1,
            1000,
            (1000, 30),
            (100, 60),
            &[8, 12, 9, 11],
            200,
            "DesiredWithinRange",
        ),
    ];
    for (current, desired, min, max, pods, percent, ups, replicas, reason) in cases {
        let mut behavior = defaults();
        behavior.up = rules(pods, percent, "Max");
        let range = range(current, desired, min, max);
        let found = by_rules(range, &behavior, &history(ups, &[]), at(0));
        let found = (found.replicas, found.reason);
        assert_eq!(found, (replicas, reason), "{range:?} {pods:?} {percent:?}");
    }
}

#[test]
fn decreases_by_rules() {
    type Policy = (i32, i32);
    const NONE: Policy = (0, 0);
    // current, desired, min, policies, decreases: replicas, reason
    type Case<'a> = (i32, i32, i32, Policy, Policy, &'a [i32], i32, &'a str);
    let cases: [Case<'_>; 16] = [
        (3, 1, 2, NONE, (100, 15), &[], 2, "TooFewReplicas"),
        (1, 0, 0, NONE, (100, 15), &[], 0, "DesiredWithinRange"),
        (100, 2, 1, (20, 60), (1, 60), &[], 80, "ScaleDownLimit"),
        (100, 2, 1, (2, 60), (1, 60), &[], 98, "ScaleDownLimit"),
        (10, 0, 1, (100, 60), NONE, &[], 1, "TooFewReplicas"),
        (10, 2, 5, NONE, (100, 60), &[], 5, "TooFewReplicas"),
        (10, 2, 1, (5, 60), NONE, &[], 5, "ScaleDownLimit"),
        (10, 5, 1, NONE, (50, 60), &[], 5, "DesiredWithinRange"),
        (
            10,
            5,
            1,
            NONE,
            (100, 15),
            &[1, 5, 9],
            5,
            "DesiredWithinRange",
        ),
        (100, 0, 1, (115, 120), NONE, &[1, 5, 9], 1, "TooFewReplicas"),
        (100, 0, 5, (130, 120), NONE, &[1, 5, 9], 5, "TooFewReplicas"),
        (100, 2, 5, NONE, (100, 120), &[1, 5, 9], 5, "TooFewReplicas"),
        (100, 2, 1, (5, 120), NONE, &[1, 5, 9], 100, "ScaleDownLimit"),
        (100, 0, 1, NONE, (50, 120), &[2, 4, 6], 56, "ScaleDownLimit"),
        (
            100,
            0,
            1,
            NONE,
            (10, 120),
            &[10, 10, 10],
            100,
            "ScaleDownLimit",
        ),
        (
            10,
            5,
            1,
            NONE,
            (1000, 120),
            &[10, 10, 10],
            5,
            "DesiredWithinRange",
        ),
    ];
    for (current, desired, min, pods, percent, downs, replicas, reason) in cases {
        let mut behavior = defaults();
        behavior.down = rules(pods, percent, "Max");
        let range = range(current, desired, min, 1000);
        let found = by_rules(range, &behavior, &history(&[], downs), at(0));
        let found = (found.replicas, found.reason);
        assert_eq!(found, (replicas, reason), "{range:?} {pods:?} {percent:?}");
    }
}

#[test]
fn both_directions_count_for_the_replicas_at_the_beginning_of_a_period() {
    let behavior = Behavior {
        up: rules((0, 0), (300, 300), "Max"),
        down: rules((0, 0), (50, 180), "Max"),
    };
    let found = by_rules(
        range(6, 24, 1, 1000),
        &behavior,
        &history(&[4], &[2]),
        at(0),
    );
    assert_eq!((found.replicas, found.reason), (16, "ScaleUpLimit"));
    let found = by_rules(
        range(10, 1, 1, 1000),
        &behavior,
        &history(&[2], &[4]),
        at(0),
    );
    assert_eq!((found.replicas, found.reason), (6, "ScaleDownLimit"));
}

#[test]
fn the_longest_period() {
    assert_eq!(longest_period(&rules((1, 60), (1, 15), "Max")), 60);
    assert_eq!(longest_period(&HPAScalingRules::default()), 0);
}
