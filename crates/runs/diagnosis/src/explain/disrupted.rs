//! Failures with an external cause: the node, the scheduler, or another client.

use super::{
    Cause, ClusterEvidence, Explanation,
    text::{between, has_any, short, with_message},
};
use crate::evidence::RunPod as _;
use longshore_model::facts::PodFacts;

/// A pod that its node rejected, so that it never ran.
pub(super) fn refused(pod: &PodFacts) -> Option<Explanation> {
    let (reason, message) = (pod.status.reason.as_str(), pod.status.message.as_str());
    let remedy = match reason {
        "UnexpectedAdmissionError" => {
            "the node's devices were not as the scheduler expected: check the device plugin, and try again"
        }
        "OutOfcpu" | "OutOfmemory" | "OutOfpods" | "OutOfephemeral-storage" => {
            "the node had less room than the scheduler expected: try again"
        }
        "NodeAffinity" | "NodePorts" | "Preempting" | "PodOSSelectorNodeLabelDoesNotMatch" => {
            "the node changed meanwhile: try again"
        }
        _ if reason.starts_with("OutOf") => {
            "the node had less room than the scheduler expected: try again"
        }
        _ => return None,
    };
    let what = format!("its node rejected it ({reason})");
    let found = Explanation::new(
        Cause::RefusedByNode,
        with_message(what, &short(message)),
        remedy,
    );
    Some(found.seen(reason))
}

/// A pod whose status reports a disruption.
pub(super) fn disrupted(pod: &PodFacts, cluster: &ClusterEvidence) -> Option<Explanation> {
    let (reason, message) = (pod.status.reason.as_str(), pod.status.message.as_str());
    let target = pod.condition("DisruptionTarget");
    let target_reason = target.map_or("", |condition| condition.reason.as_str());
    let found = match (reason, target_reason) {
        ("Evicted", _) => evicted(message),
        ("DeadlineExceeded", _) => Explanation::new(
            Cause::Deadline,
            "it exceeded its deadline",
            "raise `timeout`",
        ),
        ("NodeLost", _) => lost(pod, message),
        ("Terminated" | "NodeShutdown" | "Shutdown", _) => shutdown(pod, message),
        (_, "PreemptionByScheduler") => preempted(),
        (_, "DeletionByTaintManager") => tainted(pod, cluster),
        (_, "EvictionByEvictionAPI") => drained(pod),
        (_, "DeletionByPodGC") => lost(pod, &target.map_or(String::new(), |c| c.message.clone())),
        // The pod's status contains more details.
        (_, "TerminationByKubelet") if is_unknown(pod) => return None,
        (_, "TerminationByKubelet") => {
            let message = target.map_or(message, |condition| condition.message.as_str());
            if has_any(message, &["shutdown"]) {
                shutdown(pod, message)
            } else {
                evicted(message)
            }
        }
        _ => return None,
    };
    Some(found.seen(reason).seen(match target_reason {
        "" => String::new(),
        target_reason => format!("DisruptionTarget: {target_reason}"),
    }))
}

/// Returns true if the node does not know how the command, or an init container, ended, because the
/// node itself was stopped.
fn is_unknown(pod: &PodFacts) -> bool {
    let status = &pod.status;
    let before = status.init_container_statuses.iter();
    let before = before.filter_map(|container| container.state.terminated.as_ref());
    let mut ended = before.chain(pod.ended());
    ended.any(|ended| ended.reason == "ContainerStatusUnknown")
}

/// A command that a signal terminated. Events may show the sender.
pub(super) fn killed(
    pod: &PodFacts,
    explanation: Explanation,
    cluster: &ClusterEvidence,
) -> Explanation {
    let ended = pod.ended().map_or(0, |ended| ended.exit_code);
    if !matches!(explanation.kind, Cause::Signal) || !matches!(ended, 137 | 143) {
        return explanation;
    }
    for event in cluster.of_pod(&pod.metadata) {
        let found = match event.reason.as_str() {
            "TaintManagerEviction" => tainted(pod, cluster),
            "Preempted" => preempted(),
            "Evicted" => evicted(&event.message),
            "NodeNotReady" => lost(pod, ""),
            "NodeShutdown" => shutdown(pod, &event.message),
            _ => continue,
        };
        return super::mount::seen(found, event);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return deleted().seen("deletionTimestamp");
    }
    explanation
}

pub(super) fn deleted() -> Explanation {
    Explanation::new(
        Cause::Deleted,
        "its pod was deleted",
        "find out what deleted it: a person, a drain, a clean-up; then run it again, with `retries` to recover from this",
    )
}

/// An eviction by the node, with the scarce resource.
pub(super) fn evicted(message: &str) -> Explanation {
    let resource = between(message, "low on resource: ", ".").or_else(|| {
        let pairs = [
            ("MemoryPressure", "memory"),
            ("DiskPressure", "ephemeral-storage"),
            ("PIDPressure", "pids"),
            ("ephemeral local storage", "ephemeral-storage"),
            ("ephemeral storage", "ephemeral-storage"),
            ("EmptyDir volume", "ephemeral-storage"),
        ];
        let found = pairs.iter().find(|(words, _)| message.contains(words));
        found.map(|(_, resource)| *resource)
    });
    let own = message.contains("exceed");
    let (kind, remedy) = match resource {
        Some("memory") => (
            Cause::OutOfMemory,
            "request the memory that it needs with `memory`, or reduce its memory use",
        ),
        Some("ephemeral-storage" | "nodefs" | "imagefs" | "inodes") if !own => (
            Cause::Evicted,
            "free space on the node, or run it on another node; tasks that request the `ephemeral-storage` that they use under `resources`, or write to a volume, are evicted last",
        ),
        Some("ephemeral-storage" | "nodefs" | "imagefs" | "inodes") => (
            Cause::Evicted,
            "write less to the container's disk, write to a volume, or request `ephemeral-storage` under `resources`",
        ),
        Some("pids") => (Cause::Evicted, "start fewer processes and threads"),
        _ => (
            Cause::Evicted,
            "request what it needs with `resources`, and try again",
        ),
    };
    let what = match resource {
        Some(resource) if own => {
            format!("the node evicted it: it used more {resource} than allowed")
        }
        Some(resource) => format!("the node evicted it: the node was low on {resource}"),
        None => "the node evicted it".to_owned(),
    };
    Explanation::new(kind, with_message(what, &short(message)), remedy)
}

fn node(pod: &PodFacts) -> String {
    match pod.spec.node_name.as_str() {
        "" => "its node".to_owned(),
        name => format!("its node {name:?}"),
    }
}

pub(super) fn lost(pod: &PodFacts, message: &str) -> Explanation {
    Explanation::new(
        Cause::NodeLost,
        with_message(format!("{} was lost", node(pod)), &short(message)),
        "run it again, with `retries` to recover from this; check the node: `longshore describe nodes`",
    )
}

/// A pod that was last seen running on a node that no longer answers.
#[must_use]
pub fn away(pod: &PodFacts, cluster: &ClusterEvidence) -> Option<Explanation> {
    if !pod.has_started() || pod.is_over() {
        return None;
    }
    let nodes = cluster.nodes.iter().flat_map(|nodes| &nodes.seen);
    let mut nodes = nodes.filter(|node| node.metadata.name == pod.spec.node_name);
    let is_away = match nodes.next() {
        Some(node) => !node.is_ready(),
        // Without permission to list nodes, use the pod's condition and events.
        None => {
            let mut events = cluster.of_pod(&pod.metadata).into_iter();
            pod.condition("Ready").is_none() && events.any(|event| event.reason == "NodeNotReady")
        }
    };
    let found = Explanation::new(
        Cause::NodeLost,
        format!(
            "{} does not answer: whether the task still runs is not known",
            node(pod)
        ),
        "wait for the node: the task may still be running; if the node stays unreachable, the cluster deletes the pod, by default after five minutes, and restarts the task if `retries` allows it; check the node: `longshore describe nodes`",
    );
    is_away.then(|| found.of_pod(pod).seen("NodeNotReady"))
}

fn shutdown(pod: &PodFacts, message: &str) -> Explanation {
    Explanation::new(
        Cause::NodeShutdown,
        with_message(format!("{} shut down", node(pod)), &short(message)),
        "run it again, with `retries` to recover from this; avoid nodes that can shut down at any time",
    )
}

pub(super) fn preempted() -> Explanation {
    Explanation::new(
        Cause::Preempted,
        "a pod of higher priority preempted it",
        "run it again when there is room, with `retries`, or with a higher priority class",
    )
}

fn drained(pod: &PodFacts) -> Explanation {
    Explanation::new(
        Cause::Drained,
        format!(
            "its pod was evicted through the API, as by a drain of {}",
            node(pod)
        ),
        "run it again, with `retries` to recover from this",
    )
}

/// A NoExecute taint, usually set by the cluster on a lost node.
pub(super) fn tainted(pod: &PodFacts, cluster: &ClusterEvidence) -> Explanation {
    let nodes = cluster.nodes.iter().flat_map(|nodes| &nodes.seen);
    let mut own = nodes.filter(|node| node.metadata.name == pod.spec.node_name);
    let taint = own.find_map(|node| {
        let mut taints = node.spec.taints.iter();
        taints.find(|taint| taint.effect == "NoExecute")
    });
    match taint {
        Some(taint) if !crate::fit::is_passing(&taint.key) => Explanation::new(
            Cause::Taint,
            format!(
                "{} got the taint {}, which it does not tolerate",
                node(pod),
                crate::fit::taint_text(taint)
            ),
            "tolerate the taint, or use other nodes; then run it again",
        ),
        taint => {
            let key = taint.map_or(String::new(), |taint| format!("taint {}", taint.key));
            lost(pod, &key)
        }
    }
}
