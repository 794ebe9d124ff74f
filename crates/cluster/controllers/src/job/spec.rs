//! A Job's spec with Kubernetes' defaults.

use k8s_openapi::api::batch::v1::{Job, JobSpec};

/// A Job's spec, with defaults applied.
#[derive(Debug, Clone)]
pub(crate) struct EffectiveSpec<'a> {
    /// The spec itself.
    pub(crate) spec: &'a JobSpec,
    /// The maximum number of concurrent pods.
    pub(crate) parallelism: u64,
    /// The required number of successes. `None` means that one success is enough
    /// and that no pods are created after it.
    pub(crate) completions: Option<u32>,
    /// True if each pod has a completion index.
    pub(crate) indexed: bool,
    /// True if the Job is suspended.
    pub(crate) suspended: bool,
    /// The number of failures before the Job fails.
    pub(crate) backoff_limit: u64,
    /// The number of failures before an index fails.
    pub(crate) backoff_limit_per_index: Option<i64>,
    /// True if a pod in deletion is replaced only after it has finished.
    pub(crate) replace_only_failed: bool,
}

impl<'a> EffectiveSpec<'a> {
    /// Reads a Job's spec; `None` if it has none.
    pub(crate) fn of(job: &'a Job) -> Option<Self> {
        let spec = job.spec.as_ref()?;
        let count = |number: i32| u64::try_from(number).unwrap_or(0);
        let indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let completions = match (spec.completions, spec.parallelism) {
            (Some(completions), _) => u32::try_from(completions).ok(),
            (None, None) => Some(1),
            (None, Some(parallelism)) if indexed => u32::try_from(parallelism).ok(),
            (None, Some(_)) => None,
        };
        let limit = if spec.backoff_limit_per_index.is_some() {
            i32::MAX
        } else {
            6
        };
        Some(Self {
            spec,
            parallelism: count(spec.parallelism.unwrap_or(1)),
            completions,
            indexed,
            suspended: spec.suspend == Some(true),
            backoff_limit: count(spec.backoff_limit.unwrap_or(limit)),
            backoff_limit_per_index: spec
                .backoff_limit_per_index
                .filter(|_| indexed)
                .map(i64::from),
            replace_only_failed: match spec.pod_replacement_policy.as_deref() {
                Some(policy) => policy == "Failed",
                None => spec.pod_failure_policy.is_some(),
            },
        })
    }

    /// Returns true if the Job has this index.
    pub(crate) fn has_index(&self, index: u32) -> bool {
        self.completions
            .is_some_and(|completions| index < completions)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::job::testing::job;

    #[test]
    fn defaults_are_applied() {
        let plain = job(json!({}), json!({}));
        let effective = EffectiveSpec::of(&plain).unwrap();
        assert_eq!(
            (
                effective.parallelism,
                effective.completions,
                effective.backoff_limit
            ),
            (1, Some(1), 6)
        );
        assert!(!effective.indexed && !effective.suspended && !effective.replace_only_failed);

        let queue = job(json!({"parallelism": 3}), json!({}));
        assert_eq!(EffectiveSpec::of(&queue).unwrap().completions, None);

        let indexed = job(
            json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1,
                   "podFailurePolicy": {"rules": []}}),
            json!({}),
        );
        let effective = EffectiveSpec::of(&indexed).unwrap();
        assert_eq!(effective.backoff_limit, 2_147_483_647);
        assert!(effective.replace_only_failed && effective.has_index(1) && !effective.has_index(2));
        assert!(EffectiveSpec::of(&Job::default()).is_none());
    }
}
