//! Groups Jobs and pods into runs. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_diagnosis::evidence::RunPod as _;
use longshore_diagnosis::{
    evidence::JobEvidence,
    explain::ClusterEvidence,
    names::{self, RunName},
    outcome::Ending,
    track,
};
use longshore_model::{ObjectMeta, facts::PodFacts};

use super::{Run, RunRole, RunState, RunSummary};
use crate::owner::Owner;

/// The namespace and name of a run, and the execution if it belongs to a schedule.
type Key<'a> = (&'a str, &'a str, Option<&'a str>);

/// The run that a Job belongs to.
fn key<'a>(meta: &'a ObjectMeta, job: &'a str, schedule: bool) -> Option<Key<'a>> {
    let run = meta.labels.get(names::RUN)?;
    let execution = schedule.then(|| job.rsplit_once('-')).flatten();
    Some((
        meta.namespace(),
        run,
        execution.map(|(_, execution)| execution),
    ))
}

/// The roles as recorded by the plan.
pub(super) fn declared(meta: &ObjectMeta) -> Option<Vec<RunRole>> {
    serde_json::from_str(meta.annotations.get(names::ROLES)?).ok()
}

/// The command as recorded by the plan.
pub(super) fn command(meta: &ObjectMeta) -> Vec<String> {
    let text = meta.annotations.get(names::COMMAND);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Groups Jobs and pods into runs, newest first. Pure.
pub(crate) fn summaries(jobs: &[JobEvidence], pods: &[PodFacts]) -> Vec<RunSummary> {
    type Parts<'a> = (Vec<&'a JobEvidence>, Vec<&'a PodFacts>);
    let mut runs: BTreeMap<Key<'_>, Parts<'_>> = BTreeMap::new();
    let mut of_jobs: BTreeMap<(&str, &str), Key<'_>> = BTreeMap::new();
    for job in jobs {
        let meta = &job.metadata;
        let scheduled = meta.controller_name("CronJob").is_some();
        if let Some(key) = key(meta, &meta.name, scheduled) {
            runs.entry(key).or_default().0.push(job);
            of_jobs.insert((meta.namespace(), &meta.name), key);
        }
    }
    for pod in pods {
        let meta = &pod.metadata;
        let job = meta.controller_name("Job").unwrap_or_default();
        let known = of_jobs.get(&(meta.namespace(), job)).copied();
        if let Some(known) = known
            .or_else(|| key(meta, "", false))
            .and_then(|key| runs.get_mut(&key))
        {
            known.1.push(pod);
        }
    }
    let mut summaries: Vec<RunSummary> = runs
        .into_iter()
        .filter_map(|(key, (jobs, pods))| summary(key, &jobs, &pods))
        .collect();
    super::newest_first(&mut summaries);
    summaries
}

/// The time when a run ended. A Job's times may be much later than its pods' times, because a
/// cluster that was down writes them when it starts again.
fn finished(roles: &[RunRole], jobs: &[&JobEvidence], pods: &[&PodFacts]) -> Option<Timestamp> {
    let is_service = |job: &JobEvidence| {
        let mut roles = roles.iter();
        roles.any(|role| role.service && job.role() == Some(role.name.as_str()))
    };
    // Service roles end after the others.
    let own: Vec<_> = jobs.iter().filter(|job| !is_service(job)).collect();
    let own = if own.is_empty() {
        jobs.iter().collect()
    } else {
        own
    };
    own.into_iter()
        .filter_map(|job| job_finished(job, pods))
        .max()
}

fn job_finished(job: &JobEvidence, pods: &[&PodFacts]) -> Option<Timestamp> {
    let own = || {
        let role = job.role();
        let of_role =
            move |pod: &&&PodFacts| pod.task().as_ref().map(|task| task.role.as_str()) == role;
        pods.iter().filter(of_role)
    };
    let last = own().filter_map(|pod| pod.finished_at()).max();
    if let Some(failure) = job.failure() {
        // If all pods are stopped at the same time, the Job's own time is used.
        let by_pods = own().any(|pod| pod.has_failed()) && failure.reason != "DeadlineExceeded";
        return last.filter(|_| by_pods).or(failure.last_transition_time);
    }
    let completed = job.status.completion_time.or_else(|| job.over_since());
    let succeeded = own().filter(|pod| pod.has_succeeded()).count();
    let wanted = job.spec.completions.unwrap_or(1);
    let all_there = u32::try_from(succeeded).is_ok_and(|count| count >= wanted);
    match job.is_complete() && !all_there {
        true => completed.or(last),
        false => last
            .or(completed)
            .or_else(|| job.end().and_then(|end| end.finished))
            .or_else(|| job.stopped_at())
            .or_else(|| job.cancelled_at()),
    }
}

fn summary(
    (namespace, label, execution): Key<'_>,
    jobs: &[&JobEvidence],
    pods: &[&PodFacts],
) -> Option<RunSummary> {
    let first = jobs.first()?;
    let annotation = |key: &str| first.metadata.annotations.get(key).cloned();
    let label = RunName::existing(label).ok()?;
    let (name, schedule) = match execution {
        Some(execution) => {
            let name = RunName::existing(&format!("{label}-{execution}")).ok()?;
            (name, Some(label))
        }
        None => (label, None),
    };
    let mut roles = declared(&first.metadata).unwrap_or_else(|| {
        let role = |job: &&JobEvidence| {
            let count = job.spec.completions.unwrap_or(1);
            Some(RunRole {
                name: job.role()?.to_owned(),
                count,
                service: false,
            })
        };
        jobs.iter().filter_map(role).collect()
    });
    // A Job may have been scaled in the meantime.
    for role in &mut roles {
        let job = jobs.iter().find(|job| job.role() == Some(&role.name));
        role.count = job
            .and_then(|job| job.spec.completions)
            .unwrap_or(role.count);
    }
    // The same decision as a follower's, from the same evidence.
    let began = first.metadata.creation_timestamp.unwrap_or(Timestamp::MIN);
    let seen = track::decide_now(&roles, jobs, pods, &ClusterEvidence::default(), began);
    let started = pods.iter().any(|pod| pod.has_started());
    let succeeded = seen.succeeded();
    let state = match &seen.outcome {
        Some(outcome) => match outcome.ending {
            Ending::Succeeded => RunState::Succeeded,
            Ending::Failed | Ending::NotStarted => RunState::Failed,
            Ending::Cancelled => RunState::Cancelled,
        },
        None if started => RunState::Running,
        None => RunState::Pending,
    };
    let finished = state.is_over().then(|| finished(&roles, jobs, pods));
    let total = roles
        .iter()
        .map(|role| role.count)
        .fold(0, u32::saturating_add);
    Some(RunSummary {
        full_name: annotation(names::FULL_NAME).unwrap_or_else(|| name.to_string()),
        run: Run {
            name,
            namespace: namespace.to_owned(),
            roles,
            schedule,
        },
        state,
        created: jobs
            .iter()
            .filter_map(|job| job.metadata.creation_timestamp)
            .min(),
        submitted: super::submitted(&first.metadata),
        owner: Owner::of_object(&first.metadata),
        finished: finished.flatten(),
        command: command(&first.metadata),
        bundle: annotation(names::BUNDLE),
        labels: super::user_labels(&first.metadata),
        tags: super::tags::of(&first.metadata),
        note: annotation(names::NOTE),
        exit_code: seen.outcome.as_ref().map(|outcome| outcome.exit_code),
        outcome: seen.outcome,
        succeeded: (succeeded, total),
        restarts: seen.restarts,
        webhook_problem: None,
        sweep: first.metadata.labels.get(names::SWEEP).cloned(),
        schedule: None,
    })
}
