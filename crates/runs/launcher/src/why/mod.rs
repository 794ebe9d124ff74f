//! Queries the cluster for the state of a run, and explains it.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use longshore_client::{Cluster, Item, LogOptions};
use longshore_diagnosis::evidence::RunPod as _;
use longshore_diagnosis::{
    evidence::JobEvidence,
    explain::{self, Cause, ClusterEvidence, Explanation},
    names,
    outcome::Ending,
    progress::RoleProgress,
    track::{self, Verdict},
};
use longshore_model::facts::PodFacts;
use serde::Serialize;

use crate::{
    cluster_evidence::{self, Query},
    kueue, memory, notifier_trouble, queries,
    run::Run,
    usage::{self, Detail},
};

/// The timeout of optional queries.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum State {
    /// Tasks are about to start, and nothing is wrong.
    Pending,
    /// Tasks are running, and nothing is wrong.
    Running,
    /// A task cannot start, for a cause that may be temporary.
    Waiting,
    /// All tasks have succeeded, except tasks of service roles, which do not count.
    Succeeded,
    /// A task failed.
    Failed,
    /// A task could not start.
    NotStarted,
    /// The user cancelled the run.
    Cancelled,
}

/// The state of a run and its cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Why {
    /// The run's name.
    pub run: String,
    /// The namespace of the run.
    pub namespace: String,
    /// The state of the run.
    pub state: State,
    /// The progress or the problem, in one sentence.
    pub summary: String,
    /// The number of tasks of each role in each state.
    pub roles: Vec<RoleProgress>,
    /// The number of restarts of tasks with a new pod.
    pub restarts: u32,
    /// The exit code of the run, once it is decided.
    pub exit_code: Option<i32>,
    /// The cause and the remedy, if something is wrong.
    pub explanation: Option<Explanation>,
    /// Other problems: GPUs that are not used, and a webhook that is not called.
    pub notes: Vec<String>,
    /// The sources that could not be read, with the reasons.
    pub unseen: Vec<String>,
}

impl Why {
    /// Returns true if nothing is wrong, or the cause is known.
    #[must_use]
    pub fn is_explained(&self) -> bool {
        let unknown = |known: &Explanation| known.kind == Cause::Unknown;
        !self.explanation.as_ref().is_some_and(unknown)
    }
}

/// The state of a run in the cluster: the input of [`diagnose`].
#[derive(Debug, Clone, Default, PartialEq)]
struct RunEvidence {
    /// The Jobs of the run.
    jobs: Vec<JobEvidence>,
    /// The pods of the run.
    pods: Vec<PodFacts>,
    /// Further evidence from the cluster.
    cluster: ClusterEvidence,
    /// The last line of a pod's log: the pod's name, and the line.
    last_line: Option<(String, String)>,
    /// The sources that could not be read, with the reasons.
    unseen: Vec<String>,
}

/// Queries the cluster and explains the state of a run. Events, nodes and quotas that cannot be
/// read are listed in [`Why::unseen`] and are not errors.
///
/// # Errors
/// The run's Jobs or pods cannot be listed.
pub fn why<'a>(
    cluster: &'a Cluster,
    run: &'a Run,
) -> BoxFuture<'a, Result<Why, longshore_client::Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(async move {
        let mut why = query_and_explain(cluster, run).await?;
        if why.state == State::Running {
            why.notes = idle_gpus(cluster, run).await;
        }
        let memory = memory::notes(cluster, run);
        if let (Some(notes), _) = queries::seen("memory", QUERY_TIMEOUT, memory).await {
            why.notes.extend(notes);
        }
        let webhook = notifier_trouble::trouble(cluster, run);
        let (webhook, problem) = queries::seen("webhook", QUERY_TIMEOUT, webhook).await;
        why.notes.extend(webhook.flatten());
        why.unseen.extend(problem);
        Ok(why)
    })
}

/// Notes about GPUs of the run that are not used, as far as this can be determined.
async fn idle_gpus(cluster: &Cluster, run: &Run) -> Vec<String> {
    let usage = usage::of_run(cluster, run, Detail::Current);
    match tokio::time::timeout(QUERY_TIMEOUT, usage).await {
        Ok(Ok(usage)) => usage::idle_gpus(&usage.tasks),
        _ => Vec::new(),
    }
}

async fn query_and_explain(cluster: &Cluster, run: &Run) -> Result<Why, longshore_client::Error> {
    let everything = Query {
        warnings: false,
        nodes: true,
        quotas: true,
    };
    let (objects, (mut cluster_evidence, mut unseen)) = futures::join!(
        run.list_jobs_and_pods(cluster),
        cluster_evidence::ask(cluster, run, everything, QUERY_TIMEOUT),
    );
    let (jobs, pods) = objects?;
    let pods: Vec<PodFacts> = pods.iter().map(Item::typed).collect::<Result<_, _>>()?;
    let waits = |job: &&JobEvidence| job.spec.suspend && !job.is_over();
    let suspended: Vec<&JobEvidence> = jobs.iter().filter(waits).collect();
    let workloads = kueue::workloads(cluster, &run.namespace, &suspended);
    let (workloads, problem) = queries::seen("workloads", QUERY_TIMEOUT, workloads).await;
    cluster_evidence.workloads = workloads.unwrap_or_default();
    unseen.extend(problem);
    let mut evidence = RunEvidence {
        pods,
        jobs,
        cluster: cluster_evidence,
        unseen,
        ..RunEvidence::default()
    };
    let now = Timestamp::now();
    let first = diagnose(run, &evidence, now);
    let Some(pod) = wants_log(&first) else {
        return Ok(first);
    };
    let known = evidence
        .pods
        .iter()
        .find(|known| known.metadata.name == pod);
    let container = known.map_or(names::MAIN, PodFacts::main_name);
    let line = queries::seen(
        "logs",
        QUERY_TIMEOUT,
        last_line(cluster, run, &pod, container),
    )
    .await;
    match line {
        (Some(line), _) => evidence.last_line = Some((pod, line)),
        (None, problem) => evidence.unseen.extend(problem),
    }
    Ok(diagnose(run, &evidence, now))
}

/// The pod whose log may be more specific than its status.
fn wants_log(why: &Why) -> Option<String> {
    let known = why.explanation.as_ref()?;
    let ended = matches!(
        known.kind,
        Cause::ExitCode
            | Cause::InitFailed
            | Cause::CommandNotFound
            | Cause::NotExecutable
            | Cause::ContainerStart
    );
    ended.then(|| known.pod.clone()).flatten()
}

async fn last_line(
    cluster: &Cluster,
    run: &Run,
    pod: &str,
    container: &str,
) -> Result<String, longshore_client::Error> {
    use futures::TryStreamExt as _;
    let options = LogOptions {
        container: Some(container.to_owned()),
        tail_lines: Some(3),
        ..LogOptions::default()
    };
    let pods = cluster.pods().in_namespace(&run.namespace)?;
    let mut log = std::pin::pin!(pods.logs(pod, &options).await?);
    let mut text = Vec::new();
    while let Some(chunk) = log.try_next().await? {
        text.extend_from_slice(&chunk);
    }
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().rev().map(str::trim);
    Ok(lines
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .to_owned())
}

/// Explains the evidence. Pure.
fn diagnose(run: &Run, evidence: &RunEvidence, now: Timestamp) -> Why {
    let jobs: Vec<&JobEvidence> = evidence.jobs.iter().collect();
    let pods: Vec<&PodFacts> = evidence.pods.iter().collect();
    let created = jobs
        .iter()
        .filter_map(|job| job.metadata.creation_timestamp);
    let began = created.min().unwrap_or(now);
    let verdict = track::decide_now(&run.roles, &jobs, &pods, &evidence.cluster, began);
    let Verdict {
        outcome,
        progress,
        waits,
        restarts,
        retried,
        going_on: _,
    } = verdict;
    let tell = |state, summary: String, exit_code, explanation| Why {
        run: run.name.as_str().to_owned(),
        namespace: run.namespace.clone(),
        state,
        summary,
        roles: progress.roles.clone(),
        restarts,
        exit_code,
        explanation,
        notes: Vec::new(),
        unseen: evidence.unseen.clone(),
    };
    if let Some(outcome) = outcome {
        let code = Some(outcome.exit_code);
        let known = outcome.explanation;
        return match outcome.ending {
            Ending::Succeeded => tell(State::Succeeded, "all tasks succeeded".into(), code, None),
            Ending::Cancelled => tell(State::Cancelled, outcome.reason, code, None),
            Ending::Failed | Ending::NotStarted => {
                let state = match outcome.ending {
                    Ending::NotStarted => State::NotStarted,
                    _ => State::Failed,
                };
                let known = known.map(|known| with_log(known, evidence));
                let summary = known.as_ref().map_or(outcome.reason, Explanation::sentence);
                tell(state, summary, code, known)
            }
        };
    }
    if let Some(waits) = waits {
        return tell(State::Waiting, waits.sentence(), None, Some(waits));
    }
    let mut away = pods
        .iter()
        .filter_map(|pod| explain::away(pod, &evidence.cluster));
    if let Some(mut first) = away.next() {
        first.others = away.count().try_into().unwrap_or(u32::MAX);
        return tell(State::Running, first.sentence(), None, Some(first));
    }
    let far = progress.to_string();
    if let Some(retried) = retried {
        let summary = format!("{far}; {}", retried.summary());
        return tell(State::Running, summary, None, Some(retried.explanation));
    }
    let started = pods.iter().any(|pod| pod.has_started());
    let since = now.duration_since(began).as_secs().max(0);
    if started {
        let summary = match restarts {
            0 => format!("no problems: {far}"),
            1 => format!("{far}; restarted once, and the pod of that attempt no longer exists"),
            _ => format!(
                "{far}; restarted {restarts} times, and the pods of those attempts no longer exist"
            ),
        };
        return tell(State::Running, summary, None, None);
    }
    let pulling = explain::pulling(pods.iter().copied(), &evidence.cluster, now);
    let waits_for = pulling.or_else(|| explain::initializing(pods.iter().copied()));
    let waits_for = waits_for.map_or(String::new(), |text| format!("; {text}"));
    let summary = format!("starting for {since} s: {far}{waits_for}");
    tell(State::Pending, summary, None, None)
}

/// Extends the explanation with the last line of the log.
fn with_log(known: Explanation, evidence: &RunEvidence) -> Explanation {
    let line = evidence.last_line.as_ref();
    let Some((name, line)) = line.filter(|(name, _)| known.pod.as_ref() == Some(name)) else {
        return known;
    };
    let mut pods = evidence.pods.iter();
    let pod = pods.find(|pod| pod.metadata.name == *name && pod.has_failed());
    let Some(pod) = pod else {
        return known;
    };
    let (mut updated, _) = explain::failure(pod, Some(line), &evidence.cluster);
    updated.others = known.others;
    for fact in known.evidence {
        updated = updated.seen(fact);
    }
    updated
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
