//! Decides the replicas of the target. Pure: the current time is part of the draft.

use super::{
    autoscaler::Autoscaler,
    draft::{ABLE, ACTIVE, Draft, LIMITED, TO_ZERO},
    history::{History, SCALE_DOWN_WINDOW},
    limits::{self, Range},
};

/// The basis for the number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// The user scaled the target to zero, so nothing is scaled.
    Disabled,
    /// The replicas are outside the limits. Contains the nearest limit and the reason.
    Limit(i32, &'static str),
    /// The metrics.
    Metrics,
}

/// The desired replicas, and the reason of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired {
    pub(super) replicas: i32,
    pub(super) reason: String,
}

/// Returns the basis for the number of replicas.
pub(super) fn basis(autoscaler: &Autoscaler, current: i32, draft: &mut Draft) -> Basis {
    if current == 0 {
        let may_increase = autoscaler.min != 0 || autoscaler.has_external_metrics();
        if autoscaler.has_scaled_to_zero() && may_increase {
            return Basis::Metrics;
        }
        let message = "scaling is disabled since the replica count of the target is zero";
        draft.set(ACTIVE, false, "ScalingDisabled", message);
        return Basis::Disabled;
    }
    if current > autoscaler.max {
        let reason = "Current number of replicas above Spec.MaxReplicas";
        return Basis::Limit(autoscaler.max, reason);
    }
    if current < autoscaler.min {
        let reason = "Current number of replicas below Spec.MinReplicas";
        return Basis::Limit(autoscaler.min, reason);
    }
    Basis::Metrics
}

/// Stabilizes and limits the replicas that the metrics require.
pub(super) fn normalize(
    autoscaler: &Autoscaler,
    current: i32,
    (wanted, metric): (i32, String),
    history: &mut History,
    draft: &mut Draft,
) -> Desired {
    let metric = if wanted > 0 { metric } else { String::new() };
    let mut reason = match wanted.cmp(&current) {
        std::cmp::Ordering::Greater => format!("{metric} above target"),
        std::cmp::Ordering::Less => "All metrics below target".to_owned(),
        std::cmp::Ordering::Equal => String::new(),
    };
    let mut replicas = limit(autoscaler, current, wanted, history, draft);
    let min = autoscaler.min;
    if current == 0 && replicas < min && autoscaler.has_scaled_to_zero() {
        replicas = min;
        if reason.is_empty() {
            reason = "Current number of replicas below Spec.MinReplicas".to_owned();
        }
    }
    Desired { replicas, reason }
}

fn limit(
    autoscaler: &Autoscaler,
    current: i32,
    wanted: i32,
    history: &mut History,
    draft: &mut Draft,
) -> i32 {
    let now = draft.now;
    let stabilized = match &autoscaler.behavior {
        None => history.stabilize(wanted, SCALE_DOWN_WINDOW, now),
        Some(behavior) => {
            let up = behavior.up.stabilization_window_seconds.unwrap_or(0);
            let down = behavior.down.stabilization_window_seconds;
            let windows = (up, down.unwrap_or(SCALE_DOWN_WINDOW));
            history.stabilize_both((current, wanted), windows, now)
        }
    };
    if stabilized == wanted {
        let message = "recommended size matches current size";
        draft.set(ABLE, true, "ReadyForNewScale", message);
    } else if autoscaler.behavior.is_some() && wanted >= current {
        let message = "recent recommendations were lower than current one, applying the lowest recent recommendation";
        draft.set(ABLE, true, "ScaleUpStabilized", message);
    } else {
        let message = "recent recommendations were higher than current one, applying the highest recent recommendation";
        draft.set(ABLE, true, "ScaleDownStabilized", message);
    }
    let range = Range {
        current,
        desired: stabilized,
        min: autoscaler.min,
        max: autoscaler.max,
    };
    let limited = match &autoscaler.behavior {
        None => limits::plain(range),
        Some(behavior) => limits::by_rules(range, behavior, history, now),
    };
    let is_limited = limited.replicas != stabilized;
    draft.set(LIMITED, is_limited, limited.reason, limited.message);
    limited.replicas
}

/// Records that the target was scaled.
pub(super) fn scaled(
    autoscaler: &Autoscaler,
    current: i32,
    desired: &Desired,
    history: &mut History,
    draft: &mut Draft,
) {
    let Desired { replicas, reason } = desired;
    let message = format!("the HPA controller was able to update the target scale to {replicas}");
    draft.set(ABLE, true, "SucceededRescale", &message);
    let message = format!("New size: {replicas}; reason: {reason}");
    draft.note("SuccessfulRescale", message);
    if let Some(behavior) = &autoscaler.behavior {
        let rules = if *replicas > current {
            &behavior.up
        } else {
            &behavior.down
        };
        let period = limits::longest_period(rules);
        history.record_change(current, *replicas, period, draft.now);
    }
    let may_be_zero = autoscaler.min == 0 && autoscaler.has_external_metrics();
    if current > 0 && *replicas == 0 && may_be_zero {
        let message = "the HPA controller scaled the workload to zero";
        draft.set(TO_ZERO, true, "ScaledToZero", message);
    } else {
        let message = "the HPA controller did not scale the workload to zero";
        draft.set(TO_ZERO, false, "NotScaledToZero", message);
    }
    draft.set_scaled();
}

/// Records that the target could not be scaled.
pub(super) fn not_scaled(desired: &Desired, error: &str, draft: &mut Draft) {
    let Desired { replicas, reason } = desired;
    let message = format!("New size: {replicas}; reason: {reason}; error: {error}");
    draft.warn("FailedRescale", message);
    let message = format!("the HPA controller was unable to update the target scale: {error}");
    draft.set(ABLE, false, "FailedUpdateScale", &message);
}

#[cfg(test)]
mod tests;
