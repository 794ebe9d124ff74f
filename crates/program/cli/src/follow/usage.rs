//! The usage of a followed run: in the progress line, and in a summary at the end.

use std::{sync::Arc, time::Duration};

use longshore::{
    client::Cluster,
    launcher::{
        Run, memory,
        usage::{self, Detail, RunUsageSummary},
    },
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{show::head, ui};

/// The time until the first query, and between queries.
const INTERVAL: Duration = Duration::from_secs(4);
/// The interval for runs of many tasks.
const LONG_INTERVAL: Duration = Duration::from_secs(30);
const MANY_TASKS: u32 = 64;
/// The timeout for the query at the end.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(5);

/// Queries the usage of a run while it is followed.
pub(super) struct LiveUsage {
    line: watch::Receiver<String>,
    worker: Option<JoinHandle<()>>,
}

impl Drop for LiveUsage {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.abort();
        }
    }
}

impl LiveUsage {
    /// Starts to query, if the progress line is drawn.
    pub(super) fn start(cluster: &Cluster, run: &Run, is_drawn: bool) -> Self {
        let (sender, line) = watch::channel(String::new());
        let worker = is_drawn.then(|| {
            let (cluster, run) = (cluster.clone(), Arc::new(run.clone()));
            tokio::spawn(query(cluster, run, sender))
        });
        Self { line, worker }
    }

    /// The progress with the usage.
    pub(super) fn after(&self, progress: &str) -> String {
        match &*self.line.borrow() {
            line if line.is_empty() => progress.to_owned(),
            line => format!("{progress} · {line}"),
        }
    }
}

async fn query(cluster: Cluster, run: Arc<Run>, line: watch::Sender<String>) {
    let tasks = run.roles.iter().map(|role| role.count);
    let tasks = tasks.fold(0, u32::saturating_add);
    let interval = match tasks > MANY_TASKS {
        true => LONG_INTERVAL,
        false => INTERVAL,
    };
    loop {
        sleep(interval).await;
        let found = usage::of_run(&cluster, &run, Detail::Current).await;
        let text = found.ok().and_then(|found| usage::live_line(&found.tasks));
        if line.send(text.unwrap_or_default()).is_err() {
            return;
        }
    }
}

/// Warns about memory: processes that were killed, and limits that are not enforced.
pub(super) async fn warn_of_memory(cluster: &Cluster, run: &Run) {
    let notes = memory::notes(cluster, run);
    if let Ok(Ok(notes)) = timeout(SUMMARY_TIMEOUT, notes).await {
        notes.into_iter().for_each(ui::warning);
    }
}

/// Prints what a run used, if its tasks have recorded it.
pub(super) async fn summarize(cluster: &Cluster, run: &Run) {
    let usage = usage::of_run(cluster, run, Detail::Ended);
    let Ok(Ok(usage)) = timeout(SUMMARY_TIMEOUT, usage).await else {
        return;
    };
    let Some(summary) = RunUsageSummary::of(&usage.tasks) else {
        return;
    };
    ui::note(format!("{} {}", head("usage"), summary.line()));
    for hint in &summary.hints {
        ui::note(format!("{} {hint}", head("hint")));
    }
}
