//! Messages of a channel's task to its connection.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::window::Window;
use crate::Refusal;

/// A message of a channel's task.
#[derive(Debug)]
pub(super) enum Note {
    /// The connection of a forward was made or refused.
    Opened(Result<(), Refusal>),
    /// Bytes of the standard output, or of a forwarded connection.
    Output(Bytes),
    /// Bytes of the standard error.
    Errors(Bytes),
    /// This many bytes of the client were passed on.
    Consumed(usize),
    /// The exit code.
    Exit(u32),
    /// The task sends no more bytes.
    End,
    /// The task has ended.
    Closed,
}

/// A message with its channel.
#[derive(Debug)]
pub(crate) struct Event {
    pub(super) channel: u32,
    pub(super) note: Note,
}

/// The connection of a channel's task to the client.
#[derive(Debug, Clone)]
pub(super) struct Pipe {
    pub(super) channel: u32,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) window: Arc<Window>,
    /// The maximum length of a message's bytes.
    pub(super) most: usize,
}

impl Pipe {
    /// Sends a message. Does nothing if the connection has ended, because the task is then closed
    /// soon.
    pub(super) async fn send(&self, note: Note) {
        let channel = self.channel;
        let _ = self.events.send(Event { channel, note }).await;
    }

    /// Sends bytes as far as the client's window allows.
    pub(super) async fn send_bytes(&self, mut bytes: Bytes, note: impl Fn(Bytes) -> Note) {
        while !bytes.is_empty() {
            let taken = self.window.take(bytes.len().min(self.most)).await;
            self.send(note(bytes.split_to(taken))).await;
        }
    }
}
