//! `longshore shell`: an interactive shell in a task.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::{Cluster, ExecOptions, Item, Session, kinds::Pod},
    launcher::{
        RunSummary,
        names::{self, Task},
        runs::{self, TaskPod},
    },
};

use super::exec::talk;
use crate::{
    bootstrap_program::program_of,
    complete, config,
    error::{Error, Kind, Result},
    place::{self, Container, Place},
    target::{self, ClusterArgs},
    terminal::Terminal,
};

/// Open a shell in a task of a run
///
/// The shell is bash, or sh where there is no bash. It has the environment of the task's
/// command, and starts in the folder of the code. Exits with the exit code of the shell.
/// Without a terminal, the shell reads commands from stdin.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore shell
  longshore shell digits-x7k2p/worker/1
  echo 'env | grep TF_CONFIG' | longshore shell last")]
pub(crate) struct ShellArgs {
    /// Task or run: RUN/ROLE/INDEX, or RUN for its first running task
    #[arg(value_name = "TASK", default_value = "last", add = ArgValueCompleter::new(complete::tasks))]
    place: String,
    /// Namespace [default: that of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn shell(args: ShellArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let terminal = Terminal::find();
    let result = match open(cluster, namespace, &args.place, terminal).await {
        Ok(session) => tokio::select! {
            result = talk(session, true, terminal) => result,
            _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
        },
        Err(error) => Err(error),
    };
    target.close().await?;
    let code = result?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

async fn open(
    cluster: &Cluster,
    namespace: &str,
    text: &str,
    terminal: Option<Terminal>,
) -> Result<Session> {
    let place = match place::find(cluster, namespace, text).await? {
        Place::Run(run) => first_running(cluster, &run).await?,
        Place::Tasks {
            run,
            role,
            index: None,
        } => Place::Tasks {
            index: Some(0),
            run,
            role,
        },
        place => place,
    };
    let container = Container::of(cluster, place, None).await?;
    let pods = cluster.pods().in_namespace(namespace)?;
    let pod = pods.fetch(&container.pod).await?;
    let name = container.name.unwrap_or_else(|| names::MAIN.to_owned());
    let Some(program) = program_of(&pod, &name) else {
        let message = format!("the pod {} is not a task of a run", container.pod);
        return Err(Error::new(Kind::Failed, message).hint(format!(
            "`longshore exec -it pod/{} -- sh` opens a shell in any pod",
            container.pod
        )));
    };
    let options = ExecOptions {
        container: Some(name),
        stdin: true,
        tty: terminal.is_some(),
    };
    let command = [program.as_str(), "bootstrap", "shell"];
    Ok(pods.exec(&container.pod, command, &options).await?)
}

/// The first task of a run that runs, in the order of the roles.
async fn first_running(cluster: &Cluster, found: &RunSummary) -> Result<Place> {
    let run = &found.run;
    let pods = run.list_pods(cluster).await?;
    let mut running: Vec<(usize, Task, Item<Pod>)> = Vec::new();
    for pod in pods {
        let task_pod = pod.typed::<TaskPod>()?;
        let Some(task) = task_pod.task() else {
            continue;
        };
        if task_pod.has_started() && !task_pod.is_over() {
            let role = run.roles.iter().position(|role| role.name == task.role);
            running.push((role.unwrap_or(usize::MAX), task, pod));
        }
    }
    running.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    match running.into_iter().next() {
        Some((_, _, pod)) => Ok(Place::Pod(Box::new(pod))),
        None => Err(none_runs(found)),
    }
}

fn none_runs(found: &RunSummary) -> Error {
    let name = &found.run.name;
    if !found.state.is_over() {
        return Error::new(Kind::Failed, format!("no task of the run {name} runs yet"))
            .hint(format!("`longshore why {name}` explains what it waits for"));
    }
    let state = found.state.as_str();
    let message = format!("the run {name} has ended ({state}), and its containers are gone");
    let fetch = match found.state {
        runs::RunState::Succeeded => "",
        _ => ", `longshore why` the cause of its end",
    };
    Error::new(Kind::Failed, message).hint(format!(
        "`longshore logs {name}` shows its output, `longshore outputs {name}` its files{fetch}; `longshore dev` keeps the containers of commands that end"
    ))
}
