//! Groups pods by their effect on a metric. Pure: the current time is an argument.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{pod::PodFacts, usage::Usage};

/// The time after a pod's start during which initialization may cause its CPU usage.
const CPU_INITIALIZATION: SignedDuration = SignedDuration::from_mins(5);
/// The time after a pod's start during which the pod may become unready for the first time.
const INITIAL_READINESS_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// The pods, grouped by their effect on a metric.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Groups<'a> {
    /// The number of pods whose usage counts.
    pub(super) ready: usize,
    /// Pods that do not run yet, or whose usage does not count yet.
    pub(super) unready: BTreeSet<&'a str>,
    /// The pods that were not measured.
    pub(super) missing: BTreeSet<&'a str>,
    /// The pods that are terminating or have failed.
    pub(super) ignored: BTreeSet<&'a str>,
}

fn is_after(start: Timestamp, delay: SignedDuration, time: Timestamp) -> bool {
    time.duration_since(start) < delay
}

/// Groups pods.
pub(super) fn group<'a>(
    pods: &'a [PodFacts],
    usage: &Usage,
    resource: &str,
    now: Timestamp,
) -> Groups<'a> {
    let mut groups = Groups::default();
    for pod in pods {
        let name = pod.name.as_str();
        if pod.deleting || pod.phase == "Failed" {
            groups.ignored.insert(name);
            continue;
        }
        if pod.phase == "Pending" {
            groups.unready.insert(name);
            continue;
        }
        let Some(measured) = usage.get(name) else {
            groups.missing.insert(name);
            continue;
        };
        let is_unready = match (pod.unready, pod.started) {
            _ if resource != "cpu" => false,
            (Some((is_unready, since)), Some(started)) => {
                if is_after(started, CPU_INITIALIZATION, now) {
                    is_unready || is_after(since, measured.window, measured.at)
                } else {
                    is_unready && is_after(started, INITIAL_READINESS_DELAY, since)
                }
            }
            _ => true,
        };
        if is_unready {
            groups.unready.insert(name);
        } else {
            groups.ready += 1;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::testing::{at, measured, pod};

    /// Returns true if a pod counts. `unready` is true if the pod is unready, with the time of the
    /// last transition. `measured_at` is the end of a measurement of 60 seconds. All times are in
    /// seconds.
    fn is_counted(started: i64, unready: (bool, i64), measured_at: i64, now: i64) -> bool {
        let mut pod = pod("p");
        pod.started = Some(at(started));
        pod.unready = Some((unready.0, at(unready.1)));
        let mut one = measured(100);
        one.at = at(measured_at);
        one.window = SignedDuration::from_secs(60);
        let usage = Usage::from([("p".to_owned(), one)]);
        group(&[pod], &usage, "cpu", at(now)).ready == 1
    }

    #[test]
    fn the_cpu_usage_of_an_initializing_pod_does_not_count() {
        for (started, unready, measured_at, now, counts) in [
            // Ready during the whole measurement.
            (0, (false, 30), 90, 100, true),
            // Ready during a part of the measurement.
            (0, (false, 30), 89, 100, false),
            // Unready during the initialization.
            (0, (true, 30), 200, 250, false),
            // After the initialization, a pod that became unready counts. A pod that was never
            // ready does not.
            (0, (true, 60), 400, 400, true),
            (0, (true, 29), 400, 400, false),
            (0, (true, 30), 400, 400, true),
            (0, (false, 390), 400, 400, true),
        ] {
            let found = is_counted(started, unready, measured_at, now);
            assert_eq!(found, counts, "{started} {unready:?} {measured_at} {now}");
        }
    }

    #[test]
    fn pods_are_grouped() {
        let mut pods = ["run", "gone", "failed", "pending", "unmeasured", "new"].map(pod);
        pods[1].deleting = true;
        pods[2].phase = "Failed".into();
        pods[3].phase = "Pending".into();
        pods[5].unready = None;
        let names = ["run", "gone", "failed", "pending", "new"];
        let usage: Usage = names.map(|name| (name.to_owned(), measured(1))).into();
        let groups = group(&pods, &usage, "cpu", at(1000));
        assert_eq!(groups.ready, 1);
        assert_eq!(groups.ignored, BTreeSet::from(["failed", "gone"]));
        assert_eq!(groups.unready, BTreeSet::from(["new", "pending"]));
        assert_eq!(groups.missing, BTreeSet::from(["unmeasured"]));
        // Only CPU usage depends on readiness.
        assert_eq!(group(&pods, &usage, "memory", at(1000)).ready, 2);
    }
}
