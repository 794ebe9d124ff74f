//! Writes what a followed run prints, in a thread of its own.
//!
//! Standard output may take nothing for long: a terminal that Ctrl-S has stopped, a
//! pager that shows its first page. Only this thread then waits. The follower goes on
//! to see the run, and Ctrl-C works.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::{progress::Spinner, ui};

/// Batches that wait to be written. With [`BATCH_BYTES`] it bounds the memory.
const BATCHES: usize = 32;
/// A batch of lines takes no more events when it has so many bytes.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;
/// How long a question, or the end after Ctrl-C, waits for lines to be written.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Output,
    Errors,
}

/// Lines in their order, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pieces: Vec<(To, String)>,
    bytes: usize,
}

impl Batch {
    /// Adds to standard output. The writer must end with a newline.
    pub(crate) fn output(&mut self, write: impl FnOnce(&mut String)) {
        self.add(To::Output, write);
    }

    /// Adds a line for people to standard error.
    pub(crate) fn note(&mut self, line: &str) {
        self.add(To::Errors, |text| text.push_str(line));
    }

    fn add(&mut self, to: To, write: impl FnOnce(&mut String)) {
        // Each note is written by itself.
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

    /// Whether it takes no more events.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }
}

/// What the thread is to do.
enum Order {
    /// Write lines.
    Write(Batch),
    /// Show this beside the spinner, and these lines above it.
    Show(String, Vec<String>),
    /// Take the spinner away, and say when that is done.
    Pause(oneshot::Sender<()>),
    /// Bring the spinner back.
    Resume,
}

/// The thread that writes.
pub(crate) struct Printer {
    orders: mpsc::Sender<Order>,
    done: oneshot::Receiver<()>,
}

impl Printer {
    /// Starts the thread, with a spinner that says this.
    pub(crate) fn start(text: &'static str) -> Self {
        let (orders, receiver) = mpsc::channel(BATCHES);
        let (sender, done) = oneshot::channel();
        std::thread::spawn(move || {
            print(receiver, &Spinner::start(text));
            // The receiver is gone when the program ends first.
            let _ = sender.send(());
        });
        Self { orders, done }
    }

    /// Hands a batch on as soon as there is room, and leaves an empty one. May be given
    /// up: then the batch is as it was.
    pub(crate) async fn write(&self, batch: &mut Batch) {
        // The thread ends with the printer, not before.
        if let Ok(room) = self.orders.reserve().await {
            room.send(Order::Write(std::mem::take(batch)));
        }
    }

    /// Shows progress; `false` if the thread has too much to do for it now.
    pub(crate) fn show(&self, text: String, lines: Vec<String>) -> bool {
        self.orders.try_send(Order::Show(text, lines)).is_ok()
    }

    /// Writes what waits, and takes the spinner away. A terminal that is stopped does
    /// not hold it up for long.
    pub(crate) async fn pause(&self) {
        let (sender, paused) = oneshot::channel();
        let pause = async {
            if self.orders.send(Order::Pause(sender)).await.is_ok() {
                let _ = paused.await;
            }
        };
        let _ = tokio::time::timeout(PAUSE_TIMEOUT, pause).await;
    }

    /// Brings the spinner back. A reader that takes nothing does not hold it up for
    /// long: the next Ctrl-C must be heard.
    pub(crate) async fn resume(&self) {
        let resume = self.orders.send(Order::Resume);
        let _ = tokio::time::timeout(PAUSE_TIMEOUT, resume).await;
    }

    /// As [`Printer::finish`], but does not wait for a reader that takes nothing: what
    /// it has not taken by then is left.
    pub(crate) async fn leave(self, batch: Batch) {
        let finished = tokio::time::timeout(PAUSE_TIMEOUT, self.finish(batch)).await;
        if finished.is_err() {
            ui::abandon_output();
        }
    }

    /// Writes a last batch, and all that waits.
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
    fn lines_stay_in_order_and_come_together() {
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
