//! Explains the failure of a pod.

use super::{
    Cause, ClusterEvidence, Explanation, code, disrupted, excluded, port,
    text::{last_line as last_of, or, short, with_message},
};
use crate::evidence::RunPod as _;
use crate::{names, usage};
use longshore_model::facts::{PodFacts, Terminated};

/// Explains the failure of a pod. Also returns true if its command had started. `last_line` is the
/// last line of its log.
#[must_use]
pub fn failure(
    pod: &PodFacts,
    last_line: Option<&str>,
    cluster: &ClusterEvidence,
) -> (Explanation, bool) {
    let (explanation, ran) = why(pod, last_line, cluster);
    (explanation.of_pod(pod), ran)
}

fn why(pod: &PodFacts, last_line: Option<&str>, cluster: &ClusterEvidence) -> (Explanation, bool) {
    if let Some(found) = disrupted::refused(pod) {
        return (found, false);
    }
    if let Some(found) = disrupted::disrupted(pod, cluster) {
        return (found, true);
    }
    if let Some((name, ended)) = pod.failed_init() {
        return (init(pod, name, ended, last_line), false);
    }
    match pod.ended() {
        Some(ended) if ended.reason == "ContainerStatusUnknown" => {
            let cause = with_message(
                "its exit status is unknown: the node lost track of the container".to_owned(),
                &short(&ended.message),
            );
            let remedy = "check the node, `longshore describe nodes`, and try again";
            let found = Explanation::new(Cause::NodeLost, cause, remedy);
            (found.seen("ContainerStatusUnknown"), true)
        }
        Some(ended) => {
            let (explanation, ran) = container(pod, pod.main_name(), ended, last_line);
            let explanation = port::taken(pod, explanation, ended, last_line, cluster);
            (disrupted::killed(pod, explanation, cluster), ran)
        }
        None => {
            let cause = with_message(
                format!("it failed ({})", or(&pod.status.reason, "no reason given")),
                &pod.status.message,
            );
            let name = &pod.metadata.name;
            let remedy = format!("check its events: `longshore describe pod {name}`");
            (Explanation::new(Cause::Unknown, cause, remedy), true)
        }
    }
}

fn init(pod: &PodFacts, name: &str, ended: &Terminated, log: Option<&str>) -> Explanation {
    let said = [ended.message.as_str(), log.unwrap_or_default()];
    let said = said
        .into_iter()
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default();
    if is_start_error(&ended.reason) {
        return code::not_started(pod, name, said);
    }
    let (kind, remedy) = if ended.reason == "OOMKilled" {
        (
            Cause::OutOfMemory,
            "raise the memory limit of init containers, which a LimitRange may set".to_owned(),
        )
    } else {
        (
            Cause::InitFailed,
            format!("read the log of its container {name:?}"),
        )
    };
    let what = if name == names::FETCH {
        "the code could not be fetched".to_owned()
    } else if name == names::FETCH_DATA {
        "the data of the task could not be fetched".to_owned()
    } else if name == names::INSTALL {
        "the program `longshore` could not be installed".to_owned()
    } else {
        format!(
            "its init container {name:?} failed with exit code {}",
            ended.exit_code
        )
    };
    let what = match kind {
        Cause::OutOfMemory => format!("{what}, out of memory"),
        _ => what,
    };
    let line = last_of(said);
    let line = line.strip_prefix("longshore: ").unwrap_or(line);
    Explanation::new(kind, with_message(what, &short(line)), remedy).seen(format!(
        "{name}: {} {}",
        or(&ended.reason, "Error"),
        ended.exit_code
    ))
}

/// Explains the end of a container. Also returns true if its command had started.
pub(super) fn container(
    pod: &PodFacts,
    name: &str,
    ended: &Terminated,
    last_line: Option<&str>,
) -> (Explanation, bool) {
    let seen = format!("{name}: {} {}", or(&ended.reason, "Error"), ended.exit_code);
    if is_start_error(&ended.reason) {
        return (
            code::not_started(pod, name, &ended.message).seen(seen),
            false,
        );
    }
    if ended.reason == "OOMKilled" {
        let main = pod.spec.containers.iter().find(|known| known.name == name);
        let limit = main.and_then(|main| main.resources.limits.get("memory"));
        let limit = limit.map_or(String::new(), |limit| format!(" (limit {limit})"));
        let cause = match ended.exit_code {
            137 => format!("killed: out of memory{limit}"),
            code => format!(
                "a process of the task was killed: out of memory{limit}; its command ended with exit code {code}"
            ),
        };
        let remedy = "raise its `memory`, or reduce its memory use (smaller batches)";
        let found = Explanation::new(Cause::OutOfMemory, cause, remedy);
        return (found.seen(seen), true);
    }
    let (usage, message) = usage::split(&ended.message);
    let idle = usage.and_then(|usage| usage.idle_end);
    if let (usage::IDLE_EXIT_CODE, Some(seconds)) = (ended.exit_code, idle) {
        let cause = format!("stopped: its GPUs were idle for {seconds} s (idle_timeout)");
        let remedy = "find out what it waited for in its log; raise `idle_timeout` if it computes without GPUs for longer";
        return (
            Explanation::new(Cause::IdleGpu, cause, remedy).seen(seen),
            true,
        );
    }
    // The bootstrap writes its error to the termination message and to the last line of its log. A
    // line about lost outputs does not explain the end of the command.
    let last_line = last_line.filter(|line| !line.starts_with(names::OUTPUTS_LOST));
    let said = [message, last_line.unwrap_or_default()];
    let ours = said
        .into_iter()
        .find_map(|text| last_of(text).strip_prefix("longshore: "));
    if let (124, Some(ours)) = (ended.exit_code, ours)
        && ours.contains("task_timeout")
    {
        let remedy = "raise `task_timeout`, or write checkpoints, so that `retries` continue it";
        return (
            Explanation::new(Cause::Deadline, ours, remedy).seen(seen),
            true,
        );
    }
    if let (125..=127, Some(ours)) = (ended.exit_code, ours) {
        return (
            code::bootstrap(pod, ended.exit_code, ours).seen(seen),
            false,
        );
    }
    let last = said.into_iter().rev().map(last_of);
    let last = last.into_iter().find(|line| !line.is_empty());
    let last = last.unwrap_or_default();
    let found = code::ended(ended.exit_code, ended.signal, last, &read_log(pod));
    (excluded::extend(pod, found, last).seen(seen), true)
}

/// The remedy to read the log.
fn read_log(pod: &PodFacts) -> String {
    match (pod.metadata.labels.get(names::RUN), pod.task()) {
        (Some(run), Some(task)) => format!(
            "read its log: `longshore logs {run} --role {} --index {}`",
            task.role, task.index
        ),
        _ => "read its log".to_owned(),
    }
}

fn is_start_error(reason: &str) -> bool {
    matches!(
        reason,
        "StartError" | "ContainerCannotRun" | "ContainerCreateError" | "RunContainerError"
    )
}
