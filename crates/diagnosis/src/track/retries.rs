//! Failed attempts that a Job retries with another pod.

use std::collections::BTreeSet;

use super::{Step, Track, finished};
use crate::evidence::RunPod as _;
use crate::{
    explain::{self, Cause},
    outcome::Retry,
};
use longshore_model::facts::PodFacts;

/// The default backoff limit of a Job.
const DEFAULT_BACKOFF_LIMIT: u32 = 6;

impl Track {
    /// Reports each failed attempt once, unless it ends the run. Of attempts from before the
    /// start, reports only those that have not been replaced yet.
    pub(super) fn report_retries(&mut self, steps: &mut Vec<Step>) {
        let is_first = self.retried.is_none();
        let mut known = self.retried.take().unwrap_or_default();
        for role in &self.roles {
            let Some(job) = self.jobs.get(&role.name) else {
                continue;
            };
            let attempts = self.attempts(&role.name);
            if let Some(limit) = job.spec.backoff_limit_per_index {
                let of_task = attempts.values().flat_map(|pods| {
                    let failed = pods.iter().filter(|pod| pod.has_failed());
                    (1..)
                        .zip(failed)
                        .take(usize::try_from(limit).unwrap_or(usize::MAX))
                });
                let goes_on = !job.is_over() && !job.is_cancelled() && !job.spec.suspend;
                for (attempt, pod) in of_task.filter(|_| goes_on) {
                    if known.insert(pod.metadata.uid.clone()) && !is_first {
                        steps.extend(self.retry(pod, attempt, limit));
                    }
                }
                continue;
            }
            let last: BTreeSet<&str> = attempts
                .values()
                .filter_map(|pods| pods.last())
                .map(|pod| pod.metadata.uid.as_str())
                .collect();
            let mut failed: Vec<_> = attempts.values().flatten().collect();
            failed.retain(|pod| pod.has_failed() && pod.metadata.deletion_timestamp.is_none());
            failed.sort_by_key(|pod| finished(pod));
            let limit = job.spec.backoff_limit.unwrap_or(DEFAULT_BACKOFF_LIMIT);
            let ends = job.is_over() || job.is_cancelled() || job.spec.suspend;
            // One failure more than the limit ends the Job, even if its status is not updated yet.
            if ends || u32::try_from(failed.len()).is_ok_and(|failed| failed > limit) {
                continue;
            }
            for (attempt, pod) in (1..).zip(failed) {
                let uid = &pod.metadata.uid;
                let is_old = is_first && !last.contains(uid.as_str());
                if known.insert(uid.clone()) && !is_old {
                    steps.extend(self.retry(pod, attempt, limit));
                }
            }
        }
        self.retried = Some(known);
    }
    /// The step for a failed attempt; `None` if the policy of its Job ends it for good.
    fn retry(&self, pod: &PodFacts, attempt: u32, limit: u32) -> Option<Step> {
        let explanation = explain::failure(pod, None, &self.cluster).0;
        (explanation.kind != Cause::IdleGpu).then(|| {
            Step::Retry(Retry {
                explanation,
                attempt,
                attempts: limit.saturating_add(1),
            })
        })
    }
}
