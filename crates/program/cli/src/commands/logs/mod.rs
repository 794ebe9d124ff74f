//! `longshore logs`: the logs of runs, of tasks, or of pods.

mod live;
mod pod;
mod written;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use futures::{Stream, TryStreamExt as _};
use longshore::{
    client::{self, Cluster},
    launcher::{
        RunSummary,
        names::Task,
        runs,
        task_logs::{self, DeletedPod},
    },
};

use crate::{
    complete, config,
    error::{Error, Result},
    log_lines::Lines,
    owners::Access,
    place::{self, Place, Word},
    several_runs::{self, Failures},
    target::{self, ClusterArgs},
    ui,
};

/// A longer line is printed in parts, so that memory stays bounded.
const LONGEST_LINE: usize = 1 << 20;

/// Print the logs of runs, of their tasks, or of pods
///
/// The logs of a run that has ended include those of deleted pods, if the cluster keeps them, as
/// the embedded one does. Otherwise, the command names the tasks whose logs are gone, and exits
/// with 1.
///
/// RUN is the name of a run, a prefix of it that no other of your runs has, `last` for your
/// newest run, or a quoted pattern with * and ?. If no run matches, it is the name of a pod; pod/NAME
/// always is, also of a deleted pod whose log is kept. Each line of a run begins with its task, with
/// several names or a pattern with RUN/ROLE/INDEX.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore logs last
  longshore logs digits-x7k2p --follow
  longshore logs digits-x7k2p/worker/0 --tail 20
  longshore logs digits-x7k2p --role worker --since 10m --timestamps
  longshore logs 'sweep-*' --tail 1
  longshore logs pod/web --container proxy --previous
  longshore logs pod/web --all-containers")]
pub(crate) struct LogsArgs {
    /// Runs, tasks or pods: RUN, RUN/ROLE/INDEX, pod/NAME, or patterns such as 'sweep-*'
    #[arg(value_name = "RUN", required = true, add = ArgValueCompleter::new(complete::logs))]
    names: Vec<String>,
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
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn since(text: &str) -> Result<Duration, String> {
    longshore::launcher::config::duration("--since", text).map_err(|error| error.to_string())
}

/// The tasks of a run whose logs are requested.
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

/// The logs to print.
enum Source {
    Run {
        run: Box<RunSummary>,
        wanted: Wanted,
    },
    Pod(String),
    DeletedPod(Box<DeletedPod>),
}

pub(crate) async fn logs(args: LogsArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = show(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(cluster: &Cluster, args: &LogsArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let mut sources = Vec::new();
    // An invalid name is an error before anything is printed.
    for word in args.names.iter().flat_map(|word| several_runs::split(word)) {
        sources.extend(find(cluster, namespace, word, args).await?);
    }
    sources.iter().try_for_each(|source| source.check(args))?;
    let shown = Shown {
        cluster,
        namespace,
        args,
        are_several: several_runs::are_several(&args.names),
    };
    let mut failures = Failures::of(sources.len());
    let showing = sources.iter().map(|source| shown.show(source));
    if args.follow {
        // Their lines are merged as they are written.
        let results = futures::future::join_all(showing).await;
        for (source, result) in sources.iter().zip(results) {
            failures.take(source, result);
        }
    } else {
        for (source, showing) in sources.iter().zip(showing) {
            failures.take(source, showing.await);
        }
    }
    failures.result()
}

/// Finds the sources of a name or pattern.
async fn find(
    cluster: &Cluster,
    namespace: &str,
    word: &str,
    args: &LogsArgs,
) -> Result<Vec<Source>> {
    let all_tasks = |run: RunSummary| Source::Run {
        run: Box::new(run),
        wanted: Wanted {
            role: args.role.clone(),
            index: args.index,
        },
    };
    if runs::is_pattern(word) {
        let all = runs::list(cluster, Some(namespace)).await?;
        let words = [word.to_owned()];
        let found =
            several_runs::choose_made(cluster, &all, namespace, &words, Access::Read).await?;
        return Ok(found.into_iter().cloned().map(all_tasks).collect());
    }
    let found = match place::find(cluster, namespace, word, Access::Read).await {
        Ok(Place::Run(run)) => all_tasks(*run),
        Ok(Place::Tasks { run, role, index }) => {
            args.refuse_twice(word, &role, index)?;
            Source::Run {
                run,
                wanted: Wanted {
                    role: Some(role),
                    index: index.or(args.index),
                },
            }
        }
        Ok(Place::Pod(pod)) => Source::Pod(pod.name().to_owned()),
        Err(error) => match deleted(cluster, namespace, word).await {
            Some(pod) => Source::DeletedPod(Box::new(pod)),
            None => return Err(error),
        },
    };
    Ok(vec![found])
}

/// The deleted pod with this name whose log is kept.
async fn deleted(cluster: &Cluster, namespace: &str, word: &str) -> Option<DeletedPod> {
    let (Word::Pod(name) | Word::Name(name)) = Word::parse(word).ok()? else {
        return None;
    };
    // Otherwise, the error about the name is shown.
    let found = task_logs::of_deleted_pod(cluster, namespace, name).await;
    found.ok().flatten()
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run { run, .. } => f.write_str(run.run.name.as_str()),
            Self::Pod(name) => write!(f, "pod/{name}"),
            Self::DeletedPod(pod) => write!(f, "pod/{}", pod.name),
        }
    }
}

impl Source {
    /// Rejects options that do not apply, and tasks that do not exist.
    fn check(&self, args: &LogsArgs) -> Result<()> {
        match self {
            Self::Run { run, wanted } => {
                args.of_pod.refuse_for_a_run(run.run.name.as_str())?;
                run.run.check_task(wanted.role.as_deref(), wanted.index)?;
                Ok(())
            }
            Self::Pod(name) => args.refuse_for_a_pod(name),
            Self::DeletedPod(pod) => args.refuse_for_a_pod(&pod.name),
        }
    }
}

/// The format of printed logs.
struct Shown<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
    args: &'a LogsArgs,
    /// Each line begins with the name of the run or pod.
    are_several: bool,
}

impl Shown<'_> {
    async fn show(&self, source: &Source) -> Result<()> {
        let (cluster, args) = (self.cluster, self.args);
        let front = self.are_several.then(|| source.to_string());
        match source {
            Source::Run { run, wanted } => {
                let lines = match front {
                    Some(name) => Lines::named(&name, &run.run),
                    None => Lines::new(&run.run),
                };
                if args.follow && !run.state.is_over() {
                    return live::show(cluster, &run.run, lines, args, wanted).await;
                }
                written::show(cluster, run, lines, args, wanted).await
            }
            Source::Pod(name) => pod::show(cluster, self.namespace, name, front, args).await,
            Source::DeletedPod(pod) => {
                pod::show_deleted(cluster, self.namespace, pod, front, args).await
            }
        }
    }
}

impl LogsArgs {
    /// Rejects options that conflict with a named task.
    fn refuse_twice(&self, word: &str, role: &str, index: Option<u32>) -> Result<()> {
        let is_other = self.role.as_ref().is_some_and(|other| other != role)
            || self
                .index
                .is_some_and(|other| index.is_some_and(|index| index != other));
        match is_other {
            true => Err(Error::usage(format!(
                "{word:?} names a task that conflicts with --role or --index: omit these options"
            ))),
            false => Ok(()),
        }
    }

    /// Rejects options for the logs of runs.
    fn refuse_for_a_pod(&self, name: &str) -> Result<()> {
        let given = [self.role.is_some(), self.index.is_some()];
        let mut given = given.into_iter().zip(["--role", "--index"]);
        match given.find_map(|(given, word)| given.then_some(word)) {
            Some(of_run) => {
                let message = format!("{of_run} is for a run's logs, and {name} is a pod");
                Err(Error::usage(message).hint("omit it"))
            }
            None => Ok(()),
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
