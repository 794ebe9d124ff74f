//! The logs of a pod: of one container, or of all of them.

use clap::Args;
use futures::TryStreamExt as _;
use longshore::{
    View,
    client::{Cluster, LogLine, LogOptions, kinds::Pod},
    launcher::terminal_text,
};

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
    if of_pod.all_containers {
        return show_all(&pods, name, &options).await;
    }
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

/// Shows the logs of all containers, init containers first. With `--follow`, their lines
/// are merged as they are written.
async fn show_all(pods: &View<Pod>, name: &str, options: &LogOptions) -> Result<()> {
    let mut log = std::pin::pin!(pods.logs_all(name, options).await?);
    let mut prefixes = Prefixes::new(ui::Paint::stdout());
    while let Some(line) = log.try_next().await? {
        ui::line(prefixes.show(&line));
        if ui::output_closed() {
            break;
        }
    }
    Ok(())
}

/// Puts the container's name in front of each line.
struct Prefixes {
    paint: ui::Paint,
    /// In the order in which they were first seen, which decides the colours.
    containers: Vec<String>,
}

impl Prefixes {
    fn new(paint: ui::Paint) -> Self {
        Self {
            paint,
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
        let front = self.paint.voice(n, &line.container);
        format!("{front} | {}", terminal_text::shown(&line.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_with_their_container() {
        let mut prefixes = Prefixes::new(ui::Paint::none());
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
