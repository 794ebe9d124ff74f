//! Calculates replicas from the usage of pods. Pure: the current time is an argument.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{autoscaler::Tolerances, group::group, pod::PodFacts, usage::Usage};

/// The desired usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A percentage of the requests.
    Utilization(i32),
    /// A mean usage of the pods, in thousandths.
    Average(i64),
}

/// The metric of a resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) resource: &'a str,
    pub(super) container: Option<&'a str>,
    pub(super) target: Target,
    pub(super) tolerances: Tolerances,
    /// The current number of replicas.
    pub(super) replicas: i32,
}

/// The calculated replicas, and the measured usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calculated {
    pub(super) replicas: i32,
    /// The percentage of the requests that is used, for a target of this form.
    pub(super) utilization: Option<i32>,
    /// The mean usage in thousandths.
    pub(super) average: i64,
}

/// Rounds up. Numbers that are too large become `i32::MAX`.
fn rounded_up(number: f64) -> i32 {
    #[allow(clippy::cast_possible_truncation, reason = "saturation is intended")]
    {
        number.ceil() as i32
    }
}

/// The usage relative to the target.
struct Relative {
    ratio: f64,
    utilization: Option<i32>,
    average: i64,
}

fn relative(
    values: &BTreeMap<&str, i64>,
    requests: &BTreeMap<&str, i64>,
    target: Target,
) -> Result<Relative, String> {
    let limited = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
    let mean = |sum: i128, count: usize| limited(sum / i128::try_from(count.max(1)).unwrap_or(1));
    match target {
        Target::Average(target) => {
            let sum = values.values().map(|value| i128::from(*value)).sum();
            let average = mean(sum, values.len());
            Ok(Relative {
                ratio: average as f64 / target as f64,
                utilization: None,
                average,
            })
        }
        Target::Utilization(target) => {
            let known = values.iter();
            let known = known.filter_map(|(name, value)| Some((*value, *requests.get(name)?)));
            let (mut used, mut requested, mut count) = (0_i128, 0_i128, 0_usize);
            for (value, request) in known {
                used += i128::from(value);
                requested += i128::from(request);
                count += 1;
            }
            if requested == 0 {
                return Err("no metrics returned matched known pods".to_owned());
            }
            let utilization = i32::try_from(used * 100 / requested).unwrap_or(i32::MAX);
            Ok(Relative {
                ratio: f64::from(utilization) / f64::from(target),
                utilization: Some(utilization),
                average: mean(used, count),
            })
        }
    }
}

/// Calculates the replicas for a metric of pods that the target selects.
///
/// # Errors
/// Returns Kubernetes' message if the replicas cannot be calculated from the usage.
pub(super) fn replicas(
    wanted: &Wanted<'_>,
    usage: &Usage,
    pods: &[PodFacts],
    now: Timestamp,
) -> Result<Calculated, String> {
    if pods.is_empty() {
        return Err("no pods returned by selector while calculating replica count".to_owned());
    }
    let groups = group(pods, usage, wanted.resource, now);
    let counts = |name: &str| !groups.ignored.contains(name) && !groups.unready.contains(name);
    let values = usage.iter().filter(|(name, _)| counts(name));
    let mut values: BTreeMap<&str, i64> = values.map(|(name, one)| (&**name, one.value)).collect();
    if values.is_empty() {
        let text = "did not receive metrics for targeted pods (pods might be unready)";
        return Err(text.to_owned());
    }
    let mut requests = BTreeMap::new();
    if matches!(wanted.target, Target::Utilization(_)) {
        for pod in pods {
            let request = pod.request(wanted.resource, wanted.container)?;
            requests.insert(&*pod.name, request);
        }
    }
    let found = relative(&values, &requests, wanted.target)?;
    let result = |replicas| Calculated {
        replicas,
        utilization: found.utilization,
        average: found.average,
    };
    let unchanged = result(wanted.replicas);
    let with_unready = !groups.unready.is_empty() && found.ratio > 1.0;
    if !with_unready && groups.missing.is_empty() {
        return Ok(match wanted.tolerances.include(found.ratio) {
            true => unchanged,
            false => result(rounded_up(found.ratio * groups.ready as f64)),
        });
    }
    // Pods without usage must not enlarge the change. They count as unused before an increase.
    // Before a decrease, they count with the target value or, for a utilization, with at least
    // their whole request.
    for name in &groups.missing {
        if found.ratio < 1.0 {
            let value = match wanted.target {
                Target::Average(target) => target,
                Target::Utilization(target) => {
                    let request = requests.get(name).copied().unwrap_or(0);
                    request.saturating_mul(i64::from(target.max(100))) / 100
                }
            };
            values.insert(name, value);
        } else if found.ratio > 1.0 {
            values.insert(name, 0);
        }
    }
    if with_unready {
        values.extend(groups.unready.iter().map(|name| (*name, 0)));
    }
    let ratio = relative(&values, &requests, wanted.target)?.ratio;
    let turns = |ratio: f64| found.ratio < 1.0 && ratio > 1.0 || found.ratio > 1.0 && ratio < 1.0;
    if wanted.tolerances.include(ratio) || turns(ratio) {
        return Ok(unchanged);
    }
    let replicas = rounded_up(ratio * values.len() as f64);
    let is_opposite =
        ratio < 1.0 && replicas > wanted.replicas || ratio > 1.0 && replicas < wanted.replicas;
    Ok(match is_opposite {
        true => unchanged,
        false => result(replicas),
    })
}

#[cfg(test)]
mod tests;
