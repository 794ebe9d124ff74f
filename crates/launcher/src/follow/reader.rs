//! Reads one container's log to its end, through broken connections.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use longshore_client::{LogOptions, View, kinds::Pod};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};

use super::{Error, Event, LogLine, signs::Signs};
use crate::{lines::Lines, names::Task};

/// The pause after a break; it doubles while nothing comes.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// How often a log of a pod that is over is asked for in vain.
const PATIENCE: u32 = 8;
/// How long a server is waited for that cannot be reached, as while it is
/// started anew, when a log of a pod that is over is left to be read.
const AWAY: Duration = Duration::from_secs(120);
/// A connection that is silent for as long may be none any more.
const SILENT: Duration = Duration::from_secs(300);
/// The same, when the pod is over.
const SILENT_AT_THE_END: Duration = Duration::from_secs(2);

pub(super) struct Reader {
    pub(super) pods: View<Pod>,
    pub(super) pod: String,
    pub(super) task: Task,
    pub(super) container: String,
    /// Whether it is the one of the command.
    pub(super) is_main: bool,
    pub(super) tail: Option<u64>,
    pub(super) over: watch::Receiver<bool>,
    pub(super) events: mpsc::Sender<Result<Event, Error>>,
    /// What all readers do.
    pub(super) signs: Arc<Signs>,
}

enum Read {
    /// The server ended the stream properly.
    Ended,
    /// The connection broke, or was refused.
    Broken,
    /// Nobody answers.
    Unreachable,
    /// The server knows no such pod.
    NotFound,
    /// Nobody listens any more.
    Unheard,
}

/// How a log comes in.
#[derive(Default)]
struct Progress {
    lines: Lines,
    last: Option<String>,
    /// Whether a line has come since the last connection was made.
    heard: bool,
}

impl Reader {
    /// Reads to the end and gives the last line.
    ///
    /// A stream's end does not tell whether the log has ended or the
    /// connection. So the log is complete only when it was asked for after
    /// the pod was over, and then read to the end.
    pub(super) async fn read(mut self) -> Option<String> {
        let mut progress = Progress::default();
        if self.tail.is_some() {
            progress.lines = Lines::of_tail();
        }
        let mut pause = FIRST_PAUSE;
        let (mut failures, mut away) = (0, None);
        loop {
            let was_over = *self.over.borrow_and_update();
            progress.heard = false;
            let read = self.read_once(!was_over, &mut progress).await;
            if !matches!(read, Read::Unreachable) {
                away = None;
            }
            self.signs.reaches(!matches!(read, Read::Unreachable));
            match read {
                Read::Unheard => break,
                // Before that, it is a node that has not found its pods yet.
                Read::NotFound if was_over => break,
                Read::Ended if was_over => {
                    let rest = progress.lines.finish();
                    // Nobody listens: then nothing is left to be done.
                    let _ = self.tell(rest, &mut progress).await;
                    break;
                }
                Read::Broken if was_over && !progress.heard => {
                    failures += 1;
                    if failures >= PATIENCE {
                        break;
                    }
                }
                Read::Unreachable if was_over => {
                    if away.get_or_insert_with(Instant::now).elapsed() > AWAY {
                        break;
                    }
                    self.signs.give();
                }
                _ => {}
            }
            pause = if progress.heard {
                FIRST_PAUSE
            } else {
                (pause * 2).min(LAST_PAUSE)
            };
            tokio::select! {
                changed = self.over.changed(), if !was_over => {
                    if changed.is_err() {
                        break;
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
        progress.last
    }

    async fn read_once(&mut self, follow: bool, progress: &mut Progress) -> Read {
        let since_time = progress.lines.resume();
        let options = LogOptions {
            container: Some(self.container.clone()),
            follow,
            timestamps: true,
            tail_lines: self.tail.filter(|_| since_time.is_none()),
            since_time,
            ..LogOptions::default()
        };
        let stream = match self.pods.logs(&self.pod, &options).await {
            Ok(stream) => stream,
            Err(error) if error.is_not_found() => return Read::NotFound,
            Err(error) => {
                tracing::debug!(%error, pod = self.pod, "a log cannot be read yet");
                return match error.is_unreachable() {
                    true => Read::Unreachable,
                    false => Read::Broken,
                };
            }
        };
        self.signs.reaches(true);
        let mut stream = std::pin::pin!(stream);
        loop {
            let piece = match self.next(&mut stream, follow).await {
                Some(Ok(piece)) => piece,
                Some(Err(())) => return Read::Broken,
                None => return Read::Ended,
            };
            let lines = progress.lines.push(&piece);
            if self.tell(lines, progress).await.is_err() {
                return Read::Unheard;
            }
        }
    }

    /// The next piece. A connection may be dead although nobody said so: one
    /// that is silent for too long counts as broken.
    async fn next<E>(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
        follow: bool,
    ) -> Option<Result<Bytes, ()>> {
        if !follow {
            // What is there comes without waiting.
            return stream.next().await.map(|piece| piece.map_err(|_| ()));
        }
        let limit = async {
            let ends = async {
                if self.over.wait_for(|over| *over).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            if timeout(SILENT, ends).await.is_ok() {
                tokio::time::sleep(SILENT_AT_THE_END).await;
            }
        };
        tokio::select! {
            biased;
            piece = stream.next() => piece.map(|piece| piece.map_err(|_| ())),
            () = limit => Some(Err(())),
        }
    }

    async fn tell(&self, lines: Vec<String>, progress: &mut Progress) -> Result<(), ()> {
        for line in lines {
            progress.heard = true;
            progress.last = Some(line.clone());
            let line = LogLine {
                task: self.task.clone(),
                container: (!self.is_main).then(|| self.container.clone()),
                line,
            };
            let told = self.events.send(Ok(Event::Log(line))).await;
            told.map_err(|_| ())?;
            self.signs.give();
        }
        Ok(())
    }
}
