//! Follows a run to its end, and handles Ctrl-C meanwhile.

mod decision;
mod end;
mod notify;
mod session;
mod usage;

use std::{process::ExitCode, time::Duration};

use longshore::{
    client::Cluster,
    launcher::{
        FollowOptions, Run,
        follow::Watched,
        runs::{self, WatchedPods},
    },
};
use tokio::sync::mpsc;

pub(crate) use decision::{Decision, OnInterrupt};

use self::session::Session;
use crate::{
    error::{Error, Kind, Result},
    hints,
    interrupt::Interrupt,
    output::EventFormat,
    show::head,
    stdin::IgnoredInput,
    target::Target,
    ui,
};

/// Options of following a run in the terminal.
#[derive(Default)]
pub(crate) struct How {
    pub(crate) format: EventFormat,
    pub(crate) on_interrupt: OnInterrupt,
    /// Standard input, if it is not passed to the task.
    pub(crate) ignored: IgnoredInput,
    /// The program to run when the run ends or waits, with its arguments.
    pub(crate) notify: Vec<String>,
    /// Events from other parts of the program while the run is followed.
    pub(crate) beside: Option<mpsc::Receiver<Beside>>,
    /// The command for following the run again after it was left, for [`left`].
    pub(crate) again: Option<&'static str>,
    /// The objects of the run, if they were watched before it was created.
    pub(crate) watched: Option<Watched>,
}

/// An event from another part of the program while a run is followed.
#[derive(Debug)]
pub(crate) enum Beside {
    /// Print a line about the run.
    Note(String),
    /// End following.
    Decided(Decision),
}

/// The time that a cancelled run has to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(60);

/// Follows a run to its end and returns the exit code.
pub(crate) async fn to_the_end(
    target: &Target,
    run: &Run,
    options: FollowOptions,
    how: How,
    interrupt: Interrupt,
) -> Result<ExitCode> {
    let session = Session::start(target, run, options, how, interrupt).await?;
    session.follow().await
}

/// Prints that a run continues without this program, and how to follow and stop it. `RUN` in
/// `shows` is replaced by the run's name.
pub(crate) fn left(run: &Run, shows: &str) {
    let name = run.name.as_str();
    let text = format!("RUN continues: {shows}, `longshore cancel RUN` stops it");
    let text = hints::complete(&text.replace("RUN", name));
    ui::note(format!("{} {text}", head("detach")));
}

/// Prints the command that shows the combinations of an ended sweep.
pub(crate) fn shows_sweep(name: &str) {
    let text = hints::complete(&format!("`longshore sweep {name}` prints the combinations"));
    ui::note(format!("{} {text}", head("sweep")));
}

/// Cancels a run, so that it starts no more tasks.
pub(crate) async fn cancel(cluster: &Cluster, run: &Run) -> Result<()> {
    runs::cancel(cluster, run, jiff::Timestamp::now()).await?;
    Ok(())
}

/// Waits until all pods of a run have ended.
pub(crate) async fn wait_until_still(cluster: &Cluster, run: &Run) -> Result<()> {
    let mut pods = WatchedPods::start(cluster, run).await?;
    match tokio::time::timeout(CANCEL_TIMEOUT, pods.all_ended()).await {
        Ok(ended) => Ok(ended?),
        Err(_) => {
            let (active, name) = (pods.active(), run.name.as_str());
            let text = format!("{active} pods of the run {name} did not end");
            Err(Error::new(Kind::Failed, text).hint("`longshore get pods` shows them"))
        }
    }
}
