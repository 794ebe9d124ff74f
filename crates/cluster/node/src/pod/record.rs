//! The agent's record of a container: its state, its runs, and the conditions of its restarts.
//! Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, ResourceRequirements};

use crate::LastEnd;

const FIRST_DELAY: Duration = Duration::from_secs(10);
const LONGEST_DELAY: Duration = Duration::from_secs(300);
/// The minimum duration of a run that resets the restart backoff.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// A pod's restartPolicy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    pub(crate) fn of(pod: &Pod) -> Self {
        match pod
            .spec
            .as_ref()
            .and_then(|spec| spec.restart_policy.as_deref())
        {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// The type of a container in its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs to completion before the next container starts.
    Init,
    /// An init container that continues to run with the main containers.
    Sidecar,
    Main,
    /// Added to a running pod. Runs once and does not affect the pod's phase.
    Ephemeral,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Option<Timestamp>,
    pub(crate) id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Waiting {
        reason: String,
        message: Option<String>,
    },
    Running {
        since: Timestamp,
    },
    Ended(Ended),
}

/// A container of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) role: Role,
    pub(crate) container: Container,
    /// The container whose processes an ephemeral container sees.
    pub(crate) target: Option<String>,
    pub(crate) state: State,
    /// The previous run.
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: u32,
    pub(crate) id: Option<String>,
    /// The resources of the current run. The resources in `container` are for the next run.
    pub(crate) actual: Option<ResourceRequirements>,
    /// True if the startup probe of the current run has succeeded.
    passed_startup: bool,
    /// True if the readiness probe succeeds.
    passes_readiness: bool,
    /// True if a run has passed its startup probe.
    was_started: bool,
    /// True if the container restarts regardless of its exit code, because it was stopped for this
    /// purpose.
    restarts_anyway: bool,
    /// Number of runs that ended since the last long run.
    crashes: u32,
}

impl Record {
    fn new(role: Role, container: &Container, reason: &str) -> Self {
        Self {
            role,
            container: container.clone(),
            target: None,
            state: State::Waiting {
                reason: reason.to_owned(),
                message: None,
            },
            last: None,
            restarts: 0,
            id: None,
            actual: None,
            passed_startup: false,
            passes_readiness: false,
            was_started: false,
            restarts_anyway: false,
            crashes: 0,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.container.name
    }

    /// Returns the field of the pod's spec that contains the container.
    pub(crate) fn list(&self) -> &'static str {
        match self.role {
            Role::Init | Role::Sidecar => "initContainers",
            Role::Main => "containers",
            Role::Ephemeral => "ephemeralContainers",
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Returns true if the container has run or is running.
    pub(crate) fn has_run(&self) -> bool {
        self.last.is_some() || !matches!(self.state, State::Waiting { .. })
    }

    /// Returns true if the container runs and has passed its startup probe, if it has one.
    pub(crate) fn is_started(&self) -> bool {
        self.is_running() && (self.passed_startup || self.container.startup_probe.is_none())
    }

    /// Returns true if the container has been started once, so that containers that wait for it may
    /// start.
    pub(crate) fn was_started(&self) -> bool {
        self.was_started || self.has_run() && self.container.startup_probe.is_none()
    }

    /// Returns true if the container is started and passes its readiness probe, if it has one.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_started() && (self.passes_readiness || self.container.readiness_probe.is_none())
    }

    /// Records that the startup probe has succeeded.
    pub(crate) fn pass_startup(&mut self) {
        self.passed_startup = true;
        self.was_started = true;
    }

    /// Records a result of the readiness probe.
    pub(crate) fn set_readiness(&mut self, passes: bool) {
        self.passes_readiness = passes;
    }

    /// Returns true if the container restarts after it was stopped because a probe failed. It then
    /// restarts with any exit code.
    pub(crate) fn restart_after_stop(&mut self, policy: Policy) -> bool {
        let never = match self.container.restart_policy.as_deref() {
            Some(own) => own == "Never",
            None => policy == Policy::Never,
        };
        self.restarts_anyway = !never;
        !never
    }

    /// Returns true if the container restarts after a run that ended with `code`.
    pub(crate) fn restarts_after(&self, policy: Policy, code: i32) -> bool {
        if self.restarts_anyway || self.role == Role::Sidecar {
            return true;
        }
        if self.role == Role::Init && code == 0 || self.role == Role::Ephemeral {
            return false;
        }
        let policy = match self.container.restart_policy.as_deref() {
            Some(_) if self.has_restart_rule(code) => Policy::Always,
            Some("Always") => Policy::Always,
            Some("OnFailure") => Policy::OnFailure,
            Some("Never") => Policy::Never,
            _ => policy,
        };
        match policy {
            Policy::Always => true,
            Policy::OnFailure => code != 0,
            Policy::Never => false,
        }
    }

    /// Returns true if a rule of the container restarts it after this exit code.
    fn has_restart_rule(&self, code: i32) -> bool {
        let mut rules = self.container.restart_policy_rules.iter().flatten();
        let matching = rules.find(|rule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let listed = codes.values.iter().flatten().any(|value| *value == code);
                match codes.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    _ => false,
                }
            })
        });
        matching.is_some_and(|rule| rule.action == "Restart")
    }

    /// Returns the exit code if the container will not restart.
    pub(crate) fn final_code(&self, policy: Policy) -> Option<i32> {
        match &self.state {
            State::Ended(ended) if !self.restarts_after(policy, ended.code) => Some(ended.code),
            _ => None,
        }
    }

    /// Records the start of a run.
    pub(crate) fn started(&mut self, id: String, at: Timestamp) {
        self.before_start();
        self.passed_startup = false;
        self.passes_readiness = false;
        self.restarts_anyway = false;
        self.id = Some(id);
        self.state = State::Running { since: at };
    }

    /// Returns the number of the next run.
    pub(crate) fn next_run(&self) -> u32 {
        self.restarts.saturating_add(u32::from(self.has_run()))
    }

    fn before_start(&mut self) {
        self.restarts = self.next_run();
        if let State::Ended(ended) = &self.state {
            self.last = Some(ended.clone());
        }
    }

    /// Records a run that failed to start.
    pub(crate) fn failed_to_start(&mut self, reason: &str, message: String, at: Timestamp) {
        self.before_start();
        self.state = State::Ended(Ended {
            code: 128,
            reason: reason.to_owned(),
            message: Some(message),
            started: Some(Timestamp::UNIX_EPOCH),
            finished: Some(at),
            id: None,
        });
    }

    /// Records the end of the current run.
    pub(crate) fn ended(&mut self, code: i32, message: Option<String>, at: Timestamp) {
        let started = match self.state {
            State::Running { since } => Some(since),
            _ => None,
        };
        self.actual = None;
        let reason = if code == 0 { "Completed" } else { "Error" };
        self.state = State::Ended(Ended {
            code,
            reason: reason.to_owned(),
            message,
            started,
            finished: Some(at),
            id: self.id.clone(),
        });
    }

    /// Records that the kernel killed a process of the ended run for lack of memory. As with
    /// container runtimes, this is the reason of the end with any exit code.
    pub(crate) fn was_out_of_memory(&mut self) {
        if let State::Ended(ended) = &mut self.state {
            "OOMKilled".clone_into(&mut ended.reason);
        }
    }

    /// Returns the delay before the next run and increases it.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let State::Ended(Ended {
            started: Some(started),
            finished: Some(finished),
            ..
        }) = &self.state
        else {
            return Duration::ZERO;
        };
        let ran = Duration::try_from(finished.duration_since(*started)).unwrap_or_default();
        if ran >= FORGET_AFTER && *started != Timestamp::UNIX_EPOCH {
            self.crashes = 0;
        }
        self.crashes = self.crashes.saturating_add(1);
        match self.crashes {
            1 => Duration::ZERO,
            crashes => FIRST_DELAY
                .saturating_mul(2u32.pow((crashes - 2).min(8)))
                .min(LONGEST_DELAY),
        }
    }

    /// Sets the waiting reason.
    pub(crate) fn wait(&mut self, reason: &str, message: Option<String>) {
        if let State::Ended(ended) = &self.state {
            self.last = Some(ended.clone());
        }
        self.state = State::Waiting {
            reason: reason.to_owned(),
            message,
        };
    }
}

/// The reason of a container that ended with its agent.
pub(super) const UNKNOWN: &str = "ContainerStatusUnknown";

/// Returns the records of a pod that is new to this agent, from the status that
/// an earlier agent reported. Containers that were running have ended.
pub(crate) fn records(pod: &Pod, last_end: Option<&LastEnd>, now: Timestamp) -> Vec<Record> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let inits = spec.init_containers.iter().flatten();
    let has_inits = spec
        .init_containers
        .as_ref()
        .is_some_and(|list| !list.is_empty());
    let first = if has_inits {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    let init_role = |container: &Container| match container.restart_policy.as_deref() {
        Some("Always") => Role::Sidecar,
        _ => Role::Init,
    };
    let inits = inits.map(|container| Record::new(init_role(container), container, first));
    let mains = spec
        .containers
        .iter()
        .map(|container| Record::new(Role::Main, container, first));
    let mut records: Vec<_> = inits.chain(mains).collect();
    records.extend(ephemeral_records(pod));
    let statuses = pod.status.iter().flat_map(|status| {
        let inits = status.init_container_statuses.iter().flatten();
        let mains = status.container_statuses.iter().flatten();
        let ephemeral = status.ephemeral_container_statuses.iter().flatten();
        inits.chain(mains).chain(ephemeral)
    });
    for status in statuses {
        if let Some(record) = records
            .iter_mut()
            .find(|record| record.name() == status.name)
        {
            restore(record, status, last_end, now);
        }
    }
    records
}

/// Returns the records of a pod's ephemeral containers.
pub(crate) fn ephemeral_records(pod: &Pod) -> impl Iterator<Item = Record> {
    let spec = pod.spec.iter();
    let all = spec.flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    all.filter_map(|ephemeral| {
        // Ephemeral containers have the fields of containers, and the target.
        let container = serde_json::to_vec(ephemeral).ok()?;
        let container = serde_json::from_slice(&container).ok()?;
        let mut record = Record::new(Role::Ephemeral, &container, "ContainerCreating");
        let target = ephemeral.target_container_name.clone();
        record.target = target.filter(|target| !target.is_empty());
        Some(record)
    })
}

fn restore(
    record: &mut Record,
    status: &ContainerStatus,
    last_end: Option<&LastEnd>,
    now: Timestamp,
) {
    record.restarts = u32::try_from(status.restart_count).unwrap_or(0);
    record.id.clone_from(&status.container_id);
    record.was_started = status.started == Some(true);
    let ended = |from: &k8s_openapi::api::core::v1::ContainerStateTerminated| Ended {
        code: from.exit_code,
        reason: from.reason.clone().unwrap_or_default(),
        message: from.message.clone(),
        started: from.started_at.as_ref().map(|time| time.0),
        finished: from.finished_at.as_ref().map(|time| time.0),
        id: from.container_id.clone(),
    };
    let last = status
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    record.last = last.map(ended);
    let Some(state) = &status.state else { return };
    if let Some(terminated) = &state.terminated {
        record.state = State::Ended(ended(terminated));
    } else if let Some(running) = &state.running {
        let started = running.started_at.as_ref().map(|time| time.0);
        // Containers ended with the previous agent, before this one started. The recorded end may
        // belong to an even earlier agent than the one that ran the container.
        let end = last_end.filter(|end| started.is_none_or(|started| started <= end.at));
        let message = end.map_or_else(
            || "the node agent ended while the container ran, and the container with it".to_owned(),
            |end| format!("{} while the container ran", end.cause),
        );
        record.state = State::Ended(Ended {
            code: 137,
            reason: UNKNOWN.to_owned(),
            message: Some(message),
            started,
            finished: Some(end.map_or(now, |end| end.at)),
            id: status.container_id.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn record(role: Role) -> Record {
        Record::new(
            role,
            &Container {
                name: "c".to_owned(),
                ..Container::default()
            },
            "x",
        )
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    #[test]
    fn restart_policies() {
        let restarts = |role, policy, code| record(role).restarts_after(policy, code);
        assert!(restarts(Role::Main, Policy::Always, 0));
        assert!(!restarts(Role::Main, Policy::OnFailure, 0));
        assert!(restarts(Role::Main, Policy::OnFailure, 1));
        assert!(!restarts(Role::Main, Policy::Never, 1));
        assert!(!restarts(Role::Init, Policy::Always, 0));
        assert!(restarts(Role::Init, Policy::Always, 1));
        assert!(!restarts(Role::Init, Policy::Never, 1));
        assert!(restarts(Role::Sidecar, Policy::Never, 0));
    }

    #[test]
    fn restart_policies_and_rules_of_containers() {
        let with = |fields: serde_json::Value, policy, code| {
            let mut container = json!({"name": "c"});
            for (name, value) in fields.as_object().unwrap() {
                container[name] = value.clone();
            }
            let container = serde_json::from_value(container).unwrap();
            Record::new(Role::Main, &container, "x").restarts_after(policy, code)
        };
        assert!(with(json!({"restartPolicy": "Always"}), Policy::Never, 0));
        assert!(with(
            json!({"restartPolicy": "OnFailure"}),
            Policy::Never,
            1
        ));
        assert!(!with(
            json!({"restartPolicy": "OnFailure"}),
            Policy::Always,
            0
        ));
        assert!(!with(json!({"restartPolicy": "Never"}), Policy::Always, 1));
        let rules = |operator: &str| {
            let codes = json!({"operator": operator, "values": [42]});
            let rule = json!({"action": "Restart", "exitCodes": codes});
            json!({"restartPolicy": "Never", "restartPolicyRules": [rule]})
        };
        assert!(with(rules("In"), Policy::Never, 42));
        assert!(!with(rules("In"), Policy::Never, 1));
        assert!(with(rules("NotIn"), Policy::Never, 1));
        assert!(!with(rules("NotIn"), Policy::Never, 42));
    }

    #[test]
    fn probes_decide_whether_a_container_is_started_and_ready() {
        let container: Container = serde_json::from_value(json!({
            "name": "c", "startupProbe": {}, "readinessProbe": {},
        }))
        .unwrap();
        let mut record = Record::new(Role::Main, &container, "x");
        let facts =
            |record: &Record| (record.is_started(), record.is_ready(), record.was_started());
        record.started("id".to_owned(), at(0));
        assert_eq!(facts(&record), (false, false, false));
        record.pass_startup();
        assert_eq!(facts(&record), (true, false, true));
        record.set_readiness(true);
        assert_eq!(facts(&record), (true, true, true));
        record.set_readiness(false);
        assert_eq!(facts(&record), (true, false, true));
        record.set_readiness(true);
        record.ended(1, None, at(1));
        assert_eq!(facts(&record), (false, false, true));
        record.started("id".to_owned(), at(2));
        assert_eq!(facts(&record), (false, false, true));
    }

    #[test]
    fn a_container_that_failed_a_probe_restarts_with_any_exit_code() {
        let mut record = record(Role::Main);
        record.started("id".to_owned(), at(0));
        assert!(record.restart_after_stop(Policy::OnFailure));
        record.ended(0, None, at(1));
        assert_eq!(record.final_code(Policy::OnFailure), None);
        record.started("id".to_owned(), at(2));
        record.ended(0, None, at(3));
        assert_eq!(record.final_code(Policy::OnFailure), Some(0));
        assert!(!record.restart_after_stop(Policy::Never));
        assert_eq!(record.final_code(Policy::Never), Some(0));
    }

    #[test]
    fn backoff_doubles_and_resets() {
        let mut record = record(Role::Main);
        let mut delays = Vec::new();
        for run in 0..8 {
            record.started("id".to_owned(), at(run));
            record.ended(1, None, at(run + 1));
            delays.push(record.next_delay().as_secs());
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(record.restarts, 7);
        record.started("id".to_owned(), at(0));
        record.ended(0, None, at(600));
        assert_eq!(record.next_delay(), Duration::ZERO);
    }

    #[test]
    fn containers_of_an_earlier_agent_are_terminated() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {},
            "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}, {"name": "d"}]},
            "status": {
                "initContainerStatuses": [{"name": "i", "image": "", "imageID": "", "ready": true,
                    "restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
                "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true,
                    "restartCount": 2, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}]}
        }))
        .unwrap();
        let records = records(&pod, None, at(0));
        assert_eq!(records[0].final_code(Policy::Always), Some(0));
        assert_eq!(records[1].final_code(Policy::Never), Some(137));
        assert_eq!(records[1].next_run(), 3);
        assert!(!records[2].has_run());

        // Only the end of the agent that ran the container counts, and not the end of an earlier
        // agent.
        let end = |text: &str| LastEnd {
            at: text.parse().unwrap(),
            cause: "the cluster was stopped by SIGTERM".to_owned(),
        };
        let ended = |last_end: &LastEnd| {
            let records = super::records(&pod, Some(last_end), at(0));
            let State::Ended(ended) = &records[1].state else {
                panic!("it still runs");
            };
            (ended.finished, ended.message.clone().unwrap())
        };
        let last = end("2026-01-02T03:05:00Z");
        let text = "the cluster was stopped by SIGTERM while the container ran".to_owned();
        assert_eq!(ended(&last), (Some(last.at), text));
        let (finished, text) = ended(&end("2026-01-02T03:04:00Z"));
        assert_eq!(finished, Some(at(0)));
        assert!(text.contains("the node agent ended"), "{text}");
    }
}
