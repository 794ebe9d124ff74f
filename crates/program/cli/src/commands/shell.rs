//! `longshore shell`: an interactive shell in a task.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::client::{Cluster, ExecOptions, Session};

use super::exec::talk;
use crate::{
    complete, config,
    error::{Error, Result},
    owners::OwnerArgs,
    target::{self, ClusterArgs},
    task_container::TaskContainer,
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
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
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
    let result = match open(cluster, namespace, &args, terminal).await {
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
    args: &ShellArgs,
    terminal: Option<Terminal>,
) -> Result<Session> {
    let access = args.owners.act("open a shell in");
    let task = TaskContainer::find(cluster, namespace, &args.place, access).await?;
    let options = ExecOptions {
        container: Some(task.container),
        stdin: true,
        tty: terminal.is_some(),
    };
    let command = [task.program.as_str(), "bootstrap", "shell"];
    Ok(task.pod.exec(command, &options).await?)
}
