//! Explains from a pod's events why its containers cannot be created.

use super::{
    Cause, ClusterEvidence, Explanation, WaitLimit, missing,
    text::{between, short, with_message},
};
use crate::evidence::EventEvidence;
use longshore_model::facts::PodFacts;

/// The cause from the newest relevant event.
pub(super) fn by_events(
    pod: &PodFacts,
    cluster: &ClusterEvidence,
) -> Option<(Explanation, WaitLimit)> {
    let events = cluster.of_pod(&pod.metadata);
    let of = |reason: &str| events.iter().find(|event| event.reason == reason);
    // A missing object is more specific than the failed mount.
    let named = events
        .iter()
        .filter(|event| event.reason == "FailedMount")
        .find_map(|event| Some((*event, missing::object(&event.message)?)));
    if let Some((event, (explanation, limit))) = named {
        return Some((seen(explanation, event), limit));
    }
    let (event, (explanation, limit)) = of("FailedAttachVolume")
        .map(|event| (event, attach(&event.message)))
        .or_else(|| of("FailedMount").map(|event| (event, mount(&event.message))))
        .or_else(|| of("FailedCreatePodSandBox").map(|event| (event, sandbox(&event.message))))?;
    Some((seen(explanation, event), limit))
}

pub(super) fn seen(explanation: Explanation, event: &EventEvidence) -> Explanation {
    explanation.seen(with_message(event.reason.clone(), &short(&event.message)))
}

fn mount(message: &str) -> (Explanation, WaitLimit) {
    let volume = between(message, "volume \"", "\"")
        .or_else(|| between(message, "unmounted volumes=[", "]"));
    let what = match volume {
        Some(volume) => format!("its volume {volume:?} cannot be mounted"),
        None => "one of its volumes cannot be mounted".to_owned(),
    };
    let remedy = if message.contains("hostPath type check failed") {
        "the folder must exist on every node that runs a task: share it, or use another"
    } else {
        "check the volume and the objects that it refers to"
    };
    let explanation = Explanation::new(Cause::Mount, with_message(what, &short(message)), remedy);
    (explanation, WaitLimit::StartTimeout)
}

fn attach(message: &str) -> (Explanation, WaitLimit) {
    let what = match between(message, "volume \"", "\"") {
        Some(volume) => format!("the volume {volume:?} cannot be attached to its node"),
        None => "one of its volumes cannot be attached to its node".to_owned(),
    };
    let remedy = if message.contains("Multi-Attach") {
        "a pod on another node uses it: stop that pod, or use a volume with access mode ReadWriteMany"
    } else {
        "check the volume's events: `longshore describe pvc`"
    };
    let explanation = Explanation::new(Cause::Attach, with_message(what, &short(message)), remedy);
    (explanation, WaitLimit::StartTimeout)
}

fn sandbox(message: &str) -> (Explanation, WaitLimit) {
    let explanation = Explanation::new(
        Cause::Sandbox,
        with_message("the node cannot create the pod's sandbox", &short(message)),
        "this is a problem of the node, often of its network plugin: check the node, or use another",
    );
    (explanation, WaitLimit::StartTimeout)
}
