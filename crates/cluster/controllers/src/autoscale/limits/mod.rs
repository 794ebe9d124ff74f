//! Limits the desired replicas. Pure: the current time is an argument.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::HPAScalingRules;

use super::{autoscaler::Behavior, history::History};

/// The permitted replicas, and the limit that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

const UP_RATE: (&str, &str) = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
);
const DOWN_RATE: (&str, &str) = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);
const TOO_MANY: (&str, &str) = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
);
const TOO_FEW: (&str, &str) = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
);
const WITHIN: (&str, &str) = (
    "DesiredWithinRange",
    "the desired count is within the acceptable range",
);

fn limited(replicas: i32, (reason, message): (&'static str, &'static str)) -> Limited {
    Limited {
        replicas,
        reason,
        message,
    }
}

/// The replicas of an autoscaler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) current: i32,
    pub(super) desired: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// Limits the replicas of an autoscaler without rules. One change can double them at most, but an
/// increase to four is always permitted.
pub(super) fn plain(range: Range) -> Limited {
    let rate = range.current.saturating_mul(2).max(4);
    let (most, limit) = if range.max > rate {
        (rate, UP_RATE)
    } else {
        (range.max, TOO_MANY)
    };
    if range.desired < range.min {
        limited(range.min, TOO_FEW)
    } else if range.desired > most {
        limited(most, limit)
    } else {
        limited(range.desired, WITHIN)
    }
}

/// Limits the replicas by rules.
pub(super) fn by_rules(
    range: Range,
    behavior: &Behavior,
    history: &History,
    now: Timestamp,
) -> Limited {
    let Range {
        current,
        desired,
        min,
        max,
    } = range;
    if desired > current {
        let rate = most(current, &behavior.up, history, now).max(current);
        let (most, limit) = if max > rate {
            (rate, UP_RATE)
        } else {
            (max, TOO_MANY)
        };
        if desired > most {
            return limited(most, limit);
        }
    } else if desired < current {
        let rate = least(current, &behavior.down, history, now).min(current);
        let (least, limit) = if min < rate {
            (rate, DOWN_RATE)
        } else {
            (min, TOO_FEW)
        };
        if desired < least {
            return limited(least, limit);
        }
    }
    limited(desired, WITHIN)
}

fn is_disabled(rules: &HPAScalingRules) -> bool {
    rules.select_policy.as_deref() == Some("Disabled")
}

/// Returns the limit of each policy, as a number of pods or a percentage of the replicas at the
/// beginning of its period.
fn proposals<'a>(
    current: i32,
    rules: &'a HPAScalingRules,
    history: &'a History,
    now: Timestamp,
    percent: fn(i32, i32) -> i32,
    pods: fn(i32, i32) -> i32,
) -> impl Iterator<Item = i32> + 'a {
    let policies = rules.policies.iter().flatten();
    policies.map(move |policy| {
        let start = history.replicas_before(current, policy.period_seconds, now);
        match &*policy.type_ {
            "Pods" => pods(start, policy.value),
            _ => percent(start, policy.value),
        }
    })
}

/// Returns the maximum replicas that the rules permit.
fn most(current: i32, rules: &HPAScalingRules, history: &History, now: Timestamp) -> i32 {
    if is_disabled(rules) {
        return current;
    }
    // Rounded up, so that a small percentage permits an increase.
    let percent = |start: i32, value: i32| {
        let part = i64::from(start).saturating_mul(100 + i64::from(value));
        let whole = part.div_euclid(100) + i64::from(part.rem_euclid(100) > 0);
        i32::try_from(whole).unwrap_or(i32::MAX)
    };
    let proposals = proposals(current, rules, history, now, percent, i32::saturating_add);
    let chosen = match rules.select_policy.as_deref() {
        Some("Min") => proposals.min(),
        _ => proposals.max(),
    };
    chosen.unwrap_or(current)
}

/// Returns the minimum replicas that the rules permit.
fn least(current: i32, rules: &HPAScalingRules, history: &History, now: Timestamp) -> i32 {
    if is_disabled(rules) {
        return current;
    }
    let percent = |start: i32, value: i32| {
        let part = i64::from(start).saturating_mul(100 - i64::from(value));
        i32::try_from(part / 100).unwrap_or(i32::MIN)
    };
    let proposals = proposals(current, rules, history, now, percent, i32::saturating_sub);
    let chosen = match rules.select_policy.as_deref() {
        Some("Min") => proposals.max(),
        _ => proposals.min(),
    };
    chosen.unwrap_or(current)
}

/// Returns the longest period of the rules in seconds.
pub(super) fn longest_period(rules: &HPAScalingRules) -> i32 {
    let policies = rules.policies.iter().flatten();
    let periods = policies.map(|policy| policy.period_seconds);
    periods.max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
