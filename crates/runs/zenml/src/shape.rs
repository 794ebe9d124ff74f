//! The plan of a pipeline's run: a run of one task, in ZenML's shape. Pure.

use longshore_client::k8s_openapi::{ByteString, api::batch::v1::Job};
use longshore_model::name;

use super::{
    DEFAULT_NAMESPACE, OrchestratorKubernetesBackend, PipelineConfig, ZenmlError,
    labels::{Labels, job_name},
};
use longshore_launcher::{
    config::{self, Flags, RunOptions, RunSpec, Settings, TaskOptions, Text},
    names::{self, RunName},
    plan::{self, Plan},
    store::{BundleInfo, SECRET_LIMIT},
};

/// The program that runs the pipeline, in the folder of its config.
const PROGRAM: &str = "run_pipeline.py";
const PROGRAM_TEXT: &str = include_str!("run_pipeline.py");
/// The number of retries of a failed pod.
const RETRIES: u32 = 1;

/// The specification of the run, before ZenML's own changes of the plan.
pub(super) fn spec(
    backend: &OrchestratorKubernetesBackend,
    config: &PipelineConfig,
    labels: &Labels,
) -> Result<RunSpec, ZenmlError> {
    let given = &backend.settings;
    let more = [
        ("roles", !given.roles.is_empty()),
        ("cron", given.run.cron.is_some()),
        ("jobset", *given.run.jobset),
    ];
    if let Some((key, _)) = more.into_iter().find(|(_, is_given)| *is_given) {
        return Err(ZenmlError::OneJob { key });
    }
    let settings = Settings {
        run: RunOptions {
            name: None,
            namespace: None,
            code: None,
            image_pull_policy: Some(backend.image_pull_policy.to_string().into()),
            ..given.run.clone()
        },
        task: TaskOptions {
            command: None,
            ..given.task.clone()
        },
        ..given.clone()
    };
    let namespace = backend.namespace.as_deref();
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let namespace = namespace.map(Text::from).or(given.run.namespace.clone());
    let flags = Flags {
        run: RunOptions {
            namespace: namespace.or_else(|| Some(DEFAULT_NAMESPACE.into())),
            retries: settings.run.retries.or(Some(RETRIES)),
            ..RunOptions::default()
        },
        task: TaskOptions {
            image: Some(backend.image.as_str().into()),
            ..TaskOptions::default()
        },
        command: vec!["python3".to_owned(), format!("{}/{PROGRAM}", names::CONFIG)],
        ..Flags::default()
    };
    let mut spec = config::resolve(&settings, &flags, config.name())?;
    spec.labels.extend(labels.labels.clone());
    spec.caller.clone_from(&backend.caller);
    Ok(spec)
}

/// The plan.
pub(super) fn plan(
    backend: &OrchestratorKubernetesBackend,
    config: &PipelineConfig,
    bundle: Option<&BundleInfo>,
) -> Result<Plan, ZenmlError> {
    let size = config.text().len() as u64;
    if size > SECRET_LIMIT {
        return Err(ZenmlError::TooLarge { size });
    }
    for key in backend.extra_annotations.keys() {
        name::annotation_key(key).map_err(|source| ZenmlError::Key {
            parameter: "extra_annotations",
            source,
        })?;
    }
    let labels = Labels::of(backend, config)?;
    let spec = spec(backend, config, &labels)?;
    let job = job_name(&backend.job_prefix, config.name());
    let run = RunName::existing(&job).map_err(|source| ZenmlError::Key {
        parameter: "job_prefix",
        source,
    })?;
    let namespace = spec.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let mut plan = plan::plan(&spec, &run, namespace, bundle)?;
    for planned in &mut plan.roles {
        let planned = &mut planned.job;
        reshape(planned, &job);
        // Longshore's annotations override the user's, because they describe the run.
        let mut annotations = backend.extra_annotations.clone();
        annotations.extend(labels.annotations());
        annotations.extend(planned.metadata.annotations.take().unwrap_or_default());
        planned.metadata.annotations = Some(annotations);
    }
    let files = plan.config.data.get_or_insert_default();
    for (name, text) in [
        (config.format().file(), config.text()),
        (PROGRAM, PROGRAM_TEXT),
    ] {
        files.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
    }
    Ok(plan)
}

/// Gives the Job and the container of the command the name of the run.
fn reshape(job: &mut Job, name: &str) {
    job.metadata.name = Some(name.to_owned());
    let spec = job.spec.get_or_insert_default();
    // The Job of ZenML 0.3 has `backoffLimit`. With a single task, both limits mean the same.
    if let Some(limit) = spec.backoff_limit_per_index.take() {
        spec.backoff_limit = Some(limit);
        spec.max_failed_indexes = None;
    }
    let policy = spec.pod_failure_policy.iter_mut();
    let rules = policy.flat_map(|policy| &mut policy.rules);
    for codes in rules.filter_map(|rule| rule.on_exit_codes.as_mut()) {
        codes.container_name = Some(name.to_owned());
    }
    let template = &mut spec.template;
    let metadata = template.metadata.get_or_insert_default();
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(names::CONTAINER.to_owned(), name.to_owned());
    let pod = template.spec.get_or_insert_default();
    for container in &mut pod.containers {
        if container.name == names::MAIN {
            container.name = name.to_owned();
        }
    }
}
