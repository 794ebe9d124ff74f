//! Reads a container's log to its end and reconnects after connection failures.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use longshore_client::{LogOptions, View, kinds::Pod};
use longshore_diagnosis::names::Task;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};

use super::{
    Error, Event, GapCause, LogGap, LogLine,
    liveness::{Liveness, Source},
};
use crate::lines::{Found, Lines};

/// The first pause before reconnecting. It doubles while no data arrives.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// The number of failed attempts to read the log of an ended pod.
const ATTEMPTS: u32 = 8;
/// The maximum time to wait for an unreachable server, for example during a restart, to read the
/// log of an ended pod.
const AWAY: Duration = Duration::from_secs(120);
/// A connection that is silent for this long may be dead.
const SILENT: Duration = Duration::from_secs(300);
/// The same timeout for ended pods.
const SILENT_AT_THE_END: Duration = Duration::from_secs(2);
/// The delay after which a reader checks for a rotation of the log: the time that it lags behind,
/// or waits for queue capacity.
const BEHIND: Duration = Duration::from_secs(1);
/// The interval of these checks. A kubelet checks log sizes every 10 s, but after a slow
/// compression it may rotate twice in a row.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// The timeout of the query for the first lines of the current file.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of bytes to request from the file: two lines of usual length.
const PROBE_BYTES: u64 = 4096;

/// The context that all readers of a run share.
#[derive(Debug, Clone)]
pub(super) struct ReaderContext {
    /// The pods of the run's namespace.
    pub(super) pods: View<Pod>,
    pub(super) tail: Option<u64>,
    pub(super) since: Option<Timestamp>,
    pub(super) events: mpsc::Sender<Result<Event, Error>>,
    pub(super) liveness: Arc<Liveness>,
}

pub(super) struct Reader {
    pub(super) context: ReaderContext,
    pub(super) pod: String,
    /// The UID of the pod.
    pub(super) uid: String,
    pub(super) task: Task,
    /// The number of the pod's attempt of the task, from 1.
    pub(super) attempt: u32,
    pub(super) container: String,
    /// True for the container of the command.
    pub(super) is_main: bool,
    /// True once the pod has ended.
    pub(super) over: watch::Receiver<bool>,
}

enum Read {
    /// The server ended the stream properly.
    Ended,
    /// The connection failed or was refused.
    Broken,
    /// The server does not answer.
    Unreachable,
    /// The pod does not exist.
    NotFound,
    /// The receiver of the events was dropped.
    ReceiverDropped,
}

/// The progress of reading a log.
struct Progress {
    lines: Lines,
    last: Option<String>,
    /// True if a line has arrived on the current connection.
    heard: bool,
    /// True if the last connection ended properly, with all data written until then.
    ended: bool,
    /// The smallest difference between this clock and the node's, in milliseconds.
    skew: Option<i64>,
    /// The time when the first lines of the current file were last queried.
    probed: Instant,
    /// True if these lines were read after the pod ended, so that they belong to the last file.
    knows_last: bool,
}

impl Reader {
    /// Reads to the end and returns the last line.
    ///
    /// The end of a stream may be the end of the log or of the connection. So the log is complete
    /// only if it was requested after the pod ended, and then read to the end. Otherwise a gap is
    /// reported.
    pub(super) async fn read(mut self) -> Option<String> {
        let mut progress = Progress {
            lines: match (self.context.since, self.context.tail) {
                (Some(since), _) => Lines::since(since),
                (None, Some(_)) => Lines::of_tail(),
                (None, None) => Lines::default(),
            },
            last: None,
            heard: false,
            ended: false,
            skew: None,
            probed: Instant::now(),
            knows_last: false,
        };
        let mut pause = FIRST_PAUSE;
        let (mut failures, mut away) = (0, None);
        loop {
            let was_over = *self.over.borrow_and_update();
            progress.heard = false;
            let read = self.read_once(!was_over, &mut progress).await;
            self.context.liveness.set_unfinished(&self.source(), b"");
            if !matches!(read, Read::Unreachable) {
                away = None;
            }
            self.context
                .liveness
                .record_answer(!matches!(read, Read::Unreachable));
            // A failed request does not invalidate earlier data.
            match read {
                Read::Ended => progress.ended = true,
                _ if progress.heard => progress.ended = false,
                _ => {}
            }
            match read {
                Read::ReceiverDropped => break,
                // Only after the pod has ended. Before that, the node may not know the pod yet.
                Read::NotFound if was_over => {
                    if !progress.ended {
                        self.give_up(GapCause::PodDeleted, &mut progress).await;
                    }
                    break;
                }
                Read::Ended if was_over => {
                    let rest = progress.lines.finish();
                    // The receiver was dropped, so there is nothing left to do.
                    let _ = self.tell(rest, &mut progress).await;
                    break;
                }
                Read::Broken if was_over && !progress.heard => {
                    failures += 1;
                    if failures >= ATTEMPTS {
                        self.give_up(GapCause::Unreadable, &mut progress).await;
                        break;
                    }
                }
                Read::Unreachable if was_over => {
                    if away.get_or_insert_with(Instant::now).elapsed() > AWAY {
                        self.give_up(GapCause::Unreadable, &mut progress).await;
                        break;
                    }
                    self.context.liveness.record_progress();
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
        let resumed = progress.lines.resume();
        let options = LogOptions {
            container: Some(self.container.clone()),
            follow,
            timestamps: true,
            tail_lines: self.context.tail.filter(|_| resumed.is_none()),
            since_time: resumed.or(self.context.since),
            uid: Some(self.uid.clone()),
            ..LogOptions::default()
        };
        let stream = match self.context.pods.logs(&self.pod, &options).await {
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
        self.context.liveness.record_answer(true);
        let source = self.source();
        let mut stream = std::pin::pin!(stream);
        loop {
            let piece = match self.next(&mut stream, follow).await {
                Some(Ok(piece)) => piece,
                Some(Err(())) => return Read::Broken,
                None => return Read::Ended,
            };
            let found = progress.lines.push(&piece);
            if self.tell(found, progress).await.is_err() {
                return Read::ReceiverDropped;
            }
            self.context
                .liveness
                .set_unfinished(&source, progress.lines.unfinished());
            if progress.is_behind() {
                self.probe(progress).await;
            }
        }
    }

    /// The next chunk. A connection that is silent for too long counts as failed, because it
    /// may be dead.
    async fn next<E>(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
        follow: bool,
    ) -> Option<Result<Bytes, ()>> {
        if !follow {
            // Buffered data does not need to wait.
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

    async fn tell(&self, found: Vec<Found>, progress: &mut Progress) -> Result<(), ()> {
        let is_line = |found: &&Found| matches!(found, Found::Line { .. });
        if let Some(Found::Line { text, .. }) = found.iter().rev().find(is_line) {
            progress.heard = true;
            progress.last = Some(text.clone());
        }
        for found in found {
            let event = match found {
                Found::Line { time, text } => Event::Log(LogLine {
                    task: self.task.clone(),
                    container: (!self.is_main).then(|| self.container.clone()),
                    time,
                    line: text,
                }),
                Found::Gap { from, to } => {
                    self.context.liveness.record_gap();
                    Event::Gap(self.gap((Some(from), to), GapCause::Rotated))
                }
            };
            self.send(event, progress).await?;
            self.context.liveness.record_progress();
        }
        Ok(())
    }

    /// Sends an event when the queue has capacity. A reader that waits for a long time cannot see
    /// log rotations meanwhile, so it queries the node.
    async fn send(&self, event: Event, progress: &mut Progress) -> Result<(), ()> {
        if let Ok(permit) = self.context.events.try_reserve() {
            permit.send(Ok(event));
            return Ok(());
        }
        let permit = loop {
            match timeout(PROBE_INTERVAL, self.context.events.reserve()).await {
                Ok(permit) => break permit.map_err(|_| ())?,
                Err(_) => self.probe(progress).await,
            }
        };
        permit.send(Ok(event));
        Ok(())
    }

    /// Queries the first lines of the current file, which the stream must deliver.
    async fn probe(&self, progress: &mut Progress) {
        if progress.probed.elapsed() < PROBE_INTERVAL || progress.knows_last {
            return;
        }
        let is_over = *self.over.borrow();
        let Ok(_turn) = self.context.liveness.probes.try_acquire() else {
            return;
        };
        let options = LogOptions {
            container: Some(self.container.clone()),
            timestamps: true,
            limit_bytes: Some(PROBE_BYTES),
            uid: Some(self.uid.clone()),
            ..LogOptions::default()
        };
        let head = async {
            let mut head = Vec::new();
            let mut stream =
                std::pin::pin!(self.context.pods.logs(&self.pod, &options).await.ok()?);
            while let Some(piece) = stream.next().await {
                head.extend_from_slice(&piece.ok()?);
            }
            Some(head)
        };
        if let Ok(Some(head)) = timeout(PROBE_TIMEOUT, head).await {
            progress.lines.expect(&head);
            progress.knows_last = is_over;
        }
        progress.probed = Instant::now();
    }

    /// Reports that the rest of the log is missing.
    async fn give_up(&self, cause: GapCause, progress: &mut Progress) {
        self.context.liveness.record_gap();
        let gap = self.gap((progress.lines.last(), None), cause);
        // The receiver was dropped, so there is nothing left to do.
        let _ = self.send(Event::Gap(gap), progress).await;
    }

    fn gap(&self, (from, to): (Option<Timestamp>, Option<Timestamp>), cause: GapCause) -> LogGap {
        LogGap {
            task: self.task.clone(),
            container: self.source().1,
            attempt: self.attempt,
            from,
            to,
            bytes: None,
            cause,
        }
    }

    pub(super) fn source(&self) -> Source {
        let container = (!self.is_main).then(|| self.container.clone());
        (self.task.clone(), container)
    }
}

impl Progress {
    /// Returns true if lines arrive much later than they were written. The clocks may differ, so
    /// the smallest observed delay counts as zero.
    fn is_behind(&mut self) -> bool {
        let Some(last) = self.lines.last() else {
            return false;
        };
        let delay = Timestamp::now().as_millisecond() - last.as_millisecond();
        let skew = self.skew.map_or(delay, |skew| skew.min(delay));
        self.skew = Some(skew);
        u128::try_from(delay - skew).is_ok_and(|late| late > BEHIND.as_millis())
    }
}
