//! `longshore logs`: what the tasks of a run wrote, or a pod.

mod pod;

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use futures::TryStreamExt as _;
use longshore::{
    client::{Cluster, Item, LogOptions, View, kinds::Pod},
    launcher::{
        Event, Follow, FollowOptions, Run,
        follow::LogLine,
        names::{self, Task},
        runs,
    },
};

use crate::{
    config,
    error::{Error, Kind, Result},
    follow::Lines,
    target::ClusterArgs,
    ui,
};

/// Show the logs of a run's tasks, or of a pod
///
/// A name is a run's, or, if there is no such run, a pod's; `pod/NAME` is a pod
/// in any case.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore logs digits-x7k2p
  longshore logs digits-x7k2p --follow
  longshore logs digits-x7k2p --role worker --index 0 --tail 20
  longshore logs pod/web --container proxy --since 600 --timestamps
  longshore logs pod/web --previous")]
pub(crate) struct LogsArgs {
    /// The run's name, or `pod/NAME`
    #[arg(value_name = "RUN")]
    name: String,
    /// Go on until the run ends, or the pod's container
    #[arg(long, short)]
    follow: bool,
    /// Only of this role
    #[arg(long, help_heading = "Of a run")]
    role: Option<String>,
    /// Only of the task with this index
    #[arg(long, help_heading = "Of a run")]
    index: Option<u32>,
    #[command(flatten)]
    of_pod: pod::PodArgs,
    /// Only so many lines from the end of each task's log
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl LogsArgs {
    fn wants(&self, task: &Task) -> bool {
        self.role.as_ref().is_none_or(|role| *role == task.role)
            && self.index.is_none_or(|index| index == task.index)
    }
}

pub(crate) async fn logs(args: LogsArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = show(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(cluster: &Cluster, args: &LogsArgs) -> Result<()> {
    let namespace = args
        .namespace
        .as_deref()
        .unwrap_or_else(|| cluster.default_namespace());
    if let Some(name) = pod::named(&args.name) {
        return pod::show(cluster, namespace, name, args).await;
    }
    let found = match runs::find_made(cluster, namespace, &args.name).await {
        Err(unknown @ runs::RunsError::NoSuchRun { .. }) => {
            return pod::show_instead(cluster, namespace, args, unknown).await;
        }
        found => found?,
    };
    args.of_pod.refuse_for_a_run(&args.name)?;
    if let Some(role) = &args.role
        && !found.run.roles.iter().any(|known| known.name == *role)
    {
        let known: Vec<&str> = found
            .run
            .roles
            .iter()
            .map(|role| role.name.as_str())
            .collect();
        return Err(
            Error::usage(format!("the run {} has no role {role:?}", args.name))
                .hint(format!("it has {}", known.join(", "))),
        );
    }
    if args.follow && !found.state.is_over() {
        return show_live(cluster, &found.run, args).await;
    }
    show_written(cluster, &found.run, args).await
}

async fn show_live(cluster: &Cluster, run: &Run, args: &LogsArgs) -> Result<()> {
    // Looking on decides nothing: the run is not stopped from here.
    let options = FollowOptions {
        tail: args.tail,
        stop: false,
        ..FollowOptions::default()
    };
    let failed = |error: longshore::launcher::follow::Error| match error {
        longshore::launcher::follow::Error::Cluster(error) => Error::from(error),
        other => Error::from_source(Kind::Cluster, &other),
    };
    let mut follow = Follow::start(cluster, run, options).await.map_err(failed)?;
    let lines = Lines::new(run);
    while let Some(event) = follow.next().await {
        match event.map_err(failed)? {
            Event::Log(line) if args.wants(&line.task) => ui::line(lines.show(&line)),
            Event::Finished(_) => break,
            _ => {}
        }
        if ui::output_closed() {
            break;
        }
    }
    Ok(())
}

/// The logs that are there now, task after task, and of each task one attempt
/// after the other.
async fn show_written(cluster: &Cluster, run: &Run, args: &LogsArgs) -> Result<()> {
    let pods = cluster.pods().in_namespace(&run.namespace)?;
    let mut by_task: BTreeMap<(String, u32), Vec<Item<Pod>>> = BTreeMap::new();
    for pod in run.list_pods(cluster).await? {
        if let Some(task) = task_of(&pod).filter(|task| args.wants(task)) {
            by_task
                .entry((task.role, task.index))
                .or_default()
                .push(pod);
        }
    }
    if by_task.is_empty() {
        ui::note("No task of the run is left in the cluster, and with them their logs have gone.");
    }
    let lines = Lines::new(run);
    for ((role, index), mut attempts) in by_task {
        attempts.sort_by_key(|pod| pod.meta().creation_timestamp);
        let task = Task { role, index };
        for pod in attempts {
            let written = match read(&pods, &pod, main_container(&pod), args.tail).await {
                Ok(text) => (None, text),
                // The command has not begun: what came before it may say why.
                Err(error) => match read(&pods, &pod, names::FETCH, args.tail).await {
                    Ok(text) => (Some(names::FETCH.to_owned()), text),
                    Err(_) => {
                        ui::note(format!("{task}: {error}"));
                        continue;
                    }
                },
            };
            for line in String::from_utf8_lossy(&written.1).lines() {
                let line = LogLine {
                    task: task.clone(),
                    container: written.0.clone(),
                    line: line.to_owned(),
                };
                ui::line(lines.show(&line));
            }
        }
    }
    Ok(())
}

fn task_of(pod: &Item<Pod>) -> Option<Task> {
    let labels = &pod.meta().labels;
    let index = labels.get(names::COMPLETION_INDEX)?.parse().ok()?;
    Some(Task {
        role: labels.get(names::ROLE)?.clone(),
        index,
    })
}

fn main_container(pod: &Item<Pod>) -> &str {
    let named = pod.meta().annotations.get(names::CONTAINER);
    named.map_or(names::MAIN, String::as_str)
}

async fn read(
    pods: &View<Pod>,
    pod: &Item<Pod>,
    container: &str,
    tail: Option<u64>,
) -> Result<Vec<u8>, longshore::client::Error> {
    let options = LogOptions {
        container: Some(container.to_owned()),
        tail_lines: tail,
        ..LogOptions::default()
    };
    let stream = pods.logs(pod.name(), &options).await?;
    let mut stream = std::pin::pin!(stream);
    let mut text = Vec::new();
    while let Some(chunk) = stream.try_next().await? {
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}
