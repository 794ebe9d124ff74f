//! A session of `longshore dev`: a followed run whose tasks receive changes.

use std::{
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use longshore::launcher::{FollowOptions, PackOptions, Run, bundle::Manifest};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    connection::{Session, Shared},
    folder::Folder,
    keys::{KEYS, Key, Keys},
    report::{Line, News, Reporter},
    settings::FolderSettings,
    tasks,
    versions::{self, Restart, Version},
};
use crate::{
    error::{Error, Kind, Result},
    follow::{self, Beside, Decision, How, OnInterrupt},
    interrupt::Interrupt,
    output::EventFormat,
    show::head,
    target::Target,
    ui,
};

/// The capacity of the channels between the parts of a session.
const QUEUE: usize = 64;

/// Options of a session.
pub(crate) struct DevOptions<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) pack: PackOptions,
    pub(crate) start: Start,
    /// The time that commands have to end.
    pub(crate) grace: Duration,
    /// True if the pods stay after Ctrl-C.
    pub(crate) keep: bool,
    pub(crate) format: EventFormat,
    /// Lines of other parts, such as forwarded ports.
    pub(crate) notes: (mpsc::Sender<Beside>, mpsc::Receiver<Beside>),
}

/// The start of a session.
pub(crate) enum Start {
    /// The session has started the run, with the folder in this state.
    Launched(Manifest),
    /// The session attaches to a run.
    Attached(Attached),
}

/// A session that attaches to a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attached {
    /// The number of the session.
    pub(crate) session: u64,
    /// True if the commands are restarted even if no file has changed.
    pub(crate) restarts: bool,
}

/// The cause of the session's end: the user, or another session.
#[derive(Debug, Default)]
struct Ended {
    by_key: AtomicBool,
    by_session: AtomicBool,
}

/// The command for following the run again after it was left.
const AGAIN: &str = "`longshore dev --run RUN` sends changes again";

/// Follows the run, sends changes of the folder to its tasks, and reacts to keys, until the run
/// or the session ends.
pub(crate) async fn develop(
    target: &Target,
    run: &Run,
    follow_options: FollowOptions,
    options: DevOptions<'_>,
    interrupt: Interrupt,
) -> Result<ExitCode> {
    let path = options.folder.canonicalize();
    let path = path.map_err(|error| Error::from_source(Kind::Usage, &error))?;
    let settings = FolderSettings::read(&path);
    let session = match &options.start {
        Start::Launched(_) => Session {
            number: 0,
            restarts: false,
        },
        Start::Attached(attached) => Session {
            number: attached.session,
            restarts: attached.restarts,
        },
    };
    // The names of states must differ from the names in earlier sessions.
    let name = match session.number {
        0 => run.name.to_string(),
        number => format!("{}.s{number}", run.name),
    };
    let attaches = matches!(options.start, Start::Attached(_));
    let folder = match options.start {
        Start::Launched(packed) => Folder::packed(&path, options.pack, packed),
        Start::Attached(_) => Folder::attached(&path, options.pack, format!("{name}.0"))
            .map_err(|error| Error::from_source(Kind::Usage, &error))?,
    };
    let folder = Arc::new(folder);
    let Some(first) = folder.first() else {
        return Err(Error::new(Kind::Failed, "the folder has no state"));
    };
    let (publish, versions) = watch::channel(Version::first(first));
    let (news, received) = mpsc::channel(QUEUE);
    let (restart, restarts) = mpsc::channel(QUEUE);
    let (beside, besides) = options.notes;
    let shared = Arc::new(Shared {
        cluster: target.cluster().clone(),
        folder: Arc::clone(&folder),
        news,
        grace: options.grace,
        session,
    });
    let warnings = beside.clone();
    let warn = move |text: String| {
        // The queue is full only if the terminal is stopped.
        let _ = warnings.try_send(Beside::Note(ui::warned(&text)));
    };
    let ended_by = Arc::new(Ended::default());
    let keys = Keys::start();
    let keys_shown = match keys.is_some() {
        true => format!("; {KEYS}"),
        false => String::new(),
    };
    ui::note(format!(
        "{} each change in {} restarts the command{keys_shown}",
        head("dev"),
        options.folder.display()
    ));
    // The set is dropped with this function, which ends its tasks.
    let mut parts = JoinSet::new();
    parts.spawn(versions::follow(
        folder, name, publish, restarts, settings, warn,
    ));
    parts.spawn(tasks::keep(shared, run.clone(), versions.clone()));
    parts.spawn(react(Reactions {
        versions,
        news: received,
        keys,
        restart,
        beside,
        ended_by: Arc::clone(&ended_by),
        attaches,
    }));
    let how = How {
        format: options.format,
        on_interrupt: match options.keep {
            true => OnInterrupt::Detach,
            false => OnInterrupt::Cancel,
        },
        beside: Some(besides),
        again: Some(AGAIN),
        ..How::default()
    };
    let ended = follow::to_the_end(target, run, follow_options, how, interrupt).await;
    parts.shutdown().await;
    if ended_by.by_session.load(Ordering::Relaxed) {
        ended?;
        let name = &run.name;
        let message = format!("another `longshore dev` has attached to the run {name}");
        return Err(Error::new(Kind::Failed, message).hint(format!(
            "it sends the changes of its folder; `longshore dev --run {name}` takes the run back"
        )));
    }
    match ended_by.by_key.load(Ordering::Relaxed) {
        // The user ended the session as intended.
        true => ended.map(|_| ExitCode::SUCCESS),
        false => ended,
    }
}

struct Reactions {
    versions: watch::Receiver<Version>,
    news: mpsc::Receiver<News>,
    keys: Option<Keys>,
    restart: mpsc::Sender<Restart>,
    beside: mpsc::Sender<Beside>,
    ended_by: Arc<Ended>,
    attaches: bool,
}

/// Turns events into lines, and keys into actions.
async fn react(mut parts: Reactions) {
    let mut reporter = match parts.attaches {
        true => Reporter::attaching(),
        false => Reporter::new(),
    };
    loop {
        let sent = tokio::select! {
            biased;
            changed = parts.versions.changed() => {
                if changed.is_err() {
                    return;
                }
                reporter.version(&parts.versions.borrow_and_update());
                continue;
            }
            news = parts.news.recv() => {
                let Some(news) = news else { return };
                if matches!(news, News::Replaced) {
                    parts.ended_by.by_session.store(true, Ordering::Relaxed);
                    let _ = parts.beside.send(Beside::Decided(Decision::Detach)).await;
                    return;
                }
                match reporter.news(news, Instant::now()) {
                    Some(line) => parts.beside.send(Beside::Note(shown(&line))).await,
                    None => Ok(()),
                }
            }
            key = key(&mut parts.keys) => match key {
                Key::Restart => {
                    let _ = parts.restart.send(Restart).await;
                    Ok(())
                }
                Key::Detach => {
                    parts.ended_by.by_key.store(true, Ordering::Relaxed);
                    parts.beside.send(Beside::Decided(Decision::Detach)).await
                }
                Key::Quit => {
                    parts.ended_by.by_key.store(true, Ordering::Relaxed);
                    parts.beside.send(Beside::Decided(Decision::Cancel)).await
                }
                Key::Help => {
                    let line = format!("{} {KEYS}", head("dev"));
                    parts.beside.send(Beside::Note(line)).await
                }
            },
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn key(keys: &mut Option<Keys>) -> Key {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

fn shown(line: &Line) -> String {
    let paint = ui::Paint::stderr();
    match line {
        Line::Changed(text) => format!("{} {text}", paint.bold("changed:")),
        Line::Restarted(text) => format!("{} {text}", head("dev")),
        Line::Warning(text) => ui::warned(text),
    }
}
