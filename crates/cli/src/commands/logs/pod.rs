//! The log of one container of a pod.

use clap::Args;
use futures::TryStreamExt as _;
use longshore::{
    client::{Cluster, LogOptions},
    launcher::runs::RunsError,
};

use super::LogsArgs;
use crate::{
    error::{Error, Result},
    ui,
};

/// What is said of a pod's log alone.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of a pod")]
pub(super) struct PodArgs {
    /// The container; needed when the pod has several
    #[arg(long, short)]
    container: Option<String>,
    /// Of the container's previous run
    #[arg(long, short)]
    previous: bool,
    /// Only what is younger than so many seconds
    #[arg(long, value_name = "SECONDS")]
    since: Option<u64>,
    /// Begin each line with its time
    #[arg(long)]
    timestamps: bool,
}

impl PodArgs {
    /// An argument that a run's logs do not know.
    fn given(&self) -> Option<&'static str> {
        [
            (self.container.is_some(), "--container"),
            (self.previous, "--previous"),
            (self.since.is_some(), "--since"),
            (self.timestamps, "--timestamps"),
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

/// The pod's name in `pod/NAME`.
pub(super) fn named(name: &str) -> Option<&str> {
    let (kind, name) = name.split_once('/')?;
    matches!(kind, "po" | "pod" | "pods").then_some(name)
}

/// Shows a pod's log, or says that there is no such run if there is no such pod.
pub(super) async fn show_instead(
    cluster: &Cluster,
    namespace: &str,
    args: &LogsArgs,
    unknown: RunsError,
) -> Result<()> {
    let pods = cluster.pods().in_namespace(namespace)?;
    match pods.fetch(&args.name).await {
        Ok(_) => show(cluster, namespace, &args.name, args).await,
        Err(_) => Err(unknown.into()),
    }
}

/// Shows the log of a container as it is, to its last byte.
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
        return Err(Error::usage(message).hint("leave it out"));
    }
    let of_pod = &args.of_pod;
    let options = LogOptions {
        container: of_pod.container.clone(),
        follow: args.follow,
        previous: of_pod.previous,
        tail_lines: args.tail,
        since_seconds: of_pod.since,
        timestamps: of_pod.timestamps,
        ..LogOptions::default()
    };
    let pods = cluster.pods().in_namespace(namespace)?;
    let mut log = std::pin::pin!(pods.logs(name, &options).await?);
    while let Some(piece) = log.try_next().await? {
        ui::bytes(&piece);
        ui::flush();
        if ui::output_closed() {
            break;
        }
    }
    Ok(())
}
