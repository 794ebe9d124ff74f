//! What keeps a pod's containers from being made, as its events tell.

use super::{
    Around, Cause, Explanation, Patience, missing,
    text::{between, short, with_message},
};
use crate::evidence::{EventEvidence, PodEvidence};

/// The cause that the newest telling event names.
pub(super) fn by_events(pod: &PodEvidence, around: &Around) -> Option<(Explanation, Patience)> {
    let events = around.of_pod(&pod.metadata);
    let of = |reason: &str| events.iter().find(|event| event.reason == reason);
    // An object's name says more than the mount that waits for it.
    let named = events
        .iter()
        .filter(|event| event.reason == "FailedMount")
        .find_map(|event| Some((*event, missing::object(&event.message)?)));
    if let Some((event, (explanation, patience))) = named {
        return Some((seen(explanation, event), patience));
    }
    let (event, (explanation, patience)) = of("FailedAttachVolume")
        .map(|event| (event, attach(&event.message)))
        .or_else(|| of("FailedMount").map(|event| (event, mount(&event.message))))
        .or_else(|| of("FailedCreatePodSandBox").map(|event| (event, sandbox(&event.message))))?;
    Some((seen(explanation, event), patience))
}

pub(super) fn seen(explanation: Explanation, event: &EventEvidence) -> Explanation {
    explanation.seen(with_message(event.reason.clone(), &short(&event.message)))
}

fn mount(message: &str) -> (Explanation, Patience) {
    let volume = between(message, "volume \"", "\"")
        .or_else(|| between(message, "unmounted volumes=[", "]"));
    let what = match volume {
        Some(volume) => format!("its volume {volume:?} cannot be mounted"),
        None => "a volume of it cannot be mounted".to_owned(),
    };
    let remedy = if message.contains("hostPath type check failed") {
        "the folder must be on every node that runs a task: share it, or choose another"
    } else {
        "look at the volume and what it refers to"
    };
    let explanation = Explanation::new(Cause::Mount, with_message(what, &short(message)), remedy);
    (explanation, Patience::StartTimeout)
}

fn attach(message: &str) -> (Explanation, Patience) {
    let what = match between(message, "volume \"", "\"") {
        Some(volume) => format!("the volume {volume:?} cannot be attached to its node"),
        None => "a volume of it cannot be attached to its node".to_owned(),
    };
    let remedy = if message.contains("Multi-Attach") {
        "another pod on another node has it: end that, or use a volume of access mode ReadWriteMany"
    } else {
        "look at the volume's events: `longshore describe pvc`"
    };
    let explanation = Explanation::new(Cause::Attach, with_message(what, &short(message)), remedy);
    (explanation, Patience::StartTimeout)
}

fn sandbox(message: &str) -> (Explanation, Patience) {
    let explanation = Explanation::new(
        Cause::Sandbox,
        with_message("the node cannot make the pod's sandbox", &short(message)),
        "this is the node's own trouble, often its network plugin: look at the node, or try another",
    );
    (explanation, Patience::StartTimeout)
}
