//! Explains why the notifier of a run does not work.

use super::{
    Cause, ClusterEvidence, Explanation, failure, job_failure, no_pods, stuck,
    text::{last_line, short},
};
use crate::{
    evidence::{JobEvidence, RunPod as _},
    names,
};
use longshore_model::facts::PodFacts;

/// Explains why a notifier does not call its webhook, if something prevents it. `pods` are the pods
/// of its Job.
#[must_use]
pub fn notifier(
    job: &JobEvidence,
    pods: &[PodFacts],
    cluster: &ClusterEvidence,
) -> Option<Explanation> {
    if job.is_complete() {
        return None;
    }
    let last = pods
        .iter()
        .max_by_key(|pod| (pod.metadata.creation_timestamp, &pod.metadata.name));
    if let Some(pod) = last {
        let pod = with_container(pod);
        return match pod.status.phase.as_str() {
            "Failed" => Some(ended(&pod, job, cluster)),
            _ => stuck(&pod, cluster).map(|(found, _)| found),
        };
    }
    match job.failure() {
        Some(condition) => Some(job_failure(job, condition, cluster)),
        None => no_pods(job, cluster).map(|(found, _)| found),
    }
}

/// The pod with the annotation that names its container.
fn with_container(pod: &PodFacts) -> PodFacts {
    let mut pod = pod.clone();
    if let [container] = &pod.spec.containers[..] {
        let name = container.name.clone();
        let annotations = &mut pod.metadata.annotations;
        annotations.insert(names::CONTAINER.to_owned(), name);
    }
    pod
}

/// Explains the failure of a notifier. Its termination message contains the end of its log.
fn ended(pod: &PodFacts, job: &JobEvidence, cluster: &ClusterEvidence) -> Explanation {
    let said = pod
        .ended()
        .map(|ended| (ended.exit_code, last_line(&ended.message)));
    let Some((code, said)) = said.filter(|(_, said)| !said.is_empty()) else {
        return failure(pod, None, cluster).0;
    };
    let remedy = match code {
        names::UNDELIVERED => {
            "correct the URL of the webhook, or the service, and submit the run again".to_owned()
        }
        _ => format!("read its log: `kubectl logs job/{}`", job.metadata.name),
    };
    let said = said.strip_prefix("longshore: ").unwrap_or(said);
    Explanation::new(Cause::ExitCode, short(said), remedy).of_pod(pod)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn job(status: Value) -> JobEvidence {
        serde_json::from_value(json!({
            "metadata": {"name": "notify-r", "uid": "j"},
            "spec": {"completions": 1, "parallelism": 1},
            "status": status,
        }))
        .unwrap()
    }

    fn pod(created: u32, phase: &str, state: Value) -> PodFacts {
        serde_json::from_value(json!({
            "metadata": {"name": format!("notify-r-{created}"),
                         "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z")},
            "spec": {"containers": [{"name": "notify", "image": "i:1"}], "nodeName": "n"},
            "status": {"phase": phase, "containerStatuses": [{"name": "notify", "state": state}]},
        }))
        .unwrap()
    }

    fn of(job: &JobEvidence, pods: &[PodFacts]) -> Option<String> {
        let found = notifier(job, pods, &ClusterEvidence::default());
        found.map(|found| format!("{}; {}", found.cause, found.remedy))
    }

    #[test]
    fn a_notifier_that_works_has_no_cause() {
        let complete =
            json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
        let failed = pod(
            1,
            "Failed",
            json!({"terminated": {"exitCode": 1, "message": "x"}}),
        );
        assert_eq!(of(&job(complete), &[failed]), None);
        let running = pod(1, "Running", json!({"running": {}}));
        assert_eq!(of(&job(json!({"active": 1})), &[running]), None);
    }

    #[test]
    fn the_last_pod_has_the_cause() {
        let said = "longshore: hooks: 503; trying again\nlongshore: the webhook at hooks did not accept it\n";
        let refused = json!({"terminated": {"exitCode": 9, "message": said}});
        let pods = [
            pod(
                1,
                "Failed",
                json!({"terminated": {"exitCode": 1, "message": "first"}}),
            ),
            pod(2, "Failed", refused),
        ];
        assert_eq!(
            of(&job(json!({})), &pods).unwrap(),
            "the webhook at hooks did not accept it; correct the URL of the webhook, or the service, and submit the run again"
        );
        let other = &pods[..1];
        let found = of(&job(json!({})), other).unwrap();
        assert_eq!(found, "first; read its log: `kubectl logs job/notify-r`");
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
        let found = of(&job(json!({})), &[pod(1, "Pending", waiting)]).unwrap();
        assert!(found.contains("i:1"), "{found}");
    }

    #[test]
    fn a_job_without_pods_has_the_cause_of_its_events() {
        let event = json!({
            "involvedObject": {"kind": "Job", "name": "notify-r", "uid": "j"},
            "type": "Warning", "reason": "FailedCreate",
            "message": "Error creating: pods \"notify-r-\" is forbidden: error looking up service account default/hooks: serviceaccount \"hooks\" not found",
        });
        let cluster = ClusterEvidence {
            events: vec![serde_json::from_value(event).unwrap()],
            ..ClusterEvidence::default()
        };
        let found = notifier(&job(json!({})), &[], &cluster).unwrap();
        assert!(found.cause.contains("hooks"), "{found:?}");
    }
}
