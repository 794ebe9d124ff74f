//! Why a task does not start, or failed: one cause and one remedy, from
//! evidence. Pure.

use std::{fmt, time::Duration};

use crate::{
    evidence::{Condition, PodEvidence},
    names,
};

/// One cause and one remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What went wrong.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
}

impl Explanation {
    fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause, self.remedy)
    }
}

/// How long a cause may last before the run is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It never mends by itself.
    None,
    /// It may mend by itself soon: an object is about to appear, a registry
    /// to answer.
    Short(Duration),
    /// It may mend when the cluster has room: as long as the run allows.
    StartTimeout,
}

/// The command that the main container runs, without our own words before it.
fn command(pod: &PodEvidence) -> String {
    let main = pod
        .spec
        .containers
        .iter()
        .find(|container| container.name == names::MAIN);
    let words = main.map(|main| main.command.as_slice()).unwrap_or_default();
    let begin = words
        .iter()
        .position(|word| word == "--")
        .map_or(0, |place| place + 1);
    words.get(begin..).unwrap_or_default().join(" ")
}

fn image(pod: &PodEvidence, container: &str) -> String {
    let all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let image = all
        .into_iter()
        .find(|known| known.name == container)
        .map(|known| &known.image);
    image.cloned().unwrap_or_default()
}

fn with_message(text: String, message: &str) -> String {
    if message.is_empty() {
        text
    } else {
        format!("{text}: {}", message.trim_end())
    }
}

/// Why a pod has not started, if something holds it up.
#[must_use]
pub fn stuck(pod: &PodEvidence) -> Option<(Explanation, Patience)> {
    if pod.is_over() || pod.has_started() {
        return None;
    }
    let statuses = pod
        .status
        .init_container_statuses
        .iter()
        .chain(&pod.status.container_statuses);
    for status in statuses {
        let Some(waiting) = &status.state.waiting else {
            continue;
        };
        let image = image(pod, &status.name);
        let short = |seconds| Patience::Short(Duration::from_secs(seconds));
        let found = match waiting.reason.as_str() {
            "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => Some((
                with_message(
                    format!("the image {image:?} cannot be pulled"),
                    &waiting.message,
                ),
                "check its name and tag, and for a private registry `image_pull_secrets`",
                short(60),
            )),
            "InvalidImageName" => Some((
                with_message(
                    format!("the image name {image:?} is not valid"),
                    &waiting.message,
                ),
                "correct `image`",
                Patience::None,
            )),
            "ErrImageNeverPull" => Some((
                format!("the image {image:?} is not on the node, and the pull policy is Never"),
                "load the image onto the node, or set `image_pull_policy = \"IfNotPresent\"`",
                Patience::None,
            )),
            "CreateContainerConfigError" => Some((
                with_message(
                    "the container cannot be configured".to_owned(),
                    &waiting.message,
                ),
                "create what it refers to (a Secret, a ConfigMap), or correct the name",
                short(10),
            )),
            "CreateContainerError" | "RunContainerError" | "CrashLoopBackOff" | "StartError" => {
                Some((
                    with_message(
                        "the container cannot be started".to_owned(),
                        &waiting.message,
                    ),
                    "look whether the image holds the command",
                    short(20),
                ))
            }
            _ => None,
        };
        if let Some((cause, remedy, patience)) = found {
            return Some((Explanation::new(cause, remedy), patience));
        }
    }
    let scheduled = pod
        .status
        .conditions
        .iter()
        .find(|condition| condition.kind == "PodScheduled");
    scheduled
        .filter(|condition| condition.status == "False")
        .map(|condition| {
            let cause = with_message("no node can take the task".to_owned(), &condition.message);
            let remedy = unschedulable_remedy(&condition.message);
            (Explanation::new(cause, remedy), Patience::StartTimeout)
        })
}

/// Whether nothing of a pod runs or has run yet, not even what prepares it.
#[must_use]
pub fn is_idle(pod: &PodEvidence) -> bool {
    let mut statuses = pod
        .status
        .init_container_statuses
        .iter()
        .chain(&pod.status.container_statuses);
    let has_begun =
        statuses.any(|status| status.state.running.is_some() || status.state.terminated.is_some());
    !has_begun && !pod.is_over()
}

/// Why a pod is given up that has been idle too long, when its status names
/// no cause: a volume whose Secret is missing shows in its events only.
#[must_use]
pub fn slow(pod: &PodEvidence, limit: Duration) -> Explanation {
    if let Some((explanation, _)) = stuck(pod) {
        return explanation;
    }
    let statuses = pod
        .status
        .init_container_statuses
        .iter()
        .chain(&pod.status.container_statuses);
    let waiting = statuses.filter_map(|status| status.state.waiting.as_ref());
    let state = waiting
        .map(|waiting| waiting.reason.as_str())
        .find(|reason| !reason.is_empty());
    let cause = format!(
        "it did not start within {} s ({})",
        limit.as_secs(),
        state.unwrap_or("no reason given")
    );
    Explanation::new(
        cause,
        "look at its events, `kubectl describe pod`; or raise `start_timeout`",
    )
}

fn unschedulable_remedy(message: &str) -> String {
    let resource = message.split("Insufficient ").nth(1).map(|rest| {
        let word = rest.split([',', ' ']).next().unwrap_or(rest);
        word.trim_end_matches('.').to_owned()
    });
    match resource {
        Some(resource) => format!("ask for less {resource}, or wait until others are done"),
        None if message.contains("taint") => {
            "the nodes' taints keep it out: use other nodes, or have the taint removed".to_owned()
        }
        None if message.contains("selector") || message.contains("affinity") => {
            "correct `node_selector`".to_owned()
        }
        None => "look at the nodes, and at what the task asks for".to_owned(),
    }
}

/// Whether a failed pod failed before its command could run, and why; else
/// why the command failed, as far as that can be known. `last_line` is the
/// last line of its log.
#[must_use]
pub fn failure(pod: &PodEvidence, last_line: Option<&str>) -> (Explanation, bool) {
    if let Some((name, ended)) = pod.failed_init() {
        let said = if ended.message.is_empty() {
            last_line.unwrap_or_default()
        } else {
            &ended.message
        };
        let said = said.trim().trim_start_matches("longshore: ");
        if is_start_error(&ended.reason) {
            return (lacks_program(pod, name, said), false);
        }
        let what = if name == names::FETCH {
            "the code did not arrive"
        } else {
            "the pod could not be prepared"
        };
        let cause = with_message(what.to_owned(), said);
        return (
            Explanation::new(cause, format!("read the log of its container {name:?}")),
            false,
        );
    }
    if pod.status.reason == "Evicted" {
        let cause = with_message("the node evicted it".to_owned(), &pod.status.message);
        return (
            Explanation::new(
                cause,
                "ask for what it needs with `resources`, and try again",
            ),
            true,
        );
    }
    if pod.status.reason == "DeadlineExceeded" {
        return (
            Explanation::new("it ran into its deadline", "raise `timeout`"),
            true,
        );
    }
    let Some(ended) = pod.ended() else {
        let cause = with_message(
            format!("it failed ({})", or(&pod.status.reason, "no reason given")),
            &pod.status.message,
        );
        return (
            Explanation::new(cause, "look at its events: `kubectl describe pod`"),
            true,
        );
    };
    if is_start_error(&ended.reason) {
        return (lacks_program(pod, names::MAIN, &ended.message), false);
    }
    if ended.reason == "OOMKilled" {
        let remedy = "raise its `memory`, or let it use less (smaller batches)";
        return (
            Explanation::new("it was killed: out of memory", remedy),
            true,
        );
    }
    // The bootstrap leaves its reason as the container's last words, and as
    // the last line of its log.
    let said = [ended.message.as_str(), last_line.unwrap_or_default()];
    let said = said
        .into_iter()
        .find_map(|text| text.trim().strip_prefix("longshore: "));
    if let (125..=127, Some(said)) = (ended.exit_code, said) {
        let remedy = match ended.exit_code {
            127 => "check the command's spelling, and that the image or the folder holds it",
            126 => "make the file executable, and check its first line",
            _ => "read the log of the task",
        };
        let command = command(pod);
        let cause = if command.is_empty() {
            said.to_owned()
        } else {
            format!("{said} (command: {command})")
        };
        return (Explanation::new(cause, remedy), false);
    }
    let (cause, remedy) = match ended.exit_code {
        137 => (
            "it was killed (exit code 137)".to_owned(),
            "often this is too little memory: raise `memory`",
        ),
        143 => (
            "it was asked to end (exit code 143)".to_owned(),
            "look who stopped it: a drain, a deletion, a failed peer",
        ),
        code => (
            format!("its command ended with exit code {code}"),
            "read its log above",
        ),
    };
    (Explanation::new(cause, remedy), true)
}

fn is_start_error(reason: &str) -> bool {
    matches!(
        reason,
        "StartError" | "ContainerCannotRun" | "ContainerCreateError" | "RunContainerError"
    )
}

fn lacks_program(pod: &PodEvidence, container: &str, message: &str) -> Explanation {
    let image = image(pod, container);
    let cause = with_message(
        format!("the container {container:?} of image {image:?} could not be started"),
        message,
    );
    Explanation::new(
        cause,
        "the image must hold the program `longshore`, or `launcher_image` must name one that does",
    )
}

/// Why a Job failed, when no pod tells.
#[must_use]
pub fn job_failure(condition: &Condition) -> Explanation {
    match condition.reason.as_str() {
        "DeadlineExceeded" => {
            Explanation::new("the run took longer than its `timeout`", "raise `timeout`")
        }
        reason => Explanation::new(
            with_message(
                format!("the Job failed ({})", or(reason, "no reason given")),
                &condition.message,
            ),
            "look at the Job's events: `kubectl describe job`",
        ),
    }
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
