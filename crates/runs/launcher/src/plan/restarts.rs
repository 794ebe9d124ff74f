//! The settings of a run's Jobs and pods for restarts of tasks.

use longshore_client::k8s_openapi::api::batch::v1::{
    Job, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use longshore_diagnosis::{names, usage::IDLE_EXIT_CODE};

use super::{Planner, pod_template::pod_spec_of};
use crate::{
    config::Workload,
    restarts::{PodRestarts, Together},
};

impl Planner<'_> {
    /// Returns true if a failed task restarts all tasks, without a JobSet's controller. A JobSet
    /// restarts them itself, and a single task has no other tasks to restart.
    fn restarts_together(&self) -> bool {
        let restarts = &self.spec.restarts;
        restarts.whole_run.is_some()
            && self.spec.has_peers()
            && self.spec.workload != Workload::JobSet
    }

    /// Returns true if JobSet's controller restarts all tasks when one fails.
    pub(super) fn is_restarted_by_set(&self) -> bool {
        self.spec.restarts.whole_run.is_some() && self.spec.workload == Workload::JobSet
    }

    /// The settings of restarts for the pods.
    pub(super) fn pod_restarts(&self) -> PodRestarts {
        let restarts = &self.spec.restarts;
        let key = restarts.whole_run.clone();
        PodRestarts {
            together: key
                .filter(|_| self.restarts_together())
                .map(|key| Together {
                    // The next port after the tasks' ports.
                    port: self.spec.restart_port(),
                    key,
                    timeout: self.spec.start_timeout.as_secs(),
                }),
            task_limit: restarts.task_limit.clone(),
            checkpoint_dir: restarts.checkpoint_dir.clone(),
        }
    }

    /// Rules for failed pods that do not count, or end the Job. A disruption is not a failure of
    /// the task: its node was drained or lost, or its capacity was given to other pods. It restarts
    /// the task only if the user allows restarts at all.
    pub(super) fn pod_failure_policy(&self) -> Option<PodFailurePolicy> {
        let mut rules = Vec::new();
        // A task that was ended because its GPUs were idle would probably be idle again.
        if self.spec.idle.is_some() {
            rules.push(self.never_again(vec![IDLE_EXIT_CODE]));
        }
        if self.spec.retries > 0 {
            rules.push(self.disrupted());
            let codes = &self.spec.restarts.no_retry_exit_codes;
            if !codes.is_empty() {
                rules.push(self.never_again(codes.iter().map(|code| i32::from(*code)).collect()));
            }
        }
        (!rules.is_empty()).then_some(PodFailurePolicy { rules })
    }

    /// Ensures that only the command decides on the end of a Job whose template has other
    /// containers. A failure of another container makes its pod fail. The Job must then neither run
    /// the command again, nor end the other tasks.
    pub(super) fn let_command_decide(&self, job: &mut Job) {
        let pods = pod_spec_of(job);
        // Kubernetes supports failure policies only for pods whose containers are not restarted.
        let is_restarted = pods.restart_policy.as_deref() != Some("Never");
        let containers = pods.containers.iter();
        let others = containers.filter(|container| container.name != names::MAIN);
        let others: Vec<String> = others.map(|container| container.name.clone()).collect();
        if others.is_empty() || is_restarted {
            return;
        }
        let spec = job.spec.get_or_insert_default();
        let is_independent = self.spec.sweep.is_some();
        let limit = spec.backoff_limit_per_index.or(spec.backoff_limit);
        // A failure of the command counts, or ends the Job without retries.
        let of_command = match limit {
            Some(0) if !is_independent => "FailJob",
            _ => "Count",
        };
        let policy = spec.pod_failure_policy.get_or_insert_default();
        policy.rules.push(any_failure(of_command, names::MAIN));
        let others = others.iter().map(|name| any_failure("FailIndex", name));
        policy.rules.extend(others);
        if !is_independent {
            // An index that failed because of another container does not end the others.
            spec.max_failed_indexes = None;
            spec.backoff_limit = spec.backoff_limit.filter(|limit| *limit > 0);
            spec.backoff_limit_per_index = limit;
        }
    }

    /// The rule for disrupted pods, which do not count.
    fn disrupted(&self) -> PodFailurePolicyRule {
        let condition = PodFailurePolicyOnPodConditionsPattern {
            type_: names::DISRUPTION_TARGET.to_owned(),
            status: Some("True".to_owned()),
        };
        let action = match self.is_restarted_by_set() {
            // The JobSet restarts all tasks when a Job has failed for this reason.
            true => "FailJob",
            false => "Ignore",
        };
        PodFailurePolicyRule {
            action: action.to_owned(),
            on_pod_conditions: Some(vec![condition]),
            ..PodFailurePolicyRule::default()
        }
    }

    /// The rule for tasks that end with these exit codes, which are not restarted. They do not end
    /// the other combinations of a sweep.
    fn never_again(&self, codes: Vec<i32>) -> PodFailurePolicyRule {
        let action = match self.spec.sweep {
            Some(_) => "FailIndex",
            None => "FailJob",
        };
        PodFailurePolicyRule {
            action: action.to_owned(),
            on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
                container_name: Some(names::MAIN.to_owned()),
                operator: "In".to_owned(),
                values: codes,
            }),
            ..PodFailurePolicyRule::default()
        }
    }
}

/// A rule for any failure of a container.
fn any_failure(action: &str, container: &str) -> PodFailurePolicyRule {
    PodFailurePolicyRule {
        action: action.to_owned(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: Some(container.to_owned()),
            operator: "NotIn".to_owned(),
            values: vec![0],
        }),
        ..PodFailurePolicyRule::default()
    }
}
