//! The log of one container of a pod.

use clap::Args;
use futures::TryStreamExt as _;
use longshore::client::{Cluster, LogOptions};

use super::LogsArgs;
use crate::{
    error::{Error, Result},
    ui,
};

/// Options that apply only to a pod's log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pods")]
pub(super) struct PodArgs {
    /// Container name; required if the pod has several
    #[arg(long, short)]
    container: Option<String>,
    /// Print the log of the container's previous instance
    #[arg(long, short)]
    previous: bool,
}

impl PodArgs {
    /// An option that does not apply to a run's logs.
    fn given(&self) -> Option<&'static str> {
        [
            (self.container.is_some(), "--container"),
            (self.previous, "--previous"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    pub(super) fn refuse_for_a_run(&self, run: &str) -> Result<()> {
        let Some(given) = self.given() else {
            return Ok(());
        };
        let message = format!("{given} is for a pod's log, and {run} is a run");
        Err(Error::usage(message).hint("`longshore get pods` lists pods: write pod/NAME"))
    }
}

/// Prints the log of a container byte by byte; on a terminal, without control sequences.
pub(super) async fn show(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    args: &LogsArgs,
) -> Result<()> {
    if let Some(of_run) = [args.role.is_some(), args.index.is_some()]
        .into_iter()
        .zip(["--role", "--index"])
        .find_map(|(given, word)| given.then_some(word))
    {
        let message = format!("{of_run} is for a run's logs, and {name} is a pod");
        return Err(Error::usage(message).hint("omit it"));
    }
    let of_pod = &args.of_pod;
    let options = LogOptions {
        container: of_pod.container.clone(),
        follow: args.follow,
        previous: of_pod.previous,
        tail_lines: args.tail,
        since_seconds: args.since.map(|since| since.as_secs()),
        timestamps: args.timestamps,
        ..LogOptions::default()
    };
    let pods = cluster.pods().in_namespace(namespace)?;
    let mut log = std::pin::pin!(pods.logs(name, &options).await?);
    let mut output = ui::Pass::stdout(false);
    while let Some(piece) = log.try_next().await? {
        output.piece(&piece);
        if ui::output_closed() {
            break;
        }
    }
    Ok(())
}
