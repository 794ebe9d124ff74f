//! The logs of a pod, which may be deleted: the logs of one container, or of all.

use clap::Args;
use futures::TryStreamExt as _;
use longshore::{
    View,
    client::{Cluster, LogLine, LogOptions, kinds::Pod},
    launcher::{task_logs::DeletedPod, terminal_text},
};

use super::{LogsArgs, each_line};
use crate::{
    error::{Error, Kind, Result},
    ui,
};

/// Options that apply only to a pod's log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pods")]
pub(super) struct PodArgs {
    /// Container name; required if the pod has several
    #[arg(long, short)]
    container: Option<String>,
    /// Print the logs of all containers, each line after the container's name
    #[arg(long, conflicts_with = "container")]
    all_containers: bool,
    /// Print the log of the container's previous instance
    #[arg(long, short)]
    previous: bool,
}

impl PodArgs {
    /// An option that does not apply to a run's logs.
    fn given(&self) -> Option<&'static str> {
        [
            (self.container.is_some(), "--container"),
            (self.all_containers, "--all-containers"),
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

/// Prints the log of a container byte by byte; on a terminal, without control sequences. With `front`,
/// prints each line after it.
pub(super) async fn show(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    front: Option<String>,
    args: &LogsArgs,
) -> Result<()> {
    let options = args.options();
    let pods = cluster.pods().in_namespace(namespace)?;
    if args.of_pod.all_containers {
        show_all(&pods, name, &options, front).await
    } else {
        show_one(&pods, name, &options, front).await
    }
}

/// Like [`show`], for a deleted pod.
pub(super) async fn show_deleted(
    cluster: &Cluster,
    namespace: &str,
    pod: &DeletedPod,
    front: Option<String>,
    args: &LogsArgs,
) -> Result<()> {
    let name = &pod.name;
    if let Some(why) = &pod.removed {
        let message = format!("the pod {name} was deleted, and its logs are gone: {why}");
        return Err(Error::new(Kind::Failed, message));
    }
    ui::note(match &pod.deleted {
        Some(time) => format!("The pod {name} was deleted at {time:.0}; its log was kept."),
        None => format!("The pod {name} was deleted; its log was kept."),
    });
    let pods = cluster.pods().in_namespace(namespace)?;
    let options = |container: &str| LogOptions {
        uid: Some(pod.uid.clone()),
        container: Some(container.to_owned()),
        follow: false,
        ..args.options()
    };
    if args.of_pod.all_containers {
        let mut prefixes = Prefixes::new(ui::Paint::stdout(), front);
        for container in &pod.containers {
            let log = pods.logs(name, &options(container)).await?;
            each_line(log, |line| {
                let container = container.clone();
                ui::line(prefixes.show(&LogLine { container, line }));
            })
            .await?;
        }
        return Ok(());
    }
    let given = args.of_pod.container.as_deref();
    let Some(container) = given.or(pod.default_container()) else {
        let message = format!("the deleted pod {name} has several containers");
        let names = pod.containers.join(", ");
        return Err(Error::usage(message).hint(format!("choose one with --container: {names}")));
    };
    if !pod.containers.iter().any(|known| known == container) {
        let message = format!("the deleted pod {name} has no log of a container {container:?}");
        let names = pod.containers.join(", ");
        return Err(Error::new(Kind::Failed, message).hint(format!("it has logs of {names}")));
    }
    show_one(&pods, name, &options(container), front).await
}

async fn show_one(
    pods: &View<Pod>,
    name: &str,
    options: &LogOptions,
    front: Option<String>,
) -> Result<()> {
    let mut log = std::pin::pin!(pods.logs(name, options).await?);
    if let Some(front) = front {
        let front = ui::Paint::stdout().voice(0, &front);
        let show = |line: String| ui::line(format!("{front} | {}", terminal_text::shown(&line)));
        return Ok(each_line(log, show).await?);
    }
    let mut output = ui::Pass::stdout(false);
    while let Some(piece) = log.try_next().await? {
        output.piece(&piece);
        if ui::output_closed() {
            break;
        }
    }
    Ok(())
}

/// Shows the logs of all containers, init containers first. With `--follow`, their lines
/// are merged as they are written.
async fn show_all(
    pods: &View<Pod>,
    name: &str,
    options: &LogOptions,
    front: Option<String>,
) -> Result<()> {
    let mut log = std::pin::pin!(pods.logs_all(name, options).await?);
    let mut prefixes = Prefixes::new(ui::Paint::stdout(), front);
    while let Some(line) = log.try_next().await? {
        ui::line(prefixes.show(&line));
        if ui::output_closed() {
            break;
        }
    }
    Ok(())
}

impl LogsArgs {
    /// The options of a request for a pod's log.
    fn options(&self) -> LogOptions {
        LogOptions {
            container: self.of_pod.container.clone(),
            follow: self.follow,
            previous: self.of_pod.previous,
            tail_lines: self.tail,
            since_seconds: self.since.map(|since| since.as_secs()),
            timestamps: self.timestamps,
            ..LogOptions::default()
        }
    }
}

/// Puts the container's name in front of each line.
struct Prefixes {
    paint: ui::Paint,
    /// The name of the pod, if it is shown, too.
    front: Option<String>,
    /// The containers in the order in which they were first seen, which determines the colours.
    containers: Vec<String>,
}

impl Prefixes {
    fn new(paint: ui::Paint, front: Option<String>) -> Self {
        Self {
            paint,
            front,
            containers: Vec::new(),
        }
    }

    fn show(&mut self, line: &LogLine) -> String {
        let known = self
            .containers
            .iter()
            .position(|known| *known == line.container);
        let n = known.unwrap_or_else(|| {
            self.containers.push(line.container.clone());
            self.containers.len() - 1
        });
        let front = match &self.front {
            Some(front) => format!("{front} ({})", line.container),
            None => line.container.clone(),
        };
        let front = self.paint.voice(n, &front);
        format!("{front} | {}", terminal_text::shown(&line.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_with_their_container() {
        let mut prefixes = Prefixes::new(ui::Paint::none(), None);
        let mut show = |container: &str, line: &str| {
            prefixes.show(&LogLine {
                container: container.to_owned(),
                line: line.to_owned(),
            })
        };
        assert_eq!(show("prepare", "a"), "prepare | a");
        assert_eq!(show("main", "\x1b[2Jb"), "main | b");
    }
}
