//! Explains from the scheduler's message and the nodes why no node can run a task.

use super::{
    Cause, ClusterEvidence, Explanation, WaitLimit, missing,
    text::{between, has_any, short, with_message},
};
use crate::fit::{self, Misfit, Need};
use longshore_model::facts::{NodeFacts, PodFacts};

/// Explains an unschedulable pod. `message` is the message of the condition PodScheduled, or of an
/// event FailedScheduling.
pub(super) fn unscheduled(
    pod: &PodFacts,
    message: &str,
    cluster: &ClusterEvidence,
) -> (Explanation, WaitLimit) {
    // The part about preemption does not explain the cause.
    let message = message.split(" preemption: ").next().unwrap_or(message);
    let volumes = || volume(message);
    let (explanation, limit) = volumes()
        .or_else(|| no_nodes(message, cluster))
        .or_else(|| never(pod, cluster))
        .or_else(|| short_of(message))
        .or_else(|| labels(pod, message, cluster))
        .or_else(|| taints(pod, message, cluster))
        .or_else(|| others(message))
        .unwrap_or_else(|| {
            let cause = with_message("no node can run the task", &short(message));
            let remedy = "compare the nodes with what the task requests";
            (
                Explanation::new(Cause::Unschedulable, cause, remedy),
                WaitLimit::StartTimeout,
            )
        });
    let seen = with_message("FailedScheduling", &short(message));
    (explanation.seen(seen), limit)
}

fn waits(kind: Cause, cause: String, remedy: impl Into<String>) -> (Explanation, WaitLimit) {
    (
        Explanation::new(kind, cause, remedy),
        WaitLimit::StartTimeout,
    )
}

fn volume(message: &str) -> Option<(Explanation, WaitLimit)> {
    if message.contains("persistentvolumeclaim \"") {
        if let Some(found) = missing::object(message) {
            return Some(found);
        }
        let name = between(message, "persistentvolumeclaim \"", "\"")?;
        return Some(waits(
            Cause::Volume,
            with_message(
                format!("the PersistentVolumeClaim {name:?} cannot be used"),
                &short(message),
            ),
            format!("check it: `longshore describe pvc {name}`"),
        ));
    }
    let table = [
        (
            "unbound immediate PersistentVolumeClaims",
            "a PersistentVolumeClaim of the task is not bound",
            "find out why no volume is bound to it, for example a missing storage class: `longshore describe pvc`",
        ),
        (
            "didn't find available persistent volumes to bind",
            "no PersistentVolume is free for a claim of the task",
            "add a volume that matches the claim, or a storage class that provisions one",
        ),
        (
            "volume node affinity conflict",
            "the task's volume is where no node can run the task",
            "let the task run where its volume is: check zones and `node_selector`",
        ),
        (
            "didn't match PersistentVolume's node affinity",
            "the task's volume is where no node can run the task",
            "let the task run where its volume is: check zones and `node_selector`",
        ),
        (
            "bound to non-existent pv",
            "a PersistentVolumeClaim of the task is bound to a volume that no longer exists",
            "recreate the claim",
        ),
        (
            "exceed max volume count",
            "the nodes have reached their limit of attached volumes",
            "wait until other tasks finish, or add a node",
        ),
    ];
    let (_, cause, remedy) = table.iter().find(|(words, _, _)| message.contains(words))?;
    Some(waits(Cause::Volume, (*cause).to_owned(), *remedy))
}

fn no_nodes(message: &str, cluster: &ClusterEvidence) -> Option<(Explanation, WaitLimit)> {
    let explained =
        |cause: &str, remedy: &str| Some(waits(Cause::NoNodes, cause.to_owned(), remedy));
    if message.contains("no nodes available to schedule pods") {
        return explained(
            "the cluster has no node that could run the task",
            "add a node, or wait for the autoscaler to add one",
        );
    }
    let nodes = cluster.nodes.as_ref().filter(|nodes| !nodes.more)?;
    if nodes.seen.is_empty() || nodes.seen.iter().any(NodeFacts::is_ready) {
        return None;
    }
    explained(
        &format!(
            "none of the cluster's {} node(s) is ready",
            nodes.seen.len()
        ),
        "find out why: `longshore describe nodes`",
    )
}

/// The task fits on no node, even an empty one.
fn never(pod: &PodFacts, cluster: &ClusterEvidence) -> Option<(Explanation, WaitLimit)> {
    let nodes = cluster.nodes.as_ref().filter(|nodes| !nodes.more)?;
    let misfit = fit::check(&Need::of(&pod.spec), &nodes.seen).err()?;
    let kind = match misfit {
        Misfit::TooLarge { .. } | Misfit::Scattered => Cause::NeverFits,
        Misfit::Selector { .. } => Cause::NodeSelector,
        Misfit::Tainted { .. } => Cause::Taint,
    };
    let (cause, mut remedy) = misfit.tell();
    if fit::may_grow(&nodes.seen) {
        remedy.push_str(", or wait for the autoscaler to add one that fits");
    }
    Some(waits(kind, cause, remedy))
}

/// `3 Insufficient nvidia.com/gpu`.
fn short_of(message: &str) -> Option<(Explanation, WaitLimit)> {
    let mut lacks = message.split("Insufficient ").skip(1).map(|rest| {
        let word = rest.split([',', ' ']).next().unwrap_or(rest);
        word.trim_end_matches('.')
    });
    // Of several missing resources, the rarest is the most likely cause.
    let all: Vec<&str> = lacks.by_ref().collect();
    let rare = all
        .iter()
        .find(|name| name.contains('/'))
        .or_else(|| all.first())?;
    Some(waits(
        Cause::InsufficientResource,
        with_message(format!("no node has enough {rare} free"), &short(message)),
        format!("request less {rare}, or wait until other tasks finish"),
    ))
}

fn labels(
    pod: &PodFacts,
    message: &str,
    cluster: &ClusterEvidence,
) -> Option<(Explanation, WaitLimit)> {
    if !has_any(
        message,
        &[
            "node affinity/selector",
            "node selector",
            "pod's node affinity",
        ],
    ) {
        return None;
    }
    let wanted: Vec<String> = pod
        .spec
        .node_selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let cause = match &wanted[..] {
        [] => with_message("no node matches the task's node affinity", &short(message)),
        _ => format!(
            "no available node has the labels {} of `node_selector`",
            wanted.join(", ")
        ),
    };
    let seen = cluster
        .nodes
        .as_ref()
        .map_or("", |_| " (some node has them, but cannot run the task now)");
    Some(waits(
        Cause::NodeSelector,
        format!("{cause}{seen}"),
        "correct `node_selector`, or label a node: `longshore label node NODE KEY=VALUE`",
    ))
}

fn taints(
    pod: &PodFacts,
    message: &str,
    cluster: &ClusterEvidence,
) -> Option<(Explanation, WaitLimit)> {
    if !message.contains("taint") {
        return None;
    }
    let need = Need::of(&pod.spec);
    let mut found: Vec<String> = named_taints(message);
    if found.is_empty() {
        // Newer schedulers do not name the taints, but the nodes do.
        let nodes = cluster.nodes.iter().flat_map(|nodes| &nodes.seen);
        let taints = nodes.flat_map(|node| &node.spec.taints);
        found = taints
            .filter(|taint| taint.effect != "PreferNoSchedule" && !need.tolerates(taint))
            .map(fit::taint_text)
            .collect();
        found.sort_unstable();
        found.dedup();
    }
    let passing = !found.is_empty()
        && found
            .iter()
            .all(|taint| fit::is_passing(taint.split(['=', ':']).next().unwrap_or_default()));
    let remedy = if passing {
        "the cluster sets these taints on unhealthy or cordoned nodes: check them with `longshore describe nodes`, or wait"
    } else {
        "tolerate the taints, use other nodes, or have the taints removed"
    };
    let cause = if found.is_empty() {
        with_message(
            "the nodes have taints that it does not tolerate",
            &short(message),
        )
    } else {
        format!(
            "the nodes have taints that it does not tolerate: {}",
            found.join(", ")
        )
    };
    let kind = if passing {
        Cause::NoNodes
    } else {
        Cause::Taint
    };
    Some(waits(kind, cause, remedy))
}

/// `untolerated taint {key: value}`, and of older schedulers
/// `taint {key: value}, that the pod didn't tolerate`.
fn named_taints(message: &str) -> Vec<String> {
    let parts = message.split("taint {").skip(1);
    let taints = parts.filter_map(|part| part.split_once('}'));
    taints
        .map(|(taint, _)| match taint.split_once(':') {
            Some((key, value)) if !value.trim().is_empty() => {
                format!("{}={}", key.trim(), value.trim())
            }
            Some((key, _)) => key.trim().to_owned(),
            None => taint.trim().to_owned(),
        })
        .collect()
}

fn others(message: &str) -> Option<(Explanation, WaitLimit)> {
    let table = [
        (
            "Too many pods",
            Cause::TooManyPods,
            "the nodes have reached their limit of pods",
            "wait until other tasks finish, or add a node",
        ),
        (
            "were unschedulable",
            Cause::NoNodes,
            "the nodes are cordoned",
            "make a node schedulable again: `kubectl uncordon NODE`",
        ),
        (
            "anti-affinity",
            Cause::Unschedulable,
            "anti-affinity rules exclude it from all nodes",
            "add a node, or relax the anti-affinity",
        ),
        (
            "topology spread",
            Cause::Unschedulable,
            "no node satisfies its topology spread constraints",
            "relax the topology spread constraints, or add nodes",
        ),
        (
            "free ports",
            Cause::Unschedulable,
            "its host port is in use on all nodes",
            "choose another port",
        ),
    ];
    let (_, kind, cause, remedy) = table
        .iter()
        .find(|(words, _, _, _)| message.contains(words))?;
    Some(waits(*kind, (*cause).to_owned(), *remedy))
}
