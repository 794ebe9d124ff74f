//! A Job's wishes, with Kubernetes' defaults filled in.

use k8s_openapi::api::batch::v1::{Job, JobSpec};

/// A Job's spec as the controller reads it.
#[derive(Debug, Clone)]
pub(crate) struct Wishes<'a> {
    /// The spec itself.
    pub(crate) spec: &'a JobSpec,
    /// Most pods at a time.
    pub(crate) parallelism: u64,
    /// Successes wanted; `None` when one is enough and then no more are begun.
    pub(crate) completions: Option<u32>,
    /// Each pod has a completion index.
    pub(crate) indexed: bool,
    /// Held back.
    pub(crate) suspended: bool,
    /// Failures after which the Job fails.
    pub(crate) backoff_limit: u64,
    /// Failures after which an index fails.
    pub(crate) backoff_limit_per_index: Option<i64>,
    /// A pod that is going is replaced only once it has finished.
    pub(crate) replace_only_failed: bool,
}

impl<'a> Wishes<'a> {
    /// Of a Job; `None` when it has no spec.
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

    /// Whether an index is one of the Job's.
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
    fn defaults() {
        let plain = job(json!({}), json!({}));
        let wishes = Wishes::of(&plain).unwrap();
        assert_eq!(
            (wishes.parallelism, wishes.completions, wishes.backoff_limit),
            (1, Some(1), 6)
        );
        assert!(!wishes.indexed && !wishes.suspended && !wishes.replace_only_failed);

        let queue = job(json!({"parallelism": 3}), json!({}));
        assert_eq!(Wishes::of(&queue).unwrap().completions, None);

        let indexed = job(
            json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1,
                   "podFailurePolicy": {"rules": []}}),
            json!({}),
        );
        let wishes = Wishes::of(&indexed).unwrap();
        assert_eq!(wishes.backoff_limit, 2_147_483_647);
        assert!(wishes.replace_only_failed && wishes.has_index(1) && !wishes.has_index(2));
        assert!(Wishes::of(&Job::default()).is_none());
    }
}
