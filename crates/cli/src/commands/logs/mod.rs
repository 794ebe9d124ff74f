//! `longshore logs`: the logs of a run, of a task, or of a pod.

mod pod;
mod written;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use longshore::{
    client::{self, Cluster},
    launcher::{Event, Follow, FollowOptions, Run, names::Task},
};

use crate::{
    complete, config,
    error::{Error, Kind, Result},
    log_lines::Lines,
    owners::Access,
    place::{self, Place},
    target::{self, ClusterArgs},
    ui,
};

/// A longer line is printed in parts, so that memory stays bounded.
const LONGEST_LINE: usize = 1 << 20;

/// Print the logs of a run, of one of its tasks, or of a pod
///
/// The logs of a run that has ended include those of deleted pods, if the cluster keeps them, as
/// the embedded one does. Otherwise, the command names the tasks whose logs are gone, and exits
/// with 1.
///
/// RUN is the name of a run, a prefix of it that no other of your runs has, or `last` for your
/// newest run. If no run matches, it is the name of a pod; pod/NAME always is. Each line of
/// a run begins with its task.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore logs last
  longshore logs digits-x7k2p --follow
  longshore logs digits-x7k2p/worker/0 --tail 20
  longshore logs digits-x7k2p --role worker --since 10m --timestamps
  longshore logs pod/web --container proxy --previous
  longshore logs pod/web --all-containers")]
pub(crate) struct LogsArgs {
    /// Run, task or pod: RUN, RUN/ROLE/INDEX, or pod/NAME
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::logs))]
    name: String,
    /// Print new lines as they are written, until the run or the pod's container ends
    #[arg(long, short)]
    follow: bool,
    /// Only tasks of this role
    #[arg(long, help_heading = "Runs")]
    role: Option<String>,
    /// Only the task with this index
    #[arg(long, help_heading = "Runs")]
    index: Option<u32>,
    #[command(flatten)]
    of_pod: pod::PodArgs,
    /// Lines from the end of each log [default: all]
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    /// Only lines newer than this, as in 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Duration>,
    /// Prefix each line with its time
    #[arg(long)]
    timestamps: bool,
    /// Namespace [default: that of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn since(text: &str) -> Result<Duration, String> {
    longshore::launcher::config::duration("--since", text).map_err(|error| error.to_string())
}

/// The requested tasks, which exist.
#[derive(Debug, Default)]
struct Wanted {
    role: Option<String>,
    index: Option<u32>,
}

impl Wanted {
    fn has(&self, task: &Task) -> bool {
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
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let (found, wanted) = match place::find(cluster, namespace, &args.name, Access::Read).await? {
        Place::Pod(pod) => return pod::show(cluster, namespace, pod.name(), args).await,
        Place::Run(run) => {
            let wanted = Wanted {
                role: args.role.clone(),
                index: args.index,
            };
            (run, wanted)
        }
        Place::Tasks { run, role, index } => {
            args.refuse_twice(&role, index)?;
            let wanted = Wanted {
                role: Some(role),
                index: index.or(args.index),
            };
            (run, wanted)
        }
    };
    args.of_pod.refuse_for_a_run(found.run.name.as_str())?;
    found.run.check_task(wanted.role.as_deref(), wanted.index)?;
    if args.follow && !found.state.is_over() {
        return show_live(cluster, &found.run, args, &wanted).await;
    }
    written::show(cluster, &found, args, &wanted).await
}

impl LogsArgs {
    /// Rejects options that conflict with a named task.
    fn refuse_twice(&self, role: &str, index: Option<u32>) -> Result<()> {
        let is_other = self.role.as_ref().is_some_and(|other| other != role)
            || self
                .index
                .is_some_and(|other| index.is_some_and(|index| index != other));
        match is_other {
            true => Err(Error::usage(format!(
                "{:?} names a task that conflicts with --role or --index: omit these options",
                self.name
            ))),
            false => Ok(()),
        }
    }
}

async fn show_live(cluster: &Cluster, run: &Run, args: &LogsArgs, wanted: &Wanted) -> Result<()> {
    // Reading logs must not stop the run.
    let options = FollowOptions {
        tail: args.tail,
        since: args
            .since
            .and_then(|since| Timestamp::now().checked_sub(since).ok()),
        stop: false,
        ..FollowOptions::default()
    };
    let failed = |error: longshore::launcher::follow::Error| match error {
        longshore::launcher::follow::Error::Cluster(error) => Error::from(error),
        other => Error::from_source(Kind::Cluster, &other),
    };
    let mut follow = Follow::start(cluster, run, options).await.map_err(failed)?;
    let lines = Lines::new(run);
    let mut gaps = 0_u64;
    while let Some(event) = follow.next().await {
        match event.map_err(failed)? {
            Event::Log(mut line) if wanted.has(&line.task) => {
                if let Some(time) = line.time.filter(|_| args.timestamps) {
                    // The format of Kubernetes' log timestamps.
                    line.line.insert_str(0, &format!("{time:.9} "));
                }
                ui::line(lines.show(&line));
            }
            Event::Gap(gap) if wanted.has(&gap.task) => {
                gaps += 1;
                ui::line(lines.gap(&gap));
            }
            Event::Finished(_) => break,
            _ => {}
        }
        if ui::output_closed() {
            return Ok(());
        }
    }
    match gaps {
        0 => Ok(()),
        gaps => {
            let places = ui::count(gaps, "place");
            let message = format!("lines are missing, or may be, in {places} of the log");
            Err(Error::new(Kind::Failed, message))
        }
    }
}

/// Passes on each line of a log. Very long lines are split.
async fn each_line(
    log: impl Stream<Item = Result<impl AsRef<[u8]>, client::Error>>,
    mut line: impl FnMut(String),
) -> Result<(), client::Error> {
    let mut show = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        line(text.strip_suffix('\r').unwrap_or(&text).to_owned());
    };
    let mut log = std::pin::pin!(log);
    let mut rest = Vec::new();
    while let Some(piece) = log.try_next().await? {
        let mut lines = piece.as_ref().split(|byte| *byte == b'\n');
        let unfinished = lines.next_back().unwrap_or_default();
        for end in lines {
            rest.extend_from_slice(end);
            show(&rest);
            rest.clear();
        }
        rest.extend_from_slice(unfinished);
        if rest.len() > LONGEST_LINE {
            show(&std::mem::take(&mut rest));
        }
        if ui::output_closed() {
            return Ok(());
        }
    }
    if !rest.is_empty() {
        show(&rest);
    }
    Ok(())
}
