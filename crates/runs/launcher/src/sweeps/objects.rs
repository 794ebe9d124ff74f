//! The objects of a sweep and its retries.

use std::collections::BTreeMap;

use longshore_client::{
    Cluster, Item, LabelSelector,
    k8s_openapi::api::core::v1::Secret,
    kinds::{Job, Pod},
};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    names::{self, RunName, Task},
};
use longshore_model::facts::PodFacts;
use serde::Deserialize;

use super::SweepError;
use crate::{
    metrics::{self, MetricTask},
    pod::{self, PodConfig},
    queries,
    run::Run,
    runs::RunRole,
    sweep::{SweepRun, TaskRun},
};

/// A run of a sweep with its objects.
pub(super) struct Found {
    pub(super) run: Run,
    pub(super) job: Item<Job>,
    pub(super) config: PodConfig,
    pub(super) rows: SweepRun,
    /// The UIDs of running pods, by the index of their task.
    pub(super) running: BTreeMap<u32, String>,
}

impl Found {
    /// The names of the metrics to read from log lines.
    pub(super) fn log_names(&self) -> Vec<String> {
        metrics::log_names(&self.rows.job)
    }

    /// The tasks whose metrics are read.
    pub(super) fn metric_tasks(&self) -> Vec<MetricTask> {
        let tasks = self.rows.tasks.iter().map(|(index, task)| MetricTask {
            task: Task {
                role: self.rows.role.clone(),
                index: *index,
            },
            pod: task.pod.clone(),
            uid: self.running.get(index).cloned(),
            container: task.container.clone(),
            has_started: task.has_started,
            running: self.running.get(index).cloned(),
        });
        tasks.collect()
    }
}

/// The first run of a sweep, and its retries in the order of their creation. `run` is any of these
/// runs.
pub(super) async fn find(cluster: &Cluster, run: &Run) -> Result<(Found, Vec<Found>), SweepError> {
    let not_a_sweep = || SweepError::NotASweep {
        run: run.name.to_string(),
    };
    let own = run.found_jobs(cluster).await?;
    let sweep = own
        .iter()
        .find_map(|job| job.metadata.labels.get(names::SWEEP));
    let sweep = sweep.ok_or_else(not_a_sweep)?.clone();
    let labels = LabelSelector::exactly([(names::SWEEP, sweep.as_str())])
        .map_err(longshore_client::Error::from)?;
    let namespace = &run.namespace;
    let jobs = cluster
        .jobs()
        .in_namespace(namespace)?
        .labels(labels.clone());
    let pods = cluster.pods().in_namespace(namespace)?.labels(labels);
    // List the pods last, so that pods that a Job counts as ended have ended.
    let jobs = jobs.list().await?;
    let pods = pods.list().await?;
    let mut by_run: BTreeMap<String, Vec<Item<Pod>>> = BTreeMap::new();
    for pod in pods.items {
        if let Some(run) = pod.labels().get(names::RUN) {
            by_run.entry(run.to_owned()).or_default().push(pod);
        }
    }
    let mut found = Vec::new();
    for job in jobs.items {
        let name = job.labels().get(names::RUN).unwrap_or_default().to_owned();
        let pods = by_run.remove(&name).unwrap_or_default();
        let evidence: JobEvidence = job.typed()?;
        let Some(role) = evidence.role().map(str::to_owned) else {
            continue;
        };
        let config = config(cluster, namespace, &name).await?;
        let secret = |problem: &str| SweepError::Secret {
            run: name.clone(),
            problem: problem.to_owned(),
        };
        let sweep = config.sweep.clone().ok_or_else(|| secret("it has none"))?;
        let run_name = RunName::existing(&name).map_err(|error| secret(&error.to_string()))?;
        let count = u32::try_from(sweep.combinations.len()).unwrap_or(u32::MAX);
        let mut rows = SweepRun {
            run: name.clone(),
            role: role.clone(),
            sweep,
            job: evidence,
            ..SweepRun::default()
        };
        let running = read_pods(&pods, &mut rows)?;
        found.push(Found {
            run: Run {
                name: run_name,
                namespace: namespace.clone(),
                roles: vec![RunRole {
                    name: role,
                    count,
                    service: false,
                }],
                schedule: None,
            },
            job,
            config,
            rows,
            running,
        });
    }
    found.sort_by_key(|found| {
        let meta = &found.rows.job.metadata;
        let submitted = meta.annotations.get(names::SUBMITTED).cloned();
        (meta.creation_timestamp, submitted)
    });
    let first = found
        .iter()
        .position(|found| found.run.name.as_str() == sweep);
    let first = first.ok_or(SweepError::Removed { run: sweep })?;
    let first = found.remove(first);
    Ok((first, found))
}

/// The configuration of a run's pods, which contains its combinations.
async fn config(cluster: &Cluster, namespace: &str, run: &str) -> Result<PodConfig, SweepError> {
    let problem = |problem: String| SweepError::Secret {
        run: run.to_owned(),
        problem,
    };
    let secret = queries::secret(cluster, namespace, run).await?;
    let secret: Secret = secret
        .ok_or_else(|| problem("it does not exist".to_owned()))?
        .typed()?;
    let data = secret.data.unwrap_or_default();
    let bytes = data.get(pod::FILE);
    let bytes = bytes.ok_or_else(|| problem(format!("it has no {}", pod::FILE)))?;
    serde_json::from_slice(&bytes.0).map_err(|error| problem(error.to_string()))
}

/// The times of a pod's containers.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Times {
    status: Statuses,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Statuses {
    container_statuses: Vec<ContainerTimes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerTimes {
    name: String,
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    running: Option<Started>,
    terminated: Option<Started>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Started {
    started_at: Option<jiff::Timestamp>,
}

/// Records the last attempt of each task. Returns the UIDs of running pods.
fn read_pods(pods: &[Item<Pod>], rows: &mut SweepRun) -> Result<BTreeMap<u32, String>, SweepError> {
    let mut attempts: BTreeMap<u32, Vec<(PodFacts, &Item<Pod>)>> = BTreeMap::new();
    for item in pods {
        let pod: PodFacts = item.typed()?;
        if let Some(task) = pod.task() {
            attempts.entry(task.index).or_default().push((pod, item));
        }
    }
    let mut running = BTreeMap::new();
    for (index, mut pods) in attempts {
        pods.sort_by_key(|(pod, _)| (pod.metadata.creation_timestamp, pod.finished_at()));
        let failed = pods.iter().filter(|(pod, _)| pod.has_failed()).count();
        let succeeded = pods.iter().position(|(pod, _)| pod.has_succeeded());
        let last = succeeded.or(pods.len().checked_sub(1));
        let Some((pod, item)) = last.and_then(|last| pods.get(last)) else {
            continue;
        };
        let times: Times = item.typed()?;
        let mut statuses = times.status.container_statuses.into_iter();
        let own = statuses.find(|status| status.name == pod.main_name());
        let state = own.unwrap_or_default().state;
        let started = state.terminated.or(state.running);
        if pod.has_started() && !pod.is_over() {
            running.insert(index, pod.metadata.uid.clone());
        }
        let task = TaskRun {
            pod: pod.metadata.name.clone(),
            container: pod.main_name().to_owned(),
            has_started: pod.has_started(),
            has_succeeded: pod.has_succeeded(),
            has_failed: pod.has_failed(),
            is_deleted: pod.metadata.deletion_timestamp.is_some(),
            failures: u32::try_from(failed).unwrap_or(u32::MAX),
            exit_code: pod.ended().map(|ended| ended.exit_code),
            started: started.and_then(|started| started.started_at),
            finished: pod.finished_at(),
        };
        rows.tasks.insert(index, task);
    }
    Ok(running)
}
