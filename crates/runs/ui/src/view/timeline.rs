//! The stages of tasks as bars on a common time axis. Pure.

use jiff::Timestamp;

use super::TaskAttempt;
use crate::text::between;

/// The length of the axis.
pub(crate) const AXIS: i64 = 10_000;

/// A stage of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// From its creation until it has a node.
    Pending,
    /// Until its command starts: images, volumes and init containers.
    Pulling,
    /// While its command runs.
    Running,
}

impl Stage {
    /// The name, also of the CSS class.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Pulling => "pulling",
            Self::Running => "running",
        }
    }
}

/// A stage on the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) stage: Stage,
    /// The begin and the length of the bar, in parts of [`AXIS`].
    pub(crate) at: i64,
    pub(crate) length: i64,
    /// The duration of the stage.
    pub(crate) milliseconds: i64,
}

/// The bars of a pod on an axis from `begin` to `end`, which is not after the current time.
pub(crate) fn bars(attempt: &TaskAttempt, begin: Timestamp, end: Timestamp) -> Vec<Bar> {
    let Some(created) = attempt.created else {
        return Vec::new();
    };
    // A pod that ended without a recorded time ends with its last known stage.
    let is_over = matches!(
        attempt.state,
        super::TaskState::Succeeded | super::TaskState::Failed
    );
    let known = [attempt.scheduled, attempt.started].into_iter().flatten();
    let last = match attempt.finished {
        Some(finished) => finished,
        None if is_over => known.max().unwrap_or(created),
        None => end,
    };
    let scheduled = attempt.scheduled.or(attempt.started).unwrap_or(last);
    let started = attempt.started.unwrap_or(last);
    let stages = [
        (Stage::Pending, created, scheduled),
        (Stage::Pulling, scheduled, started),
        (Stage::Running, started, last),
    ];
    let total = between(begin, end).max(1);
    let place = |time: Timestamp| {
        let offset = between(begin, time).min(total);
        offset.saturating_mul(AXIS) / total
    };
    let bar = |(stage, from, to): (Stage, Timestamp, Timestamp)| {
        let milliseconds = between(from, to);
        let (at, until) = (place(from), place(to));
        (milliseconds > 0).then_some(Bar {
            stage,
            at,
            length: until.saturating_sub(at),
            milliseconds,
        })
    };
    stages.into_iter().filter_map(bar).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::TaskState, *};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn attempt(times: [Option<i64>; 4], state: TaskState) -> TaskAttempt {
        let [created, scheduled, started, finished] = times.map(|time| time.map(at));
        TaskAttempt {
            role: "worker".into(),
            index: 0,
            pod: "a".into(),
            node: String::new(),
            state,
            exit_code: None,
            reason: None,
            created,
            scheduled,
            started,
            finished,
        }
    }

    fn shown(times: [Option<i64>; 4], state: TaskState) -> Vec<(Stage, i64, i64)> {
        let bars = bars(&attempt(times, state), at(100), at(200));
        bars.iter()
            .map(|bar| (bar.stage, bar.at, bar.length))
            .collect()
    }

    #[test]
    fn an_ended_pod_has_all_stages() {
        let times = [Some(100), Some(110), Some(130), Some(180)];
        assert_eq!(
            shown(times, TaskState::Succeeded),
            [
                (Stage::Pending, 0, 1000),
                (Stage::Pulling, 1000, 2000),
                (Stage::Running, 3000, 5000)
            ]
        );
    }

    #[test]
    fn the_last_stage_of_an_active_pod_lasts_until_now() {
        let times = [Some(150), None, None, None];
        assert_eq!(
            shown(times, TaskState::Pending),
            [(Stage::Pending, 5000, 5000)]
        );
        let times = [Some(150), Some(150), Some(160), None];
        assert_eq!(
            shown(times, TaskState::Running),
            [(Stage::Pulling, 5000, 1000), (Stage::Running, 6000, 4000)]
        );
    }

    #[test]
    fn odd_times_stay_on_the_axis() {
        let times = [Some(50), Some(40), Some(900), Some(800)];
        for (_, at, length) in shown(times, TaskState::Failed) {
            assert!(at >= 0 && length >= 0 && at + length <= AXIS);
        }
        assert_eq!(shown([None; 4], TaskState::Failed), []);
        // Without recorded times, an ended pod has no bar that grows.
        assert_eq!(shown([Some(120), None, None, None], TaskState::Failed), []);
    }
}
