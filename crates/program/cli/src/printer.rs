//! Prints the output of a followed run in its own thread.
//!
//! Standard output may block for long, for example a terminal stopped by Ctrl-S, or a pager that
//! shows its first page. Then only this thread waits; the follower and Ctrl-C continue to work.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::{progress::Spinner, ui};

/// The maximum number of queued batches. With [`BATCH_BYTES`], it bounds the memory.
const BATCHES: usize = 32;
/// The minimum size of a full batch, which accepts no more events.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;
/// The time that a prompt, or the exit after Ctrl-C, waits for lines to be written.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The destination of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Output,
    Errors,
}

/// Ordered lines to write.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pieces: Vec<(To, String)>,
    bytes: usize,
}

impl Batch {
    /// Adds text for standard output, which must end with a newline.
    pub(crate) fn output(&mut self, write: impl FnOnce(&mut String)) {
        self.add(To::Output, write);
    }

    /// Adds a line for standard error.
    pub(crate) fn note(&mut self, line: &str) {
        self.add(To::Errors, |text| text.push_str(line));
    }

    fn add(&mut self, to: To, write: impl FnOnce(&mut String)) {
        // Each note is written separately.
        if to == To::Errors || self.pieces.last().is_none_or(|(last, _)| *last != to) {
            self.pieces.push((to, String::new()));
        }
        if let Some((_, text)) = self.pieces.last_mut() {
            let before = text.len();
            write(text);
            self.bytes += text.len() - before;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns true if the batch accepts no more events.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }
}

/// A request to the thread.
enum Order {
    /// Write lines.
    Write(Batch),
    /// Show this text next to the spinner, and these lines above it.
    Show(String, Vec<String>),
    /// Hide the spinner, and acknowledge it.
    Pause(oneshot::Sender<()>),
    /// Show the spinner again.
    Resume,
}

/// The thread that writes.
pub(crate) struct Printer {
    orders: mpsc::Sender<Order>,
    done: oneshot::Receiver<()>,
}

impl Printer {
    /// Starts the thread, with this text next to the spinner.
    pub(crate) fn start(text: &'static str) -> Self {
        let (orders, receiver) = mpsc::channel(BATCHES);
        let (sender, done) = oneshot::channel();
        std::thread::spawn(move || {
            print(receiver, &Spinner::start(text));
            // The receiver may have been dropped.
            let _ = sender.send(());
        });
        Self { orders, done }
    }

    /// Sends a batch when the queue has capacity, and leaves an empty batch. Cancel-safe: if
    /// dropped, the batch is unchanged.
    pub(crate) async fn write(&self, batch: &mut Batch) {
        // The thread lives as long as the printer.
        if let Ok(room) = self.orders.reserve().await {
            room.send(Order::Write(std::mem::take(batch)));
        }
    }

    /// Shows progress. Returns `false` if the queue is full.
    pub(crate) fn show(&self, text: String, lines: Vec<String>) -> bool {
        self.orders.try_send(Order::Show(text, lines)).is_ok()
    }

    /// Writes the queued lines and hides the spinner. Does not wait long for a stopped terminal.
    pub(crate) async fn pause(&self) {
        let (sender, paused) = oneshot::channel();
        let pause = async {
            if self.orders.send(Order::Pause(sender)).await.is_ok() {
                let _ = paused.await;
            }
        };
        let _ = tokio::time::timeout(PAUSE_TIMEOUT, pause).await;
    }

    /// Shows the spinner again. Does not wait long for a blocked reader, so that the next Ctrl-C is
    /// handled.
    pub(crate) async fn resume(&self) {
        let resume = self.orders.send(Order::Resume);
        let _ = tokio::time::timeout(PAUSE_TIMEOUT, resume).await;
    }

    /// Like [`Printer::finish`], but does not wait for a blocked reader: the remaining output is
    /// discarded.
    pub(crate) async fn leave(self, batch: Batch) {
        let finished = tokio::time::timeout(PAUSE_TIMEOUT, self.finish(batch)).await;
        if finished.is_err() {
            ui::abandon_output();
        }
    }

    /// Writes all queued lines and a last batch.
    pub(crate) async fn finish(self, batch: Batch) {
        if !batch.is_empty() {
            let _ = self.orders.send(Order::Write(batch)).await;
        }
        drop(self.orders);
        let _ = self.done.await;
    }
}

fn print(mut orders: mpsc::Receiver<Order>, spinner: &Spinner) {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Write(batch) => spinner.aside(|| {
                for (to, text) in &batch.pieces {
                    match to {
                        To::Output => ui::bytes(text.as_bytes()),
                        To::Errors => ui::note(text),
                    }
                }
                ui::flush();
            }),
            Order::Show(text, lines) => {
                spinner.above(&lines);
                spinner.say(|| text);
            }
            Order::Pause(paused) => {
                spinner.pause();
                let _ = paused.send(());
            }
            Order::Resume => spinner.resume(),
        }
    }
    spinner.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_are_batched() {
        let mut batch = Batch::default();
        assert!(batch.is_empty());
        for text in ["one\n", "two\n"] {
            batch.output(|out| out.push_str(text));
        }
        batch.note("a note");
        batch.note("another");
        batch.output(|out| out.push_str("three\n"));
        let pieces: Vec<_> = batch
            .pieces
            .iter()
            .map(|(to, text)| (*to, text.as_str()))
            .collect();
        assert_eq!(
            pieces,
            [
                (To::Output, "one\ntwo\n"),
                (To::Errors, "a note"),
                (To::Errors, "another"),
                (To::Output, "three\n"),
            ]
        );
        batch.output(|out| out.push_str(&"x".repeat(BATCH_BYTES)));
        assert!(batch.is_full());
    }
}
