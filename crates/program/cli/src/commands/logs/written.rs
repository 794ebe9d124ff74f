//! The logs that the tasks of a run have written so far, grouped by task and attempt.

use futures::Stream;
use longshore::{
    View,
    client::{self, Cluster, LogOptions, kinds::Pod},
    launcher::{
        Run, RunState, RunSummary,
        follow::LogLine,
        names,
        task_logs::{self, MissingLog, TaskLog},
    },
};

use super::{LogsArgs, Wanted, each_line};
use crate::{
    error::{Error, Kind, Result},
    log_lines::Lines,
    ui,
};

/// The maximum number of tasks that have not started to name.
const MOST_NAMED: usize = 5;

/// Prints the logs, and names those that are missing.
pub(super) async fn show(
    cluster: &Cluster,
    run: &RunSummary,
    lines: Lines,
    args: &LogsArgs,
    wanted: &Wanted,
) -> Result<()> {
    let (run, state) = (&run.run, run.state);
    let found = task_logs::of_run(cluster, run, state.is_over()).await?;
    let mut printer = Printer {
        pods: cluster.pods().in_namespace(&run.namespace)?,
        lines,
        args,
        printed: 0,
        lost: 0,
    };
    for log in found.logs.iter().filter(|log| wanted.has(&log.task)) {
        printer.print(log).await;
        if ui::output_closed() {
            return Ok(());
        }
    }
    let missing = found.missing.iter();
    let missing = missing.filter(|missing| wanted.has(&missing.task));
    let (lost, unstarted): (Vec<&MissingLog>, _) = missing.partition(|missing| missing.is_loss());
    for missing in lost {
        printer.lose(missing.to_string());
    }
    note_unstarted(&unstarted);
    let has_none = printer.printed == 0 && printer.lost == 0;
    if has_none && unstarted.is_empty() && state == RunState::Pending {
        ui::note(format!("No task of the run {} has started yet.", run.name));
    }
    printer.result(run)
}

/// Names tasks that have no log because they have not started.
fn note_unstarted(tasks: &[&MissingLog]) {
    let named = tasks.iter().take(MOST_NAMED);
    named.for_each(|missing| ui::note(missing.to_string()));
    let more = tasks.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        let more = ui::count(u64::try_from(more).unwrap_or(u64::MAX), "more task");
        ui::note(format!("{more} did not start"));
    }
}

/// Prints logs, and counts them.
struct Printer<'a> {
    pods: View<Pod>,
    lines: Lines,
    args: &'a LogsArgs,
    printed: usize,
    /// The number of incomplete logs.
    lost: usize,
}

impl Printer<'_> {
    async fn print(&mut self, log: &TaskLog) {
        let task = &log.task;
        let (written, container) = match self.open(log).await {
            Ok(written) => (written, (!log.is_main).then(|| log.container.clone())),
            Err(error) if is_not_started(&error) => match self.open(&of_init(log)).await {
                Ok(written) => (written, Some(names::FETCH.to_owned())),
                Err(_) => return ui::note(format!("{task}: {error}")),
            },
            Err(error) => return self.lose(format!("the log of {task} cannot be read: {error}")),
        };
        self.printed += 1;
        let is_whole = self.args.tail.is_none() && self.args.since.is_none();
        if log.is_cut && is_whole {
            ui::note(format!(
                "{task}: the first lines are missing: the log has reached its maximum size, and the node keeps the last ones"
            ));
        }
        let printed = each_line(written, |line| {
            ui::line(self.lines.show(&LogLine {
                task: task.clone(),
                container: container.clone(),
                time: None,
                line,
            }));
        });
        if let Err(error) = printed.await {
            self.lose(format!("{task}: the rest of the log is missing: {error}"));
        }
    }

    async fn open(
        &self,
        log: &TaskLog,
    ) -> Result<
        impl Stream<Item = Result<impl AsRef<[u8]> + use<>, client::Error>> + use<>,
        client::Error,
    > {
        let options = LogOptions {
            tail_lines: self.args.tail,
            since_seconds: self.args.since.map(|since| since.as_secs()),
            timestamps: self.args.timestamps,
            ..log.options()
        };
        self.pods.logs(&log.pod, &options).await
    }

    fn lose(&mut self, message: String) {
        self.lost += 1;
        ui::note(message);
    }

    /// The result of the command: an error if lines are missing.
    fn result(&self, run: &Run) -> Result<()> {
        let (name, lost) = (&run.name, self.lost);
        let message = match (self.printed, lost) {
            (_, 0) => return Ok(()),
            (0, _) => format!("the logs of the run {name} are gone"),
            _ => {
                let logs = ui::count(u64::try_from(lost).unwrap_or(u64::MAX), "log");
                format!("the logs of the run {name} are incomplete: lines of {logs} are missing")
            }
        };
        let hint = "on clusters that delete logs with pods, follow the run while it goes on";
        Err(Error::new(Kind::Failed, message).hint(hint))
    }
}

/// Returns true if a container has no log because it has not started.
fn is_not_started(error: &client::Error) -> bool {
    error.code() == Some(400)
}

/// The log of the init container of the same pod. It may show why the command has not started.
fn of_init(log: &TaskLog) -> TaskLog {
    TaskLog {
        container: names::FETCH.to_owned(),
        is_main: false,
        ..log.clone()
    }
}
