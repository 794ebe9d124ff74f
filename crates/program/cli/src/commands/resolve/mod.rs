//! `longshore resolve`: the cluster spec of a distributed job.

mod args;
mod run;

use std::process::ExitCode;

use longshore::resolver::{
    self, Error as ResolveError, Generation, Resolver, Tasks,
    render::{Format, Job, RenderError},
};
use serde_json::json;

use crate::{
    config,
    error::{Error, Kind, Result},
    output, ui,
};
pub(crate) use args::ResolveArgs;
use args::{Question, Who};

pub(crate) async fn resolve(args: ResolveArgs) -> Result<ExitCode> {
    let question = args.question()?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = answer(target.cluster(), &question) => result,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
    };
    target.close().await?;
    match result {
        // Ctrl-C is the regular end of a watch.
        Err(error) if question.watch && error.kind() == Kind::Interrupted => {}
        result => result?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn answer(cluster: &longshore::Cluster, question: &Question) -> Result<()> {
    let namespace = question.namespace(cluster);
    if let Some(name) = &question.run {
        // A run is in one namespace.
        let namespace = namespace.unwrap_or(cluster.default_namespace());
        let job = run::job(cluster, namespace, name).await?;
        let task = match &question.task {
            None => None,
            Some(Who::Task(role, index)) => Some((role.as_str(), *index)),
            Some(Who::Own) => {
                return Err(
                    Error::usage("--task self works only with selectors; for a run, specify the task")
                        .hint("in its pods, LONGSHORE_ROLE and LONGSHORE_INDEX contain the task's role and index"),
                );
            }
        };
        return show(&job, question.format, task);
    }
    let resolver = Resolver::new(cluster.clone())
        .with_namespace(namespace)
        .with_mapping(question.mapping.clone())
        .with_assembly(question.assembly.clone());
    if question.watch {
        return follow(resolver, question).await;
    }
    let tasks = if question.needed.is_empty() {
        resolver.tasks().await
    } else {
        let limit = question.limit;
        ui::note(format!("waiting up to {} s for pods", limit.as_secs()));
        resolver.wait(&question.needed, limit).await
    };
    let tasks = tasks.map_err(explained)?;
    for unmatched in resolver.unmatched(&tasks).await.map_err(explained)? {
        ui::warning(unmatched.to_string());
    }
    if question.accelerators {
        let accelerators = resolver.accelerators().await.map_err(explained)?;
        return output::value(output::Format::Json, &accelerators);
    }
    let task = task(&resolver, question, &tasks).map_err(explained)?;
    if let (Some(protocol), Some((role, index))) = (&question.master, task) {
        let url = tasks.master(Some(role), Some(index), protocol);
        ui::line(url.map_err(|error| Error::from_source(Kind::Usage, &error))?);
        return Ok(());
    }
    show(&Job::from(&tasks), question.format, task)
}

/// The task to render the spec for.
fn task<'a>(
    resolver: &Resolver,
    question: &'a Question,
    tasks: &'a Tasks,
) -> Result<Option<(&'a str, u32)>, ResolveError> {
    Ok(match &question.task {
        Some(Who::Task(role, index)) => Some((role.as_str(), *index)),
        Some(Who::Own) => {
            let own = resolver.identity().find(tasks)?;
            Some((own.role.as_str(), own.index))
        }
        None => None,
    })
}

fn show(job: &Job, format: Format, task: Option<(&str, u32)>) -> Result<()> {
    let text = job.render(format, task).map_err(|error| refused(&error))?;
    ui::bytes(text.as_bytes());
    Ok(())
}

async fn follow(resolver: Resolver, question: &Question) -> Result<()> {
    let mut generations = resolver.watch().await.map_err(explained)?;
    while !ui::output_closed() {
        let generation = match generations.next().await {
            Ok(generation) => generation,
            // Problems of pods may be temporary.
            Err(error @ ResolveError::Pods(_)) => {
                ui::note(error.to_string());
                continue;
            }
            Err(error) => return Err(explained(error)),
        };
        if question.lacks(&generation) {
            continue;
        }
        turn(&resolver, question, &generation)?;
        ui::flush();
    }
    Ok(())
}

/// Prints a generation: one line of JSON, or the format below a comment.
fn turn(resolver: &Resolver, question: &Question, generation: &Generation) -> Result<()> {
    if question.format == Format::Json {
        ui::json(&json!(generation).to_string());
        return Ok(());
    }
    // The task may join in a later generation.
    let later = |error: &dyn std::fmt::Display| {
        ui::note(format!("generation {}: {error}", generation.number));
        Ok(())
    };
    let task = match task(resolver, question, &generation.tasks) {
        Ok(task) => task,
        Err(error) => return later(&error),
    };
    let text = match Job::from(&generation.tasks).render(question.format, task) {
        Ok(text) => text,
        Err(error @ (RenderError::Spec(_) | RenderError::Empty)) => return later(&error),
        Err(error) => return Err(refused(&error)),
    };
    if question.format == Format::Yaml {
        ui::line("---");
    }
    // TF_CONFIG is JSON, which has no comments.
    if question.format != Format::TfConfig {
        let moves = moves(generation);
        ui::line(format!("# generation {}{moves}", generation.number));
    }
    ui::bytes(text.as_bytes());
    Ok(())
}

/// The tasks that joined and left: `: joined worker:0, worker:1; left worker:2`.
fn moves(generation: &Generation) -> String {
    let named = |what: &str, tasks: &[resolver::Task]| {
        let names: Vec<String> = tasks
            .iter()
            .map(|task| format!("{}:{}", task.role, task.index))
            .collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
    };
    let joined = named("joined", &generation.joined);
    let parts: Vec<String> = joined
        .into_iter()
        .chain(named("left", &generation.left))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join("; "))
    }
}

fn refused(error: &RenderError) -> Error {
    let kind = match error {
        RenderError::Empty => Kind::Failed,
        _ => Kind::Usage,
    };
    Error::from_source(kind, error)
}

fn explained(error: ResolveError) -> Error {
    match error {
        ResolveError::Cluster(error) => error.into(),
        ResolveError::Forbidden { .. } => Error::from_source(Kind::Cluster, &error),
        ResolveError::Missing { .. } => Error::from_source(Kind::Failed, &error)
            .hint("`longshore get pods` shows them; --timeout waits longer"),
        ResolveError::Pods(resolver::PodError::NotRunning { .. }) => {
            Error::from_source(Kind::Failed, &error).hint(
                "--wait ROLE=N waits for pods; --not-running skip leaves out those that do not run",
            )
        }
        other => Error::from_source(Kind::Failed, &other),
    }
}
