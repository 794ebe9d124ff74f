//! A small model of the cluster: the node, the Job controller, and the ends of commands.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::scenario::{Attempt, Harm, Policy, Role, Scenario, Side};

/// The grace period of pods in seconds.
const GRACE: i64 = 30;

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) at: i64,
    pub(super) role: usize,
    pub(super) index: usize,
    pub(super) code: i32,
    /// True if the command was ended with its pod.
    pub(super) is_killed: bool,
    /// True if the failure does not count.
    pub(super) is_disrupted: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Pod {
    pub(super) uid: String,
    role: usize,
    index: usize,
    began: i64,
    /// The earlier failures of the task: the number of those that count, and of those that do not.
    earlier: (u32, u32),
    /// The time when the command ended, and its exit code.
    main: Option<(i64, i32)>,
    side: Option<(i64, i32)>,
    stopped_since: Option<i64>,
    is_disrupted: bool,
    pub(super) phase: &'static str,
    is_counted: bool,
    number: u32,
}

impl Pod {
    fn is_over(&self) -> bool {
        self.phase != "Running"
    }

    fn attempt(&self, roles: &[Role]) -> Attempt {
        let attempts = &roles[self.role].tasks[self.index];
        attempts[usize::try_from(self.number)
            .unwrap()
            .min(attempts.len() - 1)]
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Job {
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) is_suspended: bool,
    began: Option<i64>,
    completed: BTreeSet<usize>,
    failed: BTreeSet<usize>,
    has_failed_command: bool,
    failures: BTreeMap<usize, (u32, u32)>,
    /// The type, the reason and the time of the last condition.
    over: Option<(&'static str, &'static str, i64)>,
}

pub(super) struct Cluster {
    pub(super) scenario: Scenario,
    pub(super) now: i64,
    pub(super) pods: Vec<Pod>,
    pub(super) jobs: Vec<Job>,
    pub(super) ends: Vec<End>,
    /// The time when the deadline of a Job was applied.
    pub(super) overdue: Option<i64>,
    created: u32,
}

impl Cluster {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let job = Job {
            is_suspended: scenario.admitted.is_some(),
            ..Job::default()
        };
        Self {
            jobs: scenario.roles.iter().map(|_| job.clone()).collect(),
            scenario: scenario.clone(),
            now: 0,
            pods: Vec::new(),
            ends: Vec::new(),
            overdue: None,
            created: 0,
        }
    }

    pub(super) fn is_over(&self, job: usize) -> bool {
        self.jobs[job].over.is_some()
    }

    /// Advances the model by one second.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        if self.scenario.admitted == Some(self.now) {
            for job in &mut self.jobs {
                // A run that was stopped meanwhile is not admitted.
                if job.annotations.is_empty() {
                    job.is_suspended = false;
                }
            }
        }
        self.pods
            .retain(|pod| !(pod.is_over() && pod.stopped_since.is_some() && pod.is_counted));
        self.harm();
        for pod in 0..self.pods.len() {
            self.run_pod(pod);
        }
        for job in 0..self.jobs.len() {
            self.control(job);
        }
    }

    fn harm(&mut self) {
        let Some((when, which, harm)) = self.scenario.harm else {
            return;
        };
        let (now, roles) = (self.now, &self.scenario.roles);
        // The command is still running after this second.
        let mut running = self.pods.iter_mut().filter(|pod| {
            let ends = pod.began + pod.attempt(roles).takes;
            pod.main.is_none() && !pod.is_over() && pod.stopped_since.is_none() && ends > now + 1
        });
        if let Some(pod) = running.nth(which).filter(|_| when == now) {
            pod.stopped_since = Some(now);
            pod.is_disrupted = harm == Harm::Disrupted;
        }
    }

    /// Simulates the node for a pod.
    fn run_pod(&mut self, position: usize) {
        let (now, pod) = (self.now, &mut self.pods[position]);
        if pod.main.is_some() && pod.side.is_some() {
            return;
        }
        let role = &self.scenario.roles[pod.role];
        let attempt = pod.attempt(&self.scenario.roles);
        let is_ended = pod.stopped_since.is_some_and(|since| since < now) || pod.is_over();
        if pod.main.is_none() && (is_ended || now >= pod.began + attempt.takes) {
            let code = if is_ended { 143 } else { attempt.code };
            pod.main = Some((now, code));
            self.ends.push(End {
                at: now,
                role: pod.role,
                index: pod.index,
                code,
                is_killed: is_ended,
                is_disrupted: pod.is_disrupted,
            });
        }
        if pod.side.is_none() {
            pod.side = match role.side {
                Side::None | Side::Crashing => pod.main,
                Side::Ends { after, code } if now >= pod.began + after => Some((now, code)),
                Side::Endless | Side::Ends { .. } => is_ended.then_some((now, 143)),
            };
        }
        if let (Some((_, main)), Some((_, side)), "Running") = (pod.main, pod.side, pod.phase) {
            let succeeds = main == 0 && (!role.side.is_beside() || side == 0);
            pod.phase = if succeeds { "Succeeded" } else { "Failed" };
        }
    }

    /// Simulates the Job controller for a Job.
    fn control(&mut self, position: usize) {
        let now = self.now;
        let job = &mut self.jobs[position];
        let own = self.pods.iter_mut().filter(|pod| pod.role == position);
        let mut own: Vec<&mut Pod> = own.collect();
        if job.over.is_some() || job.is_suspended {
            for pod in own {
                if pod.is_over() {
                    pod.is_counted = true;
                } else {
                    pod.stopped_since.get_or_insert(now);
                }
            }
            return;
        }
        let began = *job.began.get_or_insert(now);
        let count = self.scenario.roles[position].tasks.len();
        let (limit, is_sweep) = match self.scenario.policy {
            Policy::Once => (0, false),
            Policy::Retries(limit) => (limit, false),
            Policy::Sweep(limit) => (limit, true),
        };
        for pod in own
            .iter_mut()
            .filter(|pod| pod.is_over() && !pod.is_counted)
        {
            pod.is_counted = true;
            let failures = job.failures.entry(pod.index).or_default();
            if pod.phase == "Succeeded" {
                job.completed.insert(pod.index);
            } else if pod.is_disrupted && limit > 0 {
                failures.1 += 1;
            } else {
                failures.0 += 1;
                // As in the plan's rules, only the command fails the Job, or counts.
                let by_command = pod.main.is_some_and(|(_, code)| code != 0);
                if by_command {
                    job.has_failed_command |= failures.0 > limit;
                }
                if failures.0 > limit || !by_command {
                    job.failed.insert(pod.index);
                }
            }
        }
        let has_others = self.scenario.roles[position].side.is_beside();
        let has_ended = |index: &usize| job.completed.contains(index) || job.failed.contains(index);
        let all_ended = (0..count).all(|index| has_ended(&index));
        if self
            .scenario
            .deadline
            .is_some_and(|after| now >= began + after)
        {
            job.over = Some(("Failed", "DeadlineExceeded", now));
            self.overdue.get_or_insert(now);
        } else if (limit == 0 || !has_others) && job.has_failed_command && !is_sweep
            || !job.failed.is_empty() && all_ended
        {
            let reason = match self.scenario.policy {
                Policy::Once => "BackoffLimitExceeded",
                _ => "FailedIndexes",
            };
            job.over = Some(("Failed", reason, now));
        } else if all_ended {
            job.over = Some(("Complete", "CompletionsReached", now));
        }
        let mut active: BTreeSet<usize> = BTreeSet::new();
        for pod in own.iter_mut().filter(|pod| !pod.is_over()) {
            if job.over.is_some() {
                pod.stopped_since.get_or_insert(now);
            }
            active.insert(pod.index);
        }
        if job.over.is_some() {
            return;
        }
        for index in 0..count {
            let is_due = !has_ended(&index) && !active.contains(&index);
            if is_due && active.len() < self.scenario.parallel {
                active.insert(index);
                let earlier = job.failures.get(&index).copied().unwrap_or_default();
                self.created += 1;
                self.pods.push(Pod {
                    uid: format!("pod-{:03}", 999 - self.created),
                    role: position,
                    index,
                    began: now,
                    earlier,
                    main: None,
                    side: None,
                    stopped_since: None,
                    is_disrupted: false,
                    phase: "Running",
                    is_counted: false,
                    number: earlier.0 + earlier.1,
                });
            }
        }
    }

    pub(super) fn role_name(&self, job: usize) -> &'static str {
        self.scenario.roles[job].name
    }

    /// The objects of the Jobs, by the role's name.
    pub(super) fn job_objects(&self) -> BTreeMap<String, Value> {
        let roles: Vec<Value> = self
            .scenario
            .roles
            .iter()
            .map(|role| json!({"name": role.name, "count": role.tasks.len(), "service": role.is_service}))
            .collect();
        let objects = self.scenario.roles.iter().zip(&self.jobs);
        let objects = objects.map(|(role, job)| {
            let object = self.job_object(role, job, &json!(roles).to_string());
            (role.name.to_owned(), object)
        });
        objects.collect()
    }

    fn job_object(&self, role: &Role, job: &Job, roles: &str) -> Value {
        let indexes = |set: &BTreeSet<usize>| {
            let texts: Vec<String> = set.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        let mut annotations = job.annotations.clone();
        annotations.insert("longshore.dev/roles".to_owned(), roles.to_owned());
        let mut labels = json!({
            "app.kubernetes.io/managed-by": "longshore",
            "longshore.dev/run": "run-x", "longshore.dev/role": role.name,
        });
        let mut spec = json!({
            "completions": role.tasks.len(),
            "parallelism": role.tasks.len().min(self.scenario.parallel),
            "suspend": job.is_suspended,
            "activeDeadlineSeconds": self.scenario.deadline,
        });
        let mut rules = Vec::new();
        let failure = |action: &str, container: &str| {
            let codes = json!({"containerName": container, "operator": "NotIn", "values": [0]});
            json!({"action": action, "onExitCodes": codes})
        };
        let disrupted = json!([{"type": "DisruptionTarget", "status": "True"}]);
        let disrupted = json!({"action": "Ignore", "onPodConditions": disrupted});
        let (limit, of_command) = match self.scenario.policy {
            Policy::Once => (0, "FailJob"),
            Policy::Retries(limit) => (limit, "Count"),
            Policy::Sweep(limit) => {
                labels["longshore.dev/sweep"] = "run-x".into();
                (limit, "Count")
            }
        };
        rules.extend((limit > 0).then_some(disrupted));
        if role.side.is_beside() {
            rules.push(failure(of_command, "main"));
            rules.push(failure("FailIndex", "proxy"));
        }
        match self.scenario.policy {
            Policy::Once if !role.side.is_beside() => spec["backoffLimit"] = 0.into(),
            _ => spec["backoffLimitPerIndex"] = limit.into(),
        }
        if !rules.is_empty() {
            spec["podFailurePolicy"] = json!({"rules": rules});
        }
        let conditions: Vec<Value> = job
            .over
            .iter()
            .map(|(kind, reason, time)| {
                json!({
                    "type": kind, "status": "True", "reason": reason, "message": "",
                    "lastTransitionTime": at(*time).to_string(),
                })
            })
            .collect();
        json!({
            "metadata": {
                "name": format!("run-x-{}", role.name), "namespace": "default",
                "uid": format!("job-{}", role.name), "resourceVersion": "1",
                "creationTimestamp": at(0).to_string(),
                "labels": labels, "annotations": annotations,
            },
            "spec": spec,
            "status": {
                "conditions": conditions,
                "completedIndexes": indexes(&job.completed),
                "failedIndexes": indexes(&job.failed),
                "startTime": job.began.map(|began| at(began).to_string()),
            },
        })
    }

    /// The objects of the pods, by UID.
    pub(super) fn pod_objects(&self) -> BTreeMap<String, Value> {
        let pods = self.pods.iter();
        pods.map(|pod| (pod.uid.clone(), self.pod_object(pod)))
            .collect()
    }

    fn pod_object(&self, pod: &Pod) -> Value {
        let role = &self.scenario.roles[pod.role];
        let state = |end: Option<(i64, i32)>| match end {
            Some((time, code)) => json!({"terminated": {
                "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
                "finishedAt": at(time).to_string(),
            }}),
            None => json!({"running": {"startedAt": at(pod.began).to_string()}}),
        };
        let mut spec = json!({"restartPolicy": "Never", "containers": [{"name": "main"}]});
        let mut status = json!({
            "phase": pod.phase,
            "containerStatuses": [{"name": "main", "state": state(pod.main)}],
        });
        match role.side {
            Side::None => {}
            Side::Endless | Side::Ends { .. } => {
                spec["containers"] = json!([{"name": "proxy"}, {"name": "main"}]);
                let proxy = json!({"name": "proxy", "state": state(pod.side)});
                status["containerStatuses"] =
                    json!([proxy, {"name": "main", "state": state(pod.main)}]);
            }
            Side::Crashing => {
                spec["initContainers"] = json!([{"name": "proxy", "restartPolicy": "Always"}]);
                let crashed = match pod.is_over() {
                    true => state(pod.main.map(|(time, _)| (time, 137))),
                    false => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                };
                status["initContainerStatuses"] = json!([{"name": "proxy", "state": crashed}]);
            }
        }
        if pod.is_disrupted {
            let reason = "EvictionByEvictionAPI";
            status["conditions"] =
                json!([{"type": "DisruptionTarget", "status": "True", "reason": reason}]);
        }
        let mut metadata = json!({
            "name": format!("run-x-{}-{}", role.name, pod.uid), "namespace": "default",
            "uid": pod.uid, "creationTimestamp": at(pod.began).to_string(),
            "labels": {
                "app.kubernetes.io/managed-by": "longshore",
                "longshore.dev/run": "run-x", "longshore.dev/role": role.name,
            },
            "annotations": {
                "batch.kubernetes.io/job-completion-index": pod.index.to_string(),
                "batch.kubernetes.io/job-index-failure-count": pod.earlier.0.to_string(),
                "batch.kubernetes.io/job-index-ignored-failure-count": pod.earlier.1.to_string(),
            },
            "ownerReferences": [{
                "kind": "Job", "name": format!("run-x-{}", role.name),
                "uid": format!("job-{}", role.name), "controller": true,
            }],
        });
        if let Some(since) = pod.stopped_since {
            metadata["deletionTimestamp"] = at(since + GRACE).to_string().into();
            metadata["deletionGracePeriodSeconds"] = GRACE.into();
        }
        json!({"metadata": metadata, "spec": spec, "status": status})
    }
}
