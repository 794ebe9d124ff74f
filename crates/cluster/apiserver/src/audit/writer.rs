//! The thread that writes the audit log.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
};

use tokio::sync::oneshot;

use super::event::Event;
use crate::limits;

/// Bytes that are written at once, unless no more events wait.
const BATCH: usize = 64 << 10;

/// Queues events for the thread.
pub(super) struct Writer {
    sender: Sender<Message>,
    counters: Arc<Counters>,
}

enum Message {
    Event(Box<Event>, usize),
    Flush(oneshot::Sender<()>),
}

#[derive(Default)]
struct Counters {
    created: AtomicU64,
    /// Events that did not fit into the queue.
    dropped: AtomicU64,
    /// Events that could not be written.
    unwritten: AtomicU64,
    /// Size of the queued events in bytes.
    queued: AtomicUsize,
}

impl Writer {
    pub(super) fn start(out: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let counters = Arc::new(Counters::default());
        let output = Output {
            out,
            counters: counters.clone(),
            batch: Vec::new(),
            events: 0,
            broken: false,
            reported: 0,
        };
        std::thread::Builder::new()
            .name("audit-log".into())
            .spawn(move || output.run(&receiver))?;
        Ok(Self { sender, counters })
    }

    /// Queues an event, or drops it if the queue is full.
    pub(super) fn submit(&self, event: Event) {
        let counters = &self.counters;
        counters.created.fetch_add(1, Ordering::Relaxed);
        let size = event.size();
        let queued = counters.queued.fetch_add(size, Ordering::AcqRel);
        if queued > limits::AUDIT_QUEUE {
            counters.queued.fetch_sub(size, Ordering::AcqRel);
            counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let message = Message::Event(Box::new(event), size);
        if self.sender.send(message).is_err() {
            // The thread ends before the sender only if it panics.
            counters.queued.fetch_sub(size, Ordering::AcqRel);
            counters.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }

    pub(super) fn created(&self) -> u64 {
        self.counters.created.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        let dropped = self.counters.dropped.load(Ordering::Relaxed);
        let unwritten = self.counters.unwritten.load(Ordering::Relaxed);
        dropped.saturating_add(unwritten)
    }
}

/// The thread's state.
struct Output {
    out: Box<dyn Write + Send>,
    counters: Arc<Counters>,
    /// Lines that are not written yet.
    batch: Vec<u8>,
    /// The number of lines in `batch`.
    events: u64,
    /// True if the last write failed.
    broken: bool,
    /// The number of dropped events that were reported.
    reported: u64,
}

impl Output {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Ok(message) = receiver.recv() {
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Event(event, size) => {
                        event.write(&mut self.batch);
                        self.events = self.events.saturating_add(1);
                        self.counters.queued.fetch_sub(size, Ordering::AcqRel);
                        if self.batch.len() >= BATCH {
                            self.write();
                        }
                    }
                    Message::Flush(done) => {
                        self.write();
                        let _ = done.send(());
                    }
                }
                next = receiver.try_recv().ok();
            }
            self.write();
        }
    }

    fn write(&mut self) {
        self.report_dropped();
        if self.events == 0 {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        if self.broken {
            // The last line may be incomplete.
            batch.insert(0, b'\n');
        }
        let events = std::mem::take(&mut self.events);
        let written = self.out.write_all(&batch).and_then(|()| self.out.flush());
        match written {
            Ok(()) if self.broken => {
                tracing::info!("the audit log can be written again");
                self.broken = false;
            }
            Ok(()) => {}
            Err(error) => {
                let counter = &self.counters.unwritten;
                counter.fetch_add(events, Ordering::Relaxed);
                if !self.broken {
                    tracing::error!(%error, "cannot write the audit log: events are lost until it can be written");
                }
                self.broken = true;
            }
        }
        batch.clear();
        batch.shrink_to(BATCH.saturating_mul(2));
        self.batch = batch;
    }

    fn report_dropped(&mut self) {
        let dropped = self.counters.dropped.load(Ordering::Relaxed);
        if dropped > self.reported {
            let events = dropped.saturating_sub(self.reported);
            tracing::error!(
                events,
                "events are missing in the audit log: they came faster than they were written"
            );
            self.reported = dropped;
        }
    }
}
