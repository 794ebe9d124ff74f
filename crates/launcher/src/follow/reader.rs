//! Reads one container's log to its end, through broken connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use longshore_client::{LogOptions, View, kinds::Pod};
use tokio::sync::{mpsc, watch};

use super::{Error, Event, LogLine};
use crate::{lines::Lines, names::Task};

/// The pause after a break; it doubles while nothing comes.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// How often a log of a pod that is over is asked for in vain.
const PATIENCE: u32 = 8;

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
    /// Counts the lines of all readers.
    pub(super) lines: Arc<AtomicU64>,
}

enum Read {
    /// The server ended the stream properly.
    Ended,
    /// The connection broke, or was refused.
    Broken,
    /// The pod is gone, or nobody listens any more.
    Over,
}

impl Reader {
    /// Reads to the end and gives the last line.
    ///
    /// A stream's end does not tell whether the log has ended or the
    /// connection. So the log is complete only when it was asked for after
    /// the pod was over, and then read to the end.
    pub(super) async fn read(mut self) -> Option<String> {
        let mut lines = Lines::default();
        let mut last = None;
        let mut pause = FIRST_PAUSE;
        let mut failures = 0;
        loop {
            let was_over = *self.over.borrow_and_update();
            let mut heard = false;
            let read = self
                .read_once(&mut lines, !was_over, &mut last, &mut heard)
                .await;
            match read {
                Read::Over => break,
                Read::Ended if was_over => {
                    if let Some(line) = lines.finish() {
                        last = Some(line.clone());
                        // Nobody listens: then nothing is left to be done.
                        let _ = self.tell(line).await;
                    }
                    break;
                }
                Read::Broken if was_over && !heard => {
                    failures += 1;
                    if failures >= PATIENCE {
                        break;
                    }
                }
                _ => {}
            }
            pause = if heard {
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
        last
    }

    async fn read_once(
        &self,
        lines: &mut Lines,
        follow: bool,
        last: &mut Option<String>,
        heard: &mut bool,
    ) -> Read {
        let since_time = lines.resume();
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
            Err(error) if error.is_not_found() => return Read::Over,
            Err(error) => {
                tracing::debug!(%error, pod = self.pod, "a log cannot be read yet");
                return Read::Broken;
            }
        };
        let mut stream = std::pin::pin!(stream);
        while let Some(piece) = stream.next().await {
            let Ok(piece) = piece else {
                return Read::Broken;
            };
            for line in lines.push(&piece) {
                *heard = true;
                *last = Some(line.clone());
                if self.tell(line).await.is_err() {
                    return Read::Over;
                }
            }
        }
        Read::Ended
    }

    async fn tell(&self, line: String) -> Result<(), ()> {
        let container = (!self.is_main).then(|| self.container.clone());
        let line = LogLine {
            task: self.task.clone(),
            container,
            line,
        };
        self.events
            .send(Ok(Event::Log(line)))
            .await
            .map_err(|_| ())?;
        self.lines.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
