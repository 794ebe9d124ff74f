//! Cases with the results of Kubernetes' controller.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::autoscale::testing::{at, measured, pod_requesting};

const TOLERANCES: Tolerances = Tolerances { down: 0.1, up: 0.1 };

/// The states of the pods of a case.
#[derive(Clone, Copy, PartialEq)]
enum As {
    Ready,
    Unready,
    /// A pod that has just started.
    New,
    Pending,
    Failed,
    Deleting,
}

/// Pods `p0`, `p1`, … with these requests of CPU.
fn pods(states: &[As], requests: &[&str]) -> Vec<PodFacts> {
    let states = states.iter().enumerate();
    let pods = states.map(|(index, state)| {
        let request = requests.get(index).or(requests.last()).unwrap();
        let mut pod = pod_requesting(&format!("p{index}"), request);
        match state {
            As::Ready => {}
            As::Unready => pod.unready = Some((true, at(0))),
            As::New => {
                pod.started = Some(at(990));
                pod.unready = Some((false, at(995)));
            }
            As::Pending => pod.phase = "Pending".into(),
            As::Failed => pod.phase = "Failed".into(),
            As::Deleting => pod.deleting = true,
        }
        pod
    });
    pods.collect()
}

fn usage(levels: &[i64]) -> Usage {
    let levels = levels.iter().enumerate();
    let usage = levels.map(|(index, level)| (format!("p{index}"), measured(*level)));
    usage.collect()
}

fn calculated(
    replicas: i32,
    target: Target,
    tolerances: Tolerances,
    pods: &[PodFacts],
    levels: &[i64],
) -> Result<Calculated, String> {
    let wanted = Wanted {
        resource: "cpu",
        container: None,
        target,
        tolerances,
        replicas,
    };
    super::replicas(&wanted, &usage(levels), pods, at(1000))
}

#[test]
fn replicas_for_a_utilization() {
    use As::{Deleting, Failed, New, Pending, Ready, Unready};
    // replicas, pods, levels, target: replicas, utilization
    type Case<'a> = (i32, &'a [As], &'a [i64], i32, i32, i32);
    let cases: [Case<'_>; 21] = [
        (3, &[Ready; 3], &[300, 500, 700], 30, 5, 50),
        (3, &[Unready, Ready, Ready], &[300, 500, 700], 30, 4, 60),
        (3, &[New, Ready, Ready], &[300, 500, 700], 30, 4, 60),
        (3, &[Ready, Unready, Unready], &[400, 500, 700], 30, 3, 40),
        (3, &[Ready, New, New], &[400, 500, 700], 30, 3, 40),
        (2, &[Ready, Ready, Failed, Failed], &[500, 700], 30, 4, 60),
        (
            2,
            &[Ready, Ready, Deleting, Deleting],
            &[500, 700, 9, 9],
            30,
            4,
            60,
        ),
        (5, &[Ready; 5], &[100, 300, 500, 250, 250], 50, 3, 28),
        (
            5,
            &[Ready, Ready, Ready, Unready, Unready],
            &[100, 300, 500, 250, 250],
            50,
            2,
            30,
        ),
        (
            5,
            &[Ready, Pending, Pending, Pending, Pending],
            &[100],
            50,
            1,
            10,
        ),
        (
            5,
            &[Ready, Ready, Ready, New, New],
            &[100, 300, 500, 250, 250],
            50,
            2,
            30,
        ),
        // Usage of pods that are not selected does not count.
        (
            4,
            &[Ready; 4],
            &[4000, 9500, 3000, 7000, 3200, 2000],
            100,
            24,
            587,
        ),
        // Pods without usage.
        (4, &[Ready; 4], &[400, 95], 100, 3, 24),
        (2, &[Ready; 2], &[1000], 100, 2, 100),
        (2, &[Ready; 2], &[1900], 100, 2, 190),
        (2, &[Ready; 2], &[600], 100, 2, 60),
        (3, &[Unready, Ready, Ready], &[100, 450], 50, 3, 45),
        (3, &[New, Ready, Ready], &[100, 450], 50, 3, 45),
        (3, &[Unready, Ready, Ready], &[100, 2000], 50, 4, 200),
        (
            4,
            &[Unready, Ready, Ready, Ready],
            &[100, 100, 100],
            50,
            3,
            10,
        ),
        // A third pod of a rolling update.
        (2, &[Ready; 3], &[100, 100], 50, 2, 10),
    ];
    for (replicas, states, levels, target, expected, utilization) in cases {
        let pods = pods(states, &["1"]);
        let target = Target::Utilization(target);
        let found = calculated(replicas, target, TOLERANCES, &pods, levels).unwrap();
        assert_eq!(
            (found.replicas, found.utilization),
            (expected, Some(utilization)),
            "{replicas} {levels:?} {target:?}"
        );
    }
}

#[test]
fn pods_without_usage_count_as_using_the_target_if_it_exceeds_their_requests() {
    use As::{Ready, Unready};
    let pods = pods(&[Unready, Ready, Ready, Ready], &["1", "1", "2", "2"]);
    let target = Target::Utilization(300);
    let found = calculated(4, target, TOLERANCES, &pods, &[200, 100, 100]).unwrap();
    assert_eq!((found.replicas, found.utilization), (2, Some(6)));
}

#[test]
fn small_deviations_change_nothing() {
    let pods = pods(&[As::Ready; 3], &["900m", "1", "1100m"]);
    let low = [660, 640, 650];
    for (down, up, levels, replicas, utilization) in [
        (0.1, 0.1, [1010, 1030, 1020], 3, 102),
        (0.0, 0.0, [909, 1010, 1111], 4, 101),
        (0.1, 2.0, [1890, 1910, 1900], 3, 190),
        (2.0, 0.08, [1100, 1080, 1090], 4, 109),
        (0.36, 0.1, low, 3, 65),
        (0.34, 0.1, low, 2, 65),
    ] {
        let tolerances = Tolerances { down, up };
        let target = Target::Utilization(100);
        let found = calculated(3, target, tolerances, &pods, &levels).unwrap();
        let found = (found.replicas, found.utilization);
        assert_eq!(found, (replicas, Some(utilization)), "{down} {up}");
    }
}

#[test]
fn replicas_for_a_mean_usage() {
    use As::{New, Ready};
    type Case<'a> = (i32, &'a [As], &'a [i64], i64, i32, i64);
    let cases: [Case<'_>; 6] = [
        (3, &[Ready; 3], &[20_000, 10_000, 30_000], 15_000, 4, 20_000),
        (5, &[Ready; 5], &[10_000; 5], 20_000, 3, 10_000),
        (3, &[Ready; 3], &[20_100; 3], 20_000, 3, 20_100),
        (5, &[Ready; 5], &[20_900; 5], 20_000, 5, 20_900),
        (2, &[Ready; 3], &[8500, 9500], 17_000, 2, 9000),
        (
            3,
            &[Ready, Ready, New],
            &[50_000, 15_000, 30_000],
            15_000,
            5,
            32_500,
        ),
    ];
    for (replicas, states, levels, target, expected, average) in cases {
        let pods = pods(states, &["1"]);
        let found = calculated(replicas, Target::Average(target), TOLERANCES, &pods, levels);
        let found = found.unwrap();
        assert_eq!(
            (found.replicas, found.average, found.utilization),
            (expected, average, None),
            "{levels:?} {target}"
        );
    }
}

#[test]
fn without_usable_usage_there_is_no_result() {
    use As::{Ready, Unready};
    let target = Target::Utilization(100);
    let error = |pods: &[PodFacts], levels: &[i64]| {
        calculated(1, target, TOLERANCES, pods, levels).unwrap_err()
    };
    let none = "no pods returned by selector while calculating replica count";
    assert_eq!(error(&[], &[100]), none);
    let unready = "did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(error(&pods(&[Unready], &["1"]), &[100]), unready);
    let other = &[crate::autoscale::testing::pod("other")];
    assert_eq!(
        error(other, &[100]),
        "no metrics returned matched known pods"
    );
    let mut without = pods(&[Ready], &["1"]);
    without[0] = PodFacts::read(
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p0"}, "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": "Running"},
        }))
        .unwrap(),
    );
    let mut wanted = Wanted {
        resource: "memory",
        container: None,
        target,
        tolerances: TOLERANCES,
        replicas: 1,
    };
    let missing = super::replicas(&wanted, &usage(&[100]), &without, at(1000));
    let text = "missing request for memory in container main of Pod p0";
    assert_eq!(missing, Err(text.to_owned()));
    wanted.target = Target::Average(50);
    let found = super::replicas(&wanted, &usage(&[100]), &without, at(1000));
    assert_eq!(found.map(|found| found.replicas), Ok(2));
}
