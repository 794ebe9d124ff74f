//! Computes the desired replicas from all metrics of an autoscaler. Pure.

use k8s_openapi::api::autoscaling::v2::MetricStatus;

use super::{
    autoscaler::Autoscaler,
    draft::{ACTIVE, Draft},
    metric::{Facts, Failure, evaluate},
};

/// The result for all metrics.
#[derive(Debug)]
pub(super) struct Computed {
    /// The replicas with the description of the metric that requires them, or the reason why
    /// the replicas cannot be computed.
    pub(super) desired: Result<(i32, String), String>,
    pub(super) metrics: Vec<MetricStatus>,
}

/// Computes the replicas: the highest number that a metric requires. If a metric cannot be
/// evaluated, the replicas are not decreased.
pub(super) fn compute(autoscaler: &Autoscaler, facts: &Facts<'_>, draft: &mut Draft) -> Computed {
    let mut metrics = Vec::new();
    let mut highest: Option<(i32, String)> = None;
    let mut failures = 0;
    let mut first: Option<Failure> = None;
    for metric in &autoscaler.metrics {
        match evaluate(metric, facts) {
            Ok(found) => {
                metrics.push(found.status);
                let is_higher =
                    |(replicas, _): &(i32, String)| *replicas == 0 || found.replicas > *replicas;
                if highest.as_ref().is_none_or(is_higher) {
                    highest = Some((found.replicas, found.name));
                }
            }
            Err(failure) => {
                metrics.push(MetricStatus::default());
                draft.warn(failure.reason, failure.problem.clone());
                failures += 1;
                first.get_or_insert(failure);
            }
        }
    }
    let (replicas, name) = highest.unwrap_or_default();
    let count = autoscaler.metrics.len();
    let has_failed = failures >= count || failures > 0 && replicas < facts.replicas;
    let desired = match first.filter(|_| has_failed) {
        Some(first) => {
            let problem = &first.problem;
            let message = format!("the HPA was unable to compute the replica count: {problem}");
            draft.set(ACTIVE, false, first.reason, &message);
            let error = first.error;
            Err(format!(
                "invalid metrics ({failures} invalid out of {count}), first error is: {error}"
            ))
        }
        None => {
            let message =
                format!("the HPA was able to successfully calculate a replica count from {name}");
            draft.set(ACTIVE, true, "ValidMetricFound", &message);
            Ok((replicas, name))
        }
    };
    Computed { desired, metrics }
}

#[cfg(test)]
mod tests;
