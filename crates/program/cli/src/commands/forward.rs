//! `longshore forward`: ports of a run's tasks on this machine.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{
        config::Forward,
        names::Task,
        runs::{self, Run},
    },
};
use tokio::sync::mpsc;

use crate::{
    complete, config,
    error::{Error, Result},
    follow::Beside,
    forward,
    target::{self, ClusterArgs},
    ui,
};

/// Forward ports of a run's tasks to this machine, until the run ends or Ctrl-C
///
/// Prints the URL of each port as soon as its task listens. When a task gets a new pod,
/// the port leads to the new pod. `longshore run --forward` and `longshore dev --forward`
/// forward ports of the run that they start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore forward last 6006
  longshore forward digits-x7k2p worker/1:16006:6006 0:8080")]
pub(crate) struct ForwardArgs {
    /// Run: its name, a prefix of it that no other of your runs has, or `last`
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// PORT, LOCAL:PORT, ROLE:PORT or ROLE/INDEX:LOCAL:PORT; LOCAL 0 is any free port
    #[arg(required = true, value_name = "PORT", value_parser = Forward::parse)]
    ports: Vec<Forward>,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn forward(args: ForwardArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = serve(target.cluster(), &args) => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn serve(cluster: &Cluster, args: &ForwardArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let found = runs::find_made(cluster, namespace, &args.run).await?;
    let run = found.run;
    for port in &args.ports {
        check(&run, port)?;
    }
    if found.state.is_over() {
        let message = format!("the run {} has ended ({})", run.name, found.state.as_str());
        return Err(Error::usage(message).hint("ports are those of running tasks"));
    }
    let ports = forward::bind(&args.ports).await?;
    let (notes, mut lines) = mpsc::channel(args.ports.len().max(1));
    let serving = forward::serve(cluster.clone(), run, ports, notes);
    let printing = async {
        while let Some(note) = lines.recv().await {
            if let Beside::Note(line) = note {
                ui::note(line);
            }
        }
    };
    tokio::join!(serving, printing);
    Ok(())
}

fn check(run: &Run, port: &Forward) -> Result<()> {
    let Some(role) = &port.role else {
        return Ok(());
    };
    let task = Task {
        role: role.clone(),
        index: port.index,
    };
    run.check_task(Some(&task.role), Some(task.index))?;
    Ok(())
}
