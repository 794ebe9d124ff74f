//! A run of the combinations of a sweep that did not succeed.

use std::collections::BTreeMap;

use longshore_client::{
    Cluster,
    k8s_openapi::{
        ByteString,
        api::{
            batch::v1::{Job, JobSpec},
            core::v1::Secret,
        },
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};
use longshore_diagnosis::names::{self, RunName};

use super::{
    SweepError, SweepTable,
    objects::{self, Found},
};
use crate::{
    config::Workload,
    plan::{Plan, PlannedRole, bundle_secret_name},
    pod::{self, PodConfig},
    queries,
    run::Run,
    run_outputs::add_uploads,
    runs::RunRole,
    sweep::{CombinationState, Retry, Row, Sweep},
};

/// Annotations about the end of the first run, which are not copied.
const ENDS: [&str; 5] = [
    names::SUBMITTED,
    names::CANCELLED,
    names::STOPPED,
    names::WHY,
    names::ENDED,
];
/// Labels that Kubernetes adds to a Job's pod template.
const ADDED: [&str; 4] = [
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    names::JOB_NAME,
];

/// Plans the run.
pub(super) async fn plan(cluster: &Cluster, run: &Run, suffix: &str) -> Result<Plan, SweepError> {
    let (first, retries) = objects::find(cluster, run).await?;
    let table = SweepTable::of(&first, &retries);
    let ended = |row: &&Row| {
        matches!(
            row.state,
            CombinationState::Failed | CombinationState::Cancelled
        )
    };
    let rows: Vec<&Row> = table.rows.iter().filter(ended).collect();
    if rows.is_empty() {
        return Err(SweepError::NothingToRetry {
            run: first.run.name.to_string(),
            states: table.states(),
        });
    }
    let bundle = bundle(cluster, &first).await?;
    let mut plan = planned(&first, &rows, suffix, bundle)?;
    add_uploads(&mut plan, &[]).await.map_err(problem)?;
    Ok(plan)
}

fn problem(problem: impl ToString) -> SweepError {
    SweepError::Plan {
        problem: problem.to_string(),
    }
}

/// The Secret with the code, unless it is in a store. It is created again if it is removed.
async fn bundle(cluster: &Cluster, first: &Found) -> Result<Option<Secret>, SweepError> {
    let job: Job = first.job.typed()?;
    let spec = job.spec.and_then(|spec| spec.template.spec);
    let volumes = spec.and_then(|spec| spec.volumes).unwrap_or_default();
    let Some(bundle) = &first.config.bundle else {
        return Ok(None);
    };
    let name = bundle_secret_name(&bundle.sha256);
    let is_mounted = volumes.iter().any(|volume| {
        let secret = volume.secret.as_ref();
        secret.and_then(|secret| secret.secret_name.as_ref()) == Some(&name)
    });
    if !is_mounted {
        return Ok(None);
    }
    let found = queries::secret(cluster, &first.run.namespace, &name).await?;
    let found: Secret = found
        .ok_or_else(|| SweepError::CodeRemoved {
            run: first.run.name.to_string(),
        })?
        .typed()?;
    Ok(Some(Secret {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(first.run.namespace.clone()),
            labels: found.metadata.labels,
            annotations: found.metadata.annotations,
            ..ObjectMeta::default()
        },
        ..found
    }))
}

fn planned(
    first: &Found,
    rows: &[&Row],
    suffix: &str,
    bundle: Option<Secret>,
) -> Result<Plan, SweepError> {
    let job: Job = first.job.typed()?;
    let annotations = job.metadata.annotations.clone().unwrap_or_default();
    let full_name = annotations.get(names::FULL_NAME);
    let name = RunName::new(full_name.map_or("sweep", String::as_str), suffix);
    let role = RunRole {
        name: first.rows.role.clone(),
        count: u32::try_from(rows.len()).map_err(problem)?,
        service: false,
    };
    let labels = relabeled(job.metadata.labels.clone(), &name);
    let queue = labels.get(names::QUEUE).cloned();
    let job = again(job, &name, &role, first)?;
    Ok(Plan {
        run: name.clone(),
        namespace: first.run.namespace.clone(),
        config: config(first, rows, &name, labels)?,
        bundle,
        service: None,
        roles: vec![PlannedRole { role, job }],
        workload: Workload::Jobs,
        queue,
        set_restarts: 0,
        receives_changes: false,
        notifier: Vec::new(),
        notes: Vec::new(),
    })
}

/// The labels of an object of the new run.
fn relabeled(labels: Option<BTreeMap<String, String>>, run: &RunName) -> BTreeMap<String, String> {
    let mut labels = labels.unwrap_or_default();
    labels.retain(|key, _| !ADDED.contains(&key.as_str()));
    labels.insert(names::RUN.to_owned(), run.to_string());
    labels
}

/// The annotations of an object of the new run.
fn annotated(
    annotations: Option<BTreeMap<String, String>>,
    role: &RunRole,
) -> Result<BTreeMap<String, String>, SweepError> {
    let mut annotations = annotations.unwrap_or_default();
    annotations.retain(|key, _| !ENDS.contains(&key.as_str()));
    let roles = serde_json::to_string(&[role]).map_err(problem)?;
    annotations.insert(names::ROLES.to_owned(), roles);
    Ok(annotations)
}

/// The Job of the first run, adapted to the new run.
fn again(job: Job, run: &RunName, role: &RunRole, first: &Found) -> Result<Job, SweepError> {
    let mut spec = job.spec.unwrap_or_default();
    let mut template = std::mem::take(&mut spec.template);
    if let Some(metadata) = &mut template.metadata {
        *metadata = ObjectMeta {
            labels: Some(relabeled(metadata.labels.take(), run)),
            annotations: Some(annotated(metadata.annotations.take(), role)?),
            ..ObjectMeta::default()
        };
    }
    let volumes = template.spec.iter_mut().flat_map(|spec| &mut spec.volumes);
    for volume in volumes.flatten() {
        let secret = volume.secret.iter_mut();
        for secret in secret.filter_map(|secret| secret.secret_name.as_mut()) {
            if secret == first.run.name.as_str() {
                *secret = run.to_string();
            }
        }
    }
    let count = i32::try_from(role.count).map_err(problem)?;
    let at_most = |number: Option<i32>| number.map(|number| number.min(count));
    let labels = relabeled(job.metadata.labels, run);
    let is_queued = labels.contains_key(names::QUEUE);
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(run.job(&role.name)),
            namespace: Some(first.run.namespace.clone()),
            labels: Some(labels),
            annotations: Some(annotated(job.metadata.annotations, role)?),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            completions: Some(count),
            parallelism: at_most(spec.parallelism),
            max_failed_indexes: at_most(spec.max_failed_indexes),
            // Kueue resumes it when it admits the run.
            suspend: is_queued.then_some(true),
            selector: None,
            manual_selector: None,
            template,
            ..spec
        }),
        ..Job::default()
    })
}

/// The Secret with the configuration of the pods.
fn config(
    first: &Found,
    rows: &[&Row],
    run: &RunName,
    mut labels: BTreeMap<String, String>,
) -> Result<Secret, SweepError> {
    for key in [names::ROLE, names::QUEUE] {
        labels.remove(key);
    }
    let config = PodConfig {
        run: run.to_string(),
        sweep: Some(Sweep {
            combinations: rows.iter().map(|row| row.values.clone()).collect(),
            retry: Some(Retry {
                of: first.run.name.to_string(),
                indices: rows.iter().map(|row| row.index).collect(),
            }),
            ..first.rows.sweep.clone()
        }),
        ..first.config.clone()
    };
    let text = serde_json::to_vec(&config).map_err(problem)?;
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(run.to_string()),
            namespace: Some(first.run.namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        immutable: Some(true),
        data: Some([(pod::FILE.to_owned(), ByteString(text))].into()),
        ..Secret::default()
    })
}
