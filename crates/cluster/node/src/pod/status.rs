//! Computes a pod's status from its containers' records: phase, conditions,
//! container statuses (api-semantics rule 35). Pure.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use longshore_model::time::seconds;
use serde_json::{Map, Value, json};

use super::{
    record::{Ended, Policy, Record, Role, State, UNKNOWN},
    resize::Resize,
};

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Returns true if the phase is final.
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Parses the phase of an object.
    pub(crate) fn of(pod: &Pod) -> Self {
        match pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref())
        {
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            _ => Self::Pending,
        }
    }
}

/// Returns true if a main container has run. The pod is then initialized, even if a sidecar
/// restarts.
pub(crate) fn has_main_run(records: &[Record]) -> bool {
    let mut mains = records.iter().filter(|record| record.role == Role::Main);
    mains.any(Record::has_run)
}

/// Returns true if the init containers are complete, so that the main containers may run.
pub(crate) fn is_initialized(records: &[Record], policy: Policy) -> bool {
    has_main_run(records)
        || records.iter().all(|record| match record.role {
            Role::Init => record.final_code(policy) == Some(0),
            Role::Sidecar => record.was_started(),
            Role::Main | Role::Ephemeral => true,
        })
}

/// Computes the phase. If `stopped` is set, no container restarts, regardless
/// of the policy.
pub(crate) fn phase(records: &[Record], policy: Policy, stopped: bool) -> Phase {
    let mains = || records.iter().filter(|record| record.role == Role::Main);
    let running = records.iter().any(Record::is_running);
    if stopped && !running {
        let succeeded =
            |record: &Record| matches!(&record.state, State::Ended(ended) if ended.code == 0);
        return if mains().all(succeeded) {
            Phase::Succeeded
        } else {
            Phase::Failed
        };
    }
    let init_failed = records.iter().any(|record| {
        record.role == Role::Init && record.final_code(policy).is_some_and(|code| code != 0)
    });
    if init_failed && !running {
        return Phase::Failed;
    }
    if !is_initialized(records, policy) || mains().any(|record| !record.has_run()) {
        return Phase::Pending;
    }
    // Sidecars stop after the main containers, which determine the end of the
    // pod.
    let codes: Option<Vec<i32>> = mains().map(|record| record.final_code(policy)).collect();
    match codes {
        Some(codes) if !running => {
            if codes.iter().all(|code| *code == 0) {
                Phase::Succeeded
            } else {
                Phase::Failed
            }
        }
        _ => Phase::Running,
    }
}

/// The inputs of a status.
pub(crate) struct Inputs<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) records: &'a [Record],
    pub(crate) phase: Phase,
    pub(crate) policy: Policy,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) host_address: Ipv4Addr,
    pub(crate) started: Option<Timestamp>,
    /// The reason why the agent ended the pod.
    pub(crate) reason: Option<(&'static str, String)>,
    /// True if the node has not admitted the pod. Its containers then have no statuses.
    pub(crate) is_rejected: bool,
    /// The resize of the pod.
    pub(crate) resize: &'a Resize,
    /// The resources of the pod itself.
    pub(crate) pod_resources: Option<&'a ResourceRequirements>,
    /// The conditions that were last reported.
    pub(crate) before: &'a [Value],
    pub(crate) now: Timestamp,
}

/// Renders the status as a strategic merge patch.
pub(crate) fn render(inputs: &Inputs<'_>) -> Value {
    let statuses = |list: &str| -> Vec<Value> {
        let records = inputs.records.iter().filter(|record| record.list() == list);
        records
            .map(|record| container_status(record, inputs.policy))
            .collect()
    };
    let mut status = Map::new();
    if let Some(generation) = inputs.pod.metadata.generation {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    status.insert("phase".to_owned(), inputs.phase.as_str().into());
    if let Some(started) = inputs.started {
        status.insert("startTime".to_owned(), seconds(started).into());
    }
    if let Some((reason, message)) = &inputs.reason {
        status.insert("reason".to_owned(), (*reason).into());
        status.insert("message".to_owned(), message.as_str().into());
    }
    if inputs.is_rejected {
        return Value::Object(status);
    }
    let host = inputs.host_address.to_string();
    status.insert("hostIP".to_owned(), host.as_str().into());
    status.insert("hostIPs".to_owned(), json!([{"ip": host}]));
    if let Some(address) = inputs.address {
        status.insert("podIP".to_owned(), address.to_string().into());
        status.insert("podIPs".to_owned(), json!([{"ip": address.to_string()}]));
    }
    let mut conditions = conditions(inputs);
    conditions.extend(inputs.resize.conditions(inputs.before, inputs.now));
    status.insert("conditions".to_owned(), conditions.into());
    if let Some(resources) = inputs.pod_resources {
        if let Some(requests) = &resources.requests {
            status.insert("allocatedResources".to_owned(), json!(requests));
        }
        status.insert("resources".to_owned(), json!(resources));
    }
    let inits = statuses("initContainers");
    if !inits.is_empty() {
        status.insert("initContainerStatuses".to_owned(), inits.into());
    }
    let mains = statuses("containers");
    status.insert("containerStatuses".to_owned(), mains.into());
    let ephemeral = statuses("ephemeralContainers");
    if !ephemeral.is_empty() {
        status.insert("ephemeralContainerStatuses".to_owned(), ephemeral.into());
    }
    Value::Object(status)
}

fn conditions(inputs: &Inputs<'_>) -> Vec<Value> {
    let names = |list: Vec<&str>| format!("[{}]", list.join(" "));
    let incomplete: Vec<_> = inputs
        .records
        .iter()
        .filter(|record| match record.role {
            Role::Init => record.final_code(inputs.policy) != Some(0),
            Role::Sidecar => !record.was_started(),
            Role::Main | Role::Ephemeral => false,
        })
        .map(Record::name)
        .collect();
    let unready: Vec<_> = inputs
        .records
        .iter()
        .filter(|record| matches!(record.role, Role::Main | Role::Sidecar) && !record.is_ready())
        .map(Record::name)
        .collect();
    let initialized = match inputs.phase {
        Phase::Succeeded => Ok(Some("PodCompleted")),
        _ if incomplete.is_empty() || has_main_run(inputs.records) => Ok(None),
        _ => Err((
            "ContainersNotInitialized",
            format!("containers with incomplete status: {}", names(incomplete)),
        )),
    };
    let containers_ready: Holds = match inputs.phase {
        Phase::Succeeded => Err(("PodCompleted", String::new())),
        Phase::Failed => Err(("PodFailed", String::new())),
        _ if unready.is_empty() => Ok(None),
        _ => Err((
            "ContainersNotReady",
            format!("containers with unready status: {}", names(unready)),
        )),
    };
    let ready = containers_ready
        .clone()
        .and_then(|reason| match unready_gates(inputs.pod) {
            None => Ok(reason),
            Some(message) => Err(("ReadinessGatesNotReady", message)),
        });
    // Containers have the pod's network as soon as the pod has an address.
    let has_network = match inputs.address {
        Some(_) if !inputs.phase.is_terminal() => Ok(None),
        _ => Err(("", String::new())),
    };
    let mut conditions = vec![
        condition(inputs, "PodReadyToStartContainers", &has_network),
        condition(inputs, "Initialized", &initialized),
        condition(inputs, "Ready", &ready),
        condition(inputs, "ContainersReady", &containers_ready),
        condition(inputs, "PodScheduled", &Ok(None)),
    ];
    // The containers of a kubelet survive the kubelet. Here they end with the agent, which counts
    // as the end of the node instead of a failure of the pod.
    let ended_with_agent = |record: &Record| {
        let State::Ended(ended) = &record.state else {
            return false;
        };
        // A container that waited when its pod ended has no times.
        let has_run = ended.finished.is_some();
        matches!(record.role, Role::Main | Role::Init) && ended.reason == UNKNOWN && has_run
    };
    if inputs.phase == Phase::Failed && inputs.records.iter().any(ended_with_agent) {
        let reason = Ok(Some("TerminationByKubelet"));
        conditions.push(condition(inputs, "DisruptionTarget", &reason));
    }
    conditions
}

/// Returns a message about the readiness gates that prevent the pod from being ready.
fn unready_gates(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let status = pod.status.as_ref();
    let gates = spec.readiness_gates.iter().flatten();
    let messages: Vec<_> = gates
        .filter_map(|gate| {
            let kind = &gate.condition_type;
            let mut conditions = status
                .iter()
                .flat_map(|status| status.conditions.iter().flatten());
            match conditions.find(|condition| condition.type_ == *kind) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {kind:?} does not exist."
                )),
                Some(condition) if condition.status != "True" => Some(format!(
                    "the status of pod readiness gate {kind:?} is not \"True\", but {}",
                    condition.status
                )),
                Some(_) => None,
            }
        })
        .collect();
    (!messages.is_empty()).then(|| messages.join(", "))
}

type Holds = Result<Option<&'static str>, (&'static str, String)>;

fn condition(inputs: &Inputs<'_>, kind: &str, holds: &Holds) -> Value {
    let status = if holds.is_ok() { "True" } else { "False" };
    let (reason, message) = match holds {
        Ok(reason) => (*reason, None),
        Err((reason, message)) => (
            Some(*reason).filter(|text| !text.is_empty()),
            Some(message).filter(|text| !text.is_empty()),
        ),
    };
    let known = inputs
        .before
        .iter()
        .find(|condition| condition["type"] == kind);
    let since = known
        .filter(|condition| condition["status"] == status)
        .map(|condition| condition["lastTransitionTime"].clone());
    let had = |field: &str| known.is_some_and(|condition| condition[field].is_string());
    // Null removes an earlier text.
    let text = |field: &str, text: Option<&str>| {
        text.map(Value::from)
            .or_else(|| had(field).then_some(Value::Null))
    };
    object([
        ("type", Some(kind.into())),
        ("status", Some(status.into())),
        (
            "observedGeneration",
            inputs.pod.metadata.generation.map(Value::from),
        ),
        ("reason", text("reason", reason)),
        ("message", text("message", message.map(String::as_str))),
        (
            "lastTransitionTime",
            Some(since.unwrap_or_else(|| seconds(inputs.now).into())),
        ),
    ])
}

fn container_status(record: &Record, policy: Policy) -> Value {
    let ready = match record.role {
        Role::Init => record.final_code(policy) == Some(0),
        Role::Sidecar | Role::Main => record.is_ready(),
        Role::Ephemeral => false,
    };
    let state = match &record.state {
        State::Waiting { reason, message } => {
            json!({"waiting": object([("reason", Some(reason.as_str().into())),
                                      ("message", message.as_deref().map(Value::from))])})
        }
        State::Running { since } => json!({"running": {"startedAt": seconds(*since)}}),
        State::Ended(ended) => terminated(ended),
    };
    let image = record.container.image.as_deref().unwrap_or_default();
    let mut status = json!({
        "name": record.name(),
        "image": image,
        "imageID": image,
        "ready": ready,
        "restartCount": record.restarts,
        "state": state,
        "lastState": record.last.as_ref().map_or_else(|| json!({}), terminated),
    });
    if record.role != Role::Ephemeral {
        let allocated = record.container.resources.clone().unwrap_or_default();
        let actual = record.actual.as_ref().unwrap_or(&allocated);
        status["resources"] = json!(actual);
        if let Some(requests) = allocated.requests.filter(|requests| !requests.is_empty()) {
            status["allocatedResources"] = json!(requests);
        }
        status["started"] = record.is_started().into();
    }
    if let Some(id) = &record.id {
        status["containerID"] = id.as_str().into();
    }
    status
}

fn terminated(ended: &Ended) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| Value::from(seconds(time)));
    json!({"terminated": object([
        ("exitCode", Some(ended.code.into())),
        ("reason", Some(ended.reason.as_str().into())),
        ("message", ended.message.as_deref().map(Value::from)),
        ("startedAt", time(ended.started)),
        ("finishedAt", time(ended.finished)),
        ("containerID", ended.id.as_deref().map(Value::from)),
    ])})
}

fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::pod::record::records;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "generation": 3},
            "spec": {
                "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
                "containers": [{"name": "a"}, {"name": "b"}]}
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_767_323_045).unwrap()
    }

    fn run(record: &mut Record, code: Option<i32>) {
        record.started("longshore://x".to_owned(), now());
        if let Some(code) = code {
            record.ended(code, None, now());
        }
    }

    #[test]
    fn phases_of_a_pod_that_runs_to_its_end() {
        let mut all = records(&pod(), None, now());
        let policy = Policy::Never;
        assert_eq!(phase(&all, policy, false), Phase::Pending);
        run(&mut all[0], Some(0));
        run(&mut all[1], None);
        assert_eq!(phase(&all, policy, false), Phase::Pending);
        run(&mut all[2], None);
        assert_eq!(phase(&all, policy, false), Phase::Pending);
        run(&mut all[3], Some(0));
        assert_eq!(phase(&all, policy, false), Phase::Running);
        all[2].ended(0, None, now());
        assert_eq!(
            phase(&all, policy, false),
            Phase::Running,
            "the sidecar still runs"
        );
        all[1].ended(143, None, now());
        assert_eq!(phase(&all, policy, false), Phase::Succeeded);
    }

    #[test]
    fn phases_of_failures() {
        let mut all = records(&pod(), None, now());
        run(&mut all[0], Some(1));
        assert_eq!(phase(&all, Policy::Never, false), Phase::Failed);
        assert_eq!(phase(&all, Policy::OnFailure, false), Phase::Pending);
        run(&mut all[0], Some(0));
        run(&mut all[1], Some(0));
        run(&mut all[2], Some(0));
        run(&mut all[3], Some(7));
        assert_eq!(phase(&all, Policy::Never, false), Phase::Failed);
        assert_eq!(phase(&all, Policy::OnFailure, false), Phase::Running);
        all[3].wait("CrashLoopBackOff", None);
        assert_eq!(phase(&all, Policy::Always, false), Phase::Running);
        assert_eq!(phase(&all, Policy::Always, true), Phase::Failed);
    }

    fn rendered(records: &[Record], phase: Phase, before: &[Value]) -> Value {
        render(&Inputs {
            pod: &pod(),
            records,
            phase,
            policy: Policy::Never,
            address: Some(Ipv4Addr::new(127, 16, 0, 1)),
            host_address: Ipv4Addr::LOCALHOST,
            started: Some(now()),
            reason: None,
            is_rejected: false,
            resize: &Resize::default(),
            pod_resources: None,
            before,
            now: now(),
        })
    }

    #[test]
    fn a_status_has_the_fields_that_clients_read() {
        let mut all = records(&pod(), None, now());
        run(&mut all[0], Some(0));
        run(&mut all[1], None);
        run(&mut all[2], Some(3));
        run(&mut all[3], None);
        let status = rendered(&all, Phase::Running, &[]);
        assert_eq!(status["podIPs"][0]["ip"], "127.16.0.1");
        let a = &status["containerStatuses"][0];
        assert_eq!(a["state"]["terminated"]["exitCode"], 3);
        assert_eq!(a["state"]["terminated"]["reason"], "Error");
        assert_eq!(a["ready"], false);
        assert_eq!(
            status["containerStatuses"][1]["state"]["running"]["startedAt"],
            "2026-01-02T03:04:05Z"
        );
        let ready = &status["conditions"][2];
        assert_eq!(
            (&ready["type"], &ready["status"]),
            (&json!("Ready"), &json!("False"))
        );
        assert_eq!(ready["message"], "containers with unready status: [a]");
        let network = &status["conditions"][0];
        assert_eq!(network["type"], "PodReadyToStartContainers");
        assert_eq!(network["status"], "True");
        assert_eq!(status["observedGeneration"], 3);
        assert_eq!(network["observedGeneration"], 3);
        let typed: k8s_openapi::api::core::v1::PodStatus = serde_json::from_value(status).unwrap();
        assert_eq!(typed.init_container_statuses.unwrap().len(), 2);
    }

    #[test]
    fn a_pod_is_ready_if_its_containers_and_gates_are() {
        let mut pod = pod();
        let spec = pod.spec.as_mut().unwrap();
        let probe = Some(k8s_openapi::api::core::v1::Probe::default());
        spec.init_containers.as_mut().unwrap()[1].readiness_probe = probe.clone();
        spec.containers[0].readiness_probe = probe;
        let gate = json!({"conditionType": "example.com/ready"});
        spec.readiness_gates = serde_json::from_value(json!([gate])).unwrap();
        let mut all = records(&pod, None, now());
        run(&mut all[0], Some(0));
        for record in &mut all[1..] {
            run(record, None);
        }
        let ready = |pod: &Pod, all: &[Record]| {
            let status = render(&Inputs {
                pod,
                records: all,
                phase: Phase::Running,
                policy: Policy::Always,
                address: None,
                host_address: Ipv4Addr::LOCALHOST,
                started: None,
                reason: None,
                is_rejected: false,
                resize: &Resize::default(),
                pod_resources: None,
                before: &[],
                now: now(),
            });
            let conditions = status["conditions"].as_array().unwrap();
            let text = |kind: &str| {
                let found = conditions
                    .iter()
                    .find(|condition| condition["type"] == kind);
                found.unwrap()["message"]
                    .as_str()
                    .unwrap_or("ready")
                    .to_owned()
            };
            (text("ContainersReady"), text("Ready"))
        };
        let unready = "containers with unready status: [s a]".to_owned();
        assert_eq!(ready(&pod, &all), (unready.clone(), unready));
        all[1].set_readiness(true);
        all[2].set_readiness(true);
        let missing =
            "corresponding condition of pod readiness gate \"example.com/ready\" does not exist.";
        assert_eq!(ready(&pod, &all), ("ready".to_owned(), missing.to_owned()));
        for (status, expected) in [
            (
                "False",
                "the status of pod readiness gate \"example.com/ready\" is not \"True\", but False",
            ),
            ("True", "ready"),
        ] {
            let condition = json!({"type": "example.com/ready", "status": status});
            pod.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
            assert_eq!(ready(&pod, &all).1, expected);
        }
    }

    #[test]
    fn a_condition_keeps_its_transition_time_until_its_status_changes() {
        let all = records(&pod(), None, now());
        let old = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"});
        let status = rendered(&all, Phase::Pending, &[old]);
        assert_eq!(
            status["conditions"][2]["lastTransitionTime"],
            "2020-01-01T00:00:00Z"
        );
        assert_eq!(
            status["conditions"][3]["lastTransitionTime"],
            "2026-01-02T03:04:05Z"
        );
    }
}
