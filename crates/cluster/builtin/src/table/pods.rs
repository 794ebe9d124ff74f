//! Table rows of Pods. The status is computed like in Kubernetes: init
//! containers first, then the last container that is not running, then
//! deletion.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age_cell, condition, duration, holds, list, name, or, text, time_at};

pub(crate) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summary(pod);
    let ip = or(text(pod, "/status/podIP"), text(pod, "/status/podIPs/0/ip"));
    vec![
        name(pod),
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.status.as_str().into(),
        summary.restarts_text(now).into(),
        age_cell(pod, now),
        or(ip, "<none>").into(),
        or(text(pod, "/spec/nodeName"), "<none>").into(),
        or(text(pod, "/status/nominatedNodeName"), "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

/// Returns the row conditions of a finished pod, by which kubectl can hide it.
pub(crate) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

struct Summary {
    status: String,
    ready: usize,
    containers: usize,
    restarts: Restarts,
}

#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status
            .get("restartCount")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        self.last = self
            .last
            .max(time_at(status, "/lastState/terminated/finishedAt"));
    }
}

impl Summary {
    fn restarts_text(&self, now: Timestamp) -> String {
        match self.restarts {
            Restarts {
                count,
                last: Some(last),
            } if count > 0 => {
                format!("{count} ({} ago)", duration::age(Some(last), now))
            }
            Restarts { count, .. } => count.to_string(),
        }
    }
}

fn summary(pod: &Value) -> Summary {
    let mut status = or(text(pod, "/status/reason"), text(pod, "/status/phase")).to_owned();
    if condition(pod, "PodScheduled").is_some_and(|c| text(c, "/reason") == "SchedulingGated") {
        "SchedulingGated".clone_into(&mut status);
    }
    let inits = list(pod, "/spec/initContainers");
    let sidecars = inits.iter().filter(|c| is_sidecar(c)).count();
    let containers = list(pod, "/spec/containers").len() + sidecars;
    let init = init_summary(pod);
    let (mut ready, mut restarts) = (init.ready, init.restarts);
    if let Some(word) = &init.stuck {
        status.clone_from(word);
    }
    if init.stuck.is_none() || holds(pod, "Initialized") {
        restarts = init.sidecar_restarts;
        let mut running = false;
        for container in list(pod, "/status/containerStatuses").iter().rev() {
            restarts.add(container);
            if let Some(word) = stopped(container, "") {
                status = word;
            } else if is_true(container, "/ready") && container.pointer("/state/running").is_some()
            {
                running = true;
                ready += 1;
            }
        }
        if status == "Completed" && running {
            status = if holds(pod, "Ready") {
                "Running"
            } else {
                "NotReady"
            }
            .to_owned();
        }
    }
    if pod
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null())
    {
        if text(pod, "/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut status);
        } else if !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut status);
        }
    }
    Summary {
        status,
        ready,
        containers,
        restarts,
    }
}

#[derive(Default)]
struct InitSummary {
    /// Status of the first init container that blocks the pod.
    stuck: Option<String>,
    ready: usize,
    restarts: Restarts,
    sidecar_restarts: Restarts,
}

fn init_summary(pod: &Value) -> InitSummary {
    let inits = list(pod, "/spec/initContainers");
    let mut summary = InitSummary::default();
    for (i, status) in list(pod, "/status/initContainerStatuses")
        .iter()
        .enumerate()
    {
        let name = text(status, "/name");
        let sidecar = inits
            .iter()
            .any(|init| text(init, "/name") == name && is_sidecar(init));
        summary.restarts.add(status);
        if sidecar {
            summary.sidecar_restarts.add(status);
        }
        let exit_code = status
            .pointer("/state/terminated/exitCode")
            .and_then(Value::as_i64);
        if exit_code == Some(0) {
            continue;
        }
        if sidecar && is_true(status, "/started") {
            summary.ready += usize::from(is_true(status, "/ready"));
            continue;
        }
        let waits_in_turn = text(status, "/state/waiting/reason") == "PodInitializing";
        let word = stopped(status, "Init:").filter(|_| !waits_in_turn);
        summary.stuck = Some(word.unwrap_or_else(|| format!("Init:{i}/{}", inits.len())));
        break;
    }
    summary
}

/// Returns why a container is not running; `None` if it is running or the
/// reason is unknown.
fn stopped(status: &Value, prefix: &str) -> Option<String> {
    let waiting = text(status, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(format!("{prefix}{waiting}"));
    }
    let terminated = status.pointer("/state/terminated")?;
    let number = |pointer| {
        terminated
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    Some(match (text(terminated, "/reason"), number("/signal")) {
        ("", 0) => format!("{prefix}ExitCode:{}", number("/exitCode")),
        ("", signal) => format!("{prefix}Signal:{signal}"),
        (reason, _) => format!("{prefix}{reason}"),
    })
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let passed = gates
        .iter()
        .filter(|gate| holds(pod, text(gate, "/conditionType")))
        .count();
    format!("{passed}/{}", gates.len())
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

fn is_true(object: &Value, pointer: &str) -> bool {
    object
        .pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn row(pod: &Value) -> String {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let cells = cells(pod, now);
        let shown: Vec<&str> = cells[1..4]
            .iter()
            .map(|cell| cell.as_str().unwrap())
            .collect();
        shown.join(" ")
    }

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
            "status": status,
        })
    }

    #[test]
    fn words() {
        let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let running = json!({"running": {}});
        for (status, expected) in [
            (json!({"phase": "Pending"}), "0/2 Pending 0"),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": running}]}),
                "0/2 Init:0/1 0",
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [
                    {"name": "i", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                     "lastState": {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}}}]}),
                "0/2 Init:CrashLoopBackOff 2 (5m ago)",
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 3}}}]}),
                "0/2 Init:ExitCode:3 0",
            ),
            (
                json!({"phase": "Running", "containerStatuses": [
                    {"name": "a", "ready": true, "state": running, "restartCount": 1},
                    {"name": "b", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
                "1/2 Error 1",
            ),
            (
                json!({"phase": "Succeeded", "containerStatuses": [
                    {"name": "a", "state": done}, {"name": "b", "state": done}]}),
                "0/2 Completed 0",
            ),
            (
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
                    {"name": "a", "state": done}, {"name": "b", "ready": true, "state": running}]}),
                "1/2 Running 0",
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 1, "signal": 9}}}]}),
                "0/2 Signal:9 0",
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted"}),
                "0/2 Evicted 0",
            ),
        ] {
            assert_eq!(row(&pod(&status)), expected, "{status}");
        }
    }

    #[test]
    fn deletion_shows_unless_the_pod_has_finished() {
        for (phase, expected) in [
            ("Running", "0/2 Terminating 0"),
            ("Succeeded", "0/2 Succeeded 0"),
        ] {
            let mut pod = pod(&json!({"phase": phase}));
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            assert_eq!(row(&pod), expected);
        }
    }
}
