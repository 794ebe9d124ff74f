//! Passes the standard input of `run` to its only task, as a terminal or as a stream.

use std::{cell::Cell, time::Duration};

use longshore::{
    client::{Cluster, ExecOptions, Session, typed::PodPhase},
    launcher::{Event, Follow, FollowOptions, Run, names, runs::WatchedPods},
};
use tokio::{
    io::AsyncWriteExt as _,
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
};

use super::super::exec;
use crate::{
    error::{Error, Kind, Result, exit_code},
    follow, hints,
    interrupt::Interrupt,
    progress::Spinner,
    show::head,
    target::Target,
    terminal::Terminal,
    ui,
};

/// The number of attempts to attach to a running task, and the pause between them: its node may
/// not know the container yet.
const ATTACH_ATTEMPTS: u32 = 20;
const ATTACH_PAUSE: Duration = Duration::from_millis(250);

/// Waits until the run's task runs, and attaches to it.
async fn attach(cluster: &Cluster, run: &Run, tty: bool) -> Result<(String, Session)> {
    let pods = cluster.pods().in_namespace(&run.namespace)?;
    let options = ExecOptions {
        container: Some(names::MAIN.to_owned()),
        stdin: true,
        tty,
    };
    let mut attempts = 0;
    let mut watched = WatchedPods::start(cluster, run).await?;
    loop {
        let running = watched
            .current()
            .iter()
            .find(|pod| matches!(pod.phase(), Ok(PodPhase::Running)));
        let Some(pod) = running else {
            watched.changed().await?;
            continue;
        };
        let name = pod.name().to_owned();
        match pods.attach(&name, &options).await {
            Ok(session) => return Ok((name, session)),
            Err(error) if error.is_forbidden() || attempts == ATTACH_ATTEMPTS => {
                return Err(error.into());
            }
            Err(_) => attempts += 1,
        }
        tokio::time::sleep(ATTACH_PAUSE).await;
        watched.list().await?;
    }
}

/// Passes standard input to the run's task while the run is followed. The output of the task
/// comes from its log.
pub(super) fn send(cluster: &Cluster, run: &Run) -> JoinHandle<()> {
    let (cluster, run) = (cluster.clone(), run.clone());
    tokio::spawn(async move {
        let mut session = match attach(&cluster, &run, false).await {
            Ok((_, session)) => session,
            Err(error) => {
                let name = run.name.as_str();
                ui::error(&error);
                ui::note(hints::complete(&format!(
                    "stdin is not sent; a task that waits for it does not end: `longshore cancel {name}` stops the run"
                )));
                return;
            }
        };
        let Some(mut input) = session.stdin() else {
            return;
        };
        let sending = async {
            let mut typed = exec::typed();
            while let Some(bytes) = typed.recv().await {
                // The task may end without reading all input.
                if input.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            let _ = input.shutdown().await;
        };
        tokio::join!(sending, async {
            let _ = session.wait().await;
        });
    })
}

/// The end of an interactive session.
enum Ended {
    /// The session with the task's terminal ended.
    Session,
    /// The run ended before the session started.
    Run,
}

/// Connects this terminal to the run's task, and then follows the run to its end.
pub(super) async fn interactive(
    target: &Target,
    run: &Run,
    options: FollowOptions,
    how: follow::How,
    mut interrupt: Interrupt,
) -> Result<std::process::ExitCode> {
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let attached = Cell::new(false);
    let talking = async {
        tokio::select! {
            ended = talk(target.cluster(), run, &options, &attached) => ended.map(Some),
            _ = hangup.recv() => Ok(None),
        }
    };
    // In raw mode, Ctrl-C is an ordinary key: a signal comes from another process, or from before
    // the task has the terminal.
    let ended = match interrupt.unless(talking).await {
        Ok(ended) => ended?,
        Err(error) if !attached.get() => {
            // A task that waits for a terminal has not started its command.
            follow::cancel(target.cluster(), run).await?;
            follow::wait_until_still(target.cluster(), run).await?;
            return Err(error);
        }
        Err(_) => None,
    };
    let options = match ended {
        None => {
            let shows = "`longshore attach -it POD` gives it a terminal again (`longshore get pods` names the pod)";
            follow::left(run, shows);
            return Ok(exit_code(Kind::Interrupted));
        }
        Some(Ended::Run) => options,
        // All output was printed on the terminal.
        Some(Ended::Session) => FollowOptions {
            logs: false,
            ..options
        },
    };
    follow::to_the_end(target, run, options, how, interrupt).await
}

async fn talk(
    cluster: &Cluster,
    run: &Run,
    options: &FollowOptions,
    attached: &Cell<bool>,
) -> Result<Ended> {
    let terminal = Terminal::find().ok_or_else(|| Error::usage(NO_TERMINAL))?;
    let (name, session) = {
        let spinner = Spinner::start("starting");
        let attaching = attach(cluster, run, true);
        let opened = tokio::select! {
            opened = attaching => opened.map(Some),
            ended = wait_for_end(cluster, run, options, &spinner) => ended.map(|()| None),
        };
        spinner.end();
        match opened? {
            Some(opened) => opened,
            None => return Ok(Ended::Run),
        }
    };
    attached.set(true);
    match exec::talk(session, true, Some(terminal)).await {
        Ok(_) => Ok(Ended::Session),
        Err(error) => Err(error.hint(format!(
            "the run {} may still be running: `longshore attach {name} -it` gives it a terminal again",
            run.name.as_str()
        ))),
    }
}

/// Prints why the task does not start. Returns when the run has ended.
async fn wait_for_end(
    cluster: &Cluster,
    run: &Run,
    options: &FollowOptions,
    spinner: &Spinner,
) -> Result<()> {
    let options = FollowOptions {
        logs: false,
        ..options.clone()
    };
    let failed =
        |error: &longshore::launcher::follow::Error| Error::from_source(Kind::Cluster, error);
    let mut follow = Follow::start(cluster, run, options)
        .await
        .map_err(|error| failed(&error))?;
    while let Some(event) = follow.next().await {
        match event.map_err(|error| failed(&error))? {
            Event::Waiting(why) => spinner.aside(|| {
                ui::note(format!(
                    "{} {}; {}",
                    head("waiting"),
                    why.sentence(),
                    hints::complete(&why.remedy)
                ));
            }),
            Event::Finished(_) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

/// The error for `-t` without a terminal.
pub(super) const NO_TERMINAL: &str =
    "-t requires a terminal for stdin and stdout: omit it in scripts";
