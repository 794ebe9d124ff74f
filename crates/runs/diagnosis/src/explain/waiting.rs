//! Explains why a task has not started.

use std::time::Duration;

use super::{
    Cause, ClusterEvidence, Explanation, WaitLimit, code, container, ended, image, missing, mount,
    port, schedule,
    text::{short, with_message},
};
use crate::evidence::RunPod as _;
use longshore_model::facts::{ContainerStatus, PodFacts};

/// Explains why a pod has not started, if something blocks it.
pub(crate) fn stuck(pod: &PodFacts, cluster: &ClusterEvidence) -> Option<(Explanation, WaitLimit)> {
    if pod.is_over() || pod.has_started() {
        return None;
    }
    let found = pod
        .statuses()
        .find_map(|status| waiting(pod, status, cluster))
        .or_else(|| unscheduled(pod, cluster))
        .or_else(|| {
            is_idle(pod)
                .then(|| mount::by_events(pod, cluster))
                .flatten()
        });
    found.map(|(explanation, limit)| (explanation.of_pod(pod), limit))
}

fn waiting(
    pod: &PodFacts,
    status: &ContainerStatus,
    cluster: &ClusterEvidence,
) -> Option<(Explanation, WaitLimit)> {
    let waiting = status.state.waiting.as_ref()?;
    let message = waiting.message.as_str();
    let name = container::image(pod, &status.name);
    let (explanation, limit) = match waiting.reason.as_str() {
        "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => {
            image::not_pulled(&name, &pull_message(pod, &waiting.reason, message, cluster))
        }
        "InvalidImageName" => (
            Explanation::new(
                Cause::ImageName,
                with_message(format!("the image name {name:?} is not valid"), message),
                "correct `image`",
            ),
            WaitLimit::None,
        ),
        "ErrImageNeverPull" => (
            Explanation::new(
                Cause::ImageNeverPulled,
                format!("the image {name:?} is not on the node, and the pull policy is Never"),
                "load the image onto the node, or set `image_pull_policy = \"IfNotPresent\"`",
            ),
            WaitLimit::None,
        ),
        "CreateContainerConfigError" => missing::config(message),
        "CreateContainerError" | "RunContainerError" | "StartError" => (
            code::not_started(pod, &status.name, message),
            WaitLimit::seconds(20),
        ),
        "CrashLoopBackOff" => {
            let last = status.last_state.terminated.as_ref();
            let explanation = match last {
                Some(last) => {
                    let known = ended::container(pod, &status.name, last, None).0;
                    port::taken(pod, known, last, None, cluster)
                }
                None => code::not_started(pod, &status.name, message),
            };
            (explanation, WaitLimit::seconds(20))
        }
        // The embedded cluster's node reports this while a pod that uses the devices terminates.
        "WaitingForDevices" => (
            Explanation::new(
                Cause::InsufficientResource,
                format!("its devices are still in use: {message}"),
                "wait until the pods that use them have ended",
            ),
            WaitLimit::StartTimeout,
        ),
        _ => return None,
    };
    let seen = format!("{}: {}", status.name, waiting.reason);
    Some((explanation.seen(seen), limit))
}

/// During back-off, older kubelets report only the back-off; an event has the registry's
/// message.
fn pull_message(pod: &PodFacts, reason: &str, message: &str, cluster: &ClusterEvidence) -> String {
    let says_nothing = message.is_empty()
        || (message.starts_with("Back-off pulling image") && !message.contains("rpc error"));
    let events = cluster.of_pod(&pod.metadata);
    let from_event = events
        .iter()
        .find(|event| event.reason == "Failed" && event.message.starts_with("Failed to pull image"))
        .map(|event| event.message.clone());
    match from_event {
        Some(from_event) if says_nothing => from_event,
        _ if reason == "RegistryUnavailable" => format!("registry is unavailable {message}"),
        _ => message.to_owned(),
    }
}

fn unscheduled(pod: &PodFacts, cluster: &ClusterEvidence) -> Option<(Explanation, WaitLimit)> {
    let mut conditions = pod.status.conditions.iter();
    let condition = conditions
        .find(|condition| condition.kind == "PodScheduled" && condition.status == "False")?;
    if condition.reason == "SchedulingGated" {
        let explanation = Explanation::new(
            Cause::Gated,
            "scheduling gates hold it back",
            "the controller that set them, such as a queue, removes them when it admits the run",
        );
        let seen = explanation.seen("PodScheduled: SchedulingGated");
        return Some((seen, WaitLimit::StartTimeout));
    }
    let mut message = condition.message.as_str();
    let events = cluster.of_pod(&pod.metadata);
    if message.is_empty() {
        let from_event = events
            .iter()
            .find(|event| event.reason == "FailedScheduling");
        message = from_event.map_or("", |event| event.message.as_str());
    }
    Some(schedule::unscheduled(pod, message, cluster))
}

/// Returns true if no container of a pod has started, not even an init container, or if a sidecar
/// does not start, because nothing else limits that wait.
pub(crate) fn is_idle(pod: &PodFacts) -> bool {
    let has_begun = pod.statuses().any(has_begun);
    (!has_begun || unstarted_sidecar(pod).is_some()) && !pod.is_over()
}

fn has_begun(status: &ContainerStatus) -> bool {
    status.state.running.is_some() || status.state.terminated.is_some()
}

/// The sidecar that the next container of the pod waits for. The sidecar is running, but its
/// startup probe has not succeeded, or it ends repeatedly.
fn unstarted_sidecar(pod: &PodFacts) -> Option<&str> {
    if pod.has_started() {
        return None;
    }
    let mut begun = pod.status.init_container_statuses.iter();
    let waits = |status: &&ContainerStatus| {
        let has_begun = has_begun(status) || status.last_state.terminated.is_some();
        has_begun && pod.is_sidecar(&status.name) && status.started != Some(true)
    };
    begun.find(waits).map(|status| status.name.as_str())
}

/// The explanation for a pod that has not started in time, without a known cause.
pub(crate) fn slow(pod: &PodFacts, limit: Duration, cluster: &ClusterEvidence) -> Explanation {
    if let Some((explanation, _)) = stuck(pod, cluster) {
        return explanation;
    }
    let waiting = pod
        .statuses()
        .filter_map(|status| status.state.waiting.as_ref());
    let state = waiting
        .map(|waiting| waiting.reason.as_str())
        .find(|reason| !reason.is_empty());
    let limit = limit.as_secs();
    let cause = match unstarted_sidecar(pod) {
        Some(sidecar) => format!("its sidecar {sidecar:?} did not start within {limit} s"),
        None => format!(
            "it did not start within {limit} s ({})",
            state.unwrap_or("no reason given")
        ),
    };
    let remedy = format!(
        "check its events, `longshore describe pod {}`; or raise `start_timeout`",
        pod.metadata.name
    );
    let newest = cluster.of_pod(&pod.metadata);
    let warning = newest.iter().find(|event| event.kind == "Warning");
    let explanation = Explanation::new(Cause::SlowStart, cause, remedy).of_pod(pod);
    match warning {
        Some(event) => {
            let mut explanation = mount::seen(explanation, event);
            explanation.cause = with_message(explanation.cause, &short(&event.message));
            explanation
        }
        None => explanation,
    }
}
