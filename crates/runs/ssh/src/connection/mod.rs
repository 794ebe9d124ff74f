//! The connection layer (RFC 4254): channels with their windows, and the requests of the client.
//! Each channel has a task, which never waits for another channel.

mod event;
mod forward;
mod inbox;
mod session;
mod setup;
#[cfg(test)]
mod tests;
mod window;

use std::{collections::HashMap, sync::Arc};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    Host, Refusal,
    transport::Error,
    wire::{Fields, Malformed, Put as _},
};
pub(crate) use event::Event;
use event::{Note, Pipe};
use inbox::{Inlet, inbox};
use session::{FromClient, Order};
use setup::{Asked, Setup};
use window::Window;

/// The numbers of the connection layer's messages.
mod message {
    pub(super) const GLOBAL_REQUEST: u8 = 80;
    pub(super) const REQUEST_SUCCESS: u8 = 81;
    pub(super) const REQUEST_FAILURE: u8 = 82;
    pub(super) const OPEN: u8 = 90;
    pub(super) const OPEN_CONFIRMATION: u8 = 91;
    pub(super) const OPEN_FAILURE: u8 = 92;
    pub(super) const WINDOW_ADJUST: u8 = 93;
    pub(super) const DATA: u8 = 94;
    pub(super) const EXTENDED_DATA: u8 = 95;
    pub(super) const EOF: u8 = 96;
    pub(super) const CLOSE: u8 = 97;
    pub(super) const REQUEST: u8 = 98;
    pub(super) const SUCCESS: u8 = 99;
    pub(super) const FAILURE: u8 = 100;
}

/// Reasons for the refusal of a channel.
mod refused {
    pub(super) const PROHIBITED: u32 = 1;
    pub(super) const CONNECT_FAILED: u32 = 2;
    pub(super) const UNKNOWN_TYPE: u32 = 3;
    pub(super) const SHORTAGE: u32 = 4;
}

/// The type of the bytes of the standard error.
const STDERR: u32 = 1;
/// The number of bytes of a channel that the server accepts before they are passed on.
const WINDOW: u32 = 1 << 20;
/// The maximum length of the bytes in a message.
const MAX_DATA: u32 = 32 << 10;
/// The maximum number of channels, and of tasks of channels, which end shortly after their
/// channels.
const MAX_CHANNELS: usize = 512;
/// The maximum number of messages in the queue to the connection.
const QUEUED_EVENTS: usize = 16;
/// The maximum number of orders in the queue to a session.
const QUEUED_ORDERS: usize = 16;

/// A channel.
struct Channel {
    /// The client's number of the channel.
    peer: u32,
    /// The settings of a session, until it starts.
    setup: Option<Setup>,
    window: Arc<Window>,
    most: usize,
    /// The number of bytes that the client may send.
    accepted: u32,
    /// The number of bytes that were passed on since the last adjustment of the window.
    consumed: u32,
    input: Option<Inlet>,
    orders: Option<mpsc::Sender<Order>>,
    /// Dropped when the client closes the channel.
    open: Option<oneshot::Sender<()>>,
    /// True if the client has received the confirmation.
    is_confirmed: bool,
    has_ended: bool,
    has_closed: bool,
}

/// The channels of a connection.
pub(crate) struct Connection {
    host: Arc<dyn Host>,
    channels: HashMap<u32, Channel>,
    next: u32,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    tasks: JoinSet<()>,
    /// True if the user was informed that ports of this machine are not forwarded.
    has_noted: bool,
}

/// The messages to the client.
type Replies = Vec<Vec<u8>>;

impl Connection {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        let (sender, events) = mpsc::channel(QUEUED_EVENTS);
        Self {
            host,
            channels: HashMap::new(),
            next: 0,
            sender,
            events,
            tasks: JoinSet::new(),
            has_noted: false,
        }
    }

    /// The next message of a channel's task.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        self.forget_ended();
        self.events.recv().await
    }

    /// Forgets the tasks that have ended.
    fn forget_ended(&mut self) {
        while self.tasks.try_join_next().is_some() {}
    }

    /// Returns true if another task may start. The tasks of closed channels count until they have
    /// ended.
    fn has_room(&mut self) -> bool {
        self.forget_ended();
        self.tasks.len() < MAX_CHANNELS
    }

    /// Returns true if a session runs.
    pub(crate) fn has_sessions(&self) -> bool {
        self.channels
            .values()
            .any(|channel| channel.orders.is_some())
    }

    /// Closes all channels, and waits until their tasks have ended.
    pub(crate) async fn close(mut self) {
        self.channels.clear();
        // Tasks must not block on a full queue.
        self.events.close();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Handles a message of a channel's task. Returns the messages to the client.
    pub(crate) fn on_event(&mut self, event: Event) -> Replies {
        let mut replies = Replies::new();
        let id = event.channel;
        let Some(channel) = self.channels.get_mut(&id) else {
            return replies;
        };
        match event.note {
            Note::Opened(Ok(())) => {
                channel.is_confirmed = true;
                replies.push(confirmation(channel.peer, id));
            }
            Note::Opened(Err(refusal)) => {
                let (code, text) = match &refusal {
                    Refusal::Prohibited(text) => (refused::PROHIBITED, text),
                    Refusal::Failed(text) => (refused::CONNECT_FAILED, text),
                };
                replies.push(refusal_of(channel.peer, code, text));
                self.channels.remove(&id);
            }
            Note::Output(bytes) => {
                let mut message = to(message::DATA, channel.peer);
                message.put_string(&bytes);
                replies.push(message);
            }
            Note::Errors(bytes) => {
                let mut message = to(message::EXTENDED_DATA, channel.peer);
                message.put_number(STDERR);
                message.put_string(&bytes);
                replies.push(message);
            }
            Note::Consumed(count) => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                channel.consumed = channel.consumed.saturating_add(count);
                if channel.consumed >= WINDOW / 4 && channel.input.is_some() {
                    let mut message = to(message::WINDOW_ADJUST, channel.peer);
                    message.put_number(channel.consumed);
                    channel.accepted = channel.accepted.saturating_add(channel.consumed);
                    channel.consumed = 0;
                    replies.push(message);
                }
            }
            Note::Exit(code) => {
                let mut message = to(message::REQUEST, channel.peer);
                message.put_string("exit-status");
                message.put_boolean(false);
                message.put_number(code);
                replies.push(message);
            }
            Note::End => channel.end(&mut replies),
            Note::Closed => {
                channel.orders = None;
                channel.end(&mut replies);
                if !std::mem::replace(&mut channel.has_closed, true) {
                    replies.push(to(message::CLOSE, channel.peer));
                }
                // The channel is removed when the client closes it, too.
            }
        }
        replies
    }

    /// Handles a message of the client. Returns the messages to it.
    pub(crate) fn on_message(&mut self, payload: &[u8]) -> Result<Replies, Error> {
        let mut replies = Replies::new();
        let mut fields = Fields::new(payload);
        match fields.byte()? {
            message::GLOBAL_REQUEST => self.global(fields, &mut replies)?,
            message::OPEN => self.open(fields, &mut replies)?,
            message::REQUEST_SUCCESS
            | message::REQUEST_FAILURE
            | message::SUCCESS
            | message::FAILURE => {}
            kind @ (message::WINDOW_ADJUST
            | message::DATA
            | message::EXTENDED_DATA
            | message::EOF
            | message::CLOSE
            | message::REQUEST) => {
                let id = fields.number()?;
                let found = self.channels.get_mut(&id);
                let channel = found.filter(|channel| channel.is_confirmed);
                let Some(channel) = channel else {
                    return Err(Error::Protocol("a message for a channel that is not open"));
                };
                match kind {
                    message::WINDOW_ADJUST => {
                        let grown = channel.window.grow(fields.number()?);
                        grown.ok_or(Error::Protocol("a window above 4 GiB"))?;
                    }
                    message::DATA => channel.receive(fields.string()?)?,
                    message::EXTENDED_DATA => {
                        // Extended data of clients has no meaning, and is discarded.
                        fields.number()?;
                        channel.take(fields.string()?.len())?;
                    }
                    message::EOF => channel.input = None,
                    message::CLOSE => {
                        if !std::mem::replace(&mut channel.has_closed, true) {
                            replies.push(to(message::CLOSE, channel.peer));
                        }
                        // The task ends.
                        self.channels.remove(&id);
                    }
                    _ => self.request(id, fields, &mut replies)?,
                }
            }
            kind => return Err(Error::Unexpected(kind)),
        }
        Ok(replies)
    }

    fn global(&mut self, mut fields: Fields<'_>, replies: &mut Replies) -> Result<(), Error> {
        let (name, wants_reply) = (fields.string()?, fields.boolean()?);
        let is_forward = matches!(name, b"tcpip-forward" | b"streamlocal-forward@openssh.com");
        if is_forward && !std::mem::replace(&mut self.has_noted, true) {
            self.host.note(
                "ports of this machine are not forwarded to tasks: ssh -R and RemoteForward are not supported",
            );
        }
        // Also answers keepalive@openssh.com.
        if wants_reply {
            replies.push(vec![message::REQUEST_FAILURE]);
        }
        Ok(())
    }

    fn open(&mut self, mut fields: Fields<'_>, replies: &mut Replies) -> Result<(), Error> {
        let kind = fields.string()?;
        let (peer, window, most) = (fields.number()?, fields.number()?, fields.number()?);
        let refuse = |replies: &mut Replies, code, text: &str| {
            replies.push(refusal_of(peer, code, text));
            Ok(())
        };
        if self.channels.len() >= MAX_CHANNELS || !self.has_room() {
            return refuse(replies, refused::SHORTAGE, "too many channels");
        }
        let id = self.next;
        let Some(next) = id.checked_add(1) else {
            return refuse(replies, refused::SHORTAGE, "too many channels");
        };
        let mut channel = Channel {
            peer,
            setup: None,
            window: Arc::new(Window::new(window)),
            most: most.clamp(1, MAX_DATA) as usize,
            accepted: WINDOW,
            consumed: 0,
            input: None,
            orders: None,
            open: None,
            is_confirmed: false,
            has_ended: false,
            has_closed: false,
        };
        match kind {
            b"session" => {
                channel.setup = Some(Setup::default());
                channel.is_confirmed = true;
                replies.push(confirmation(peer, id));
            }
            b"direct-tcpip" => {
                let address = fields.text()?.to_owned();
                let port = u16::try_from(fields.number()?);
                let Ok(port @ 1..) = port else {
                    return refuse(replies, refused::CONNECT_FAILED, "the port is not valid");
                };
                let (pipe, client) = channel.connect(id, self.sender.clone());
                let host = self.host.clone();
                let target = (address, port);
                self.tasks.spawn(forward::run(
                    host,
                    target,
                    client.input,
                    client.closed,
                    pipe,
                ));
                channel.orders = None;
            }
            b"direct-streamlocal@openssh.com" => {
                let text = "Longshore forwards ports of the task, not its Unix sockets";
                return refuse(replies, refused::PROHIBITED, text);
            }
            _ => {
                let text = "Longshore does not support this type of channel";
                return refuse(replies, refused::UNKNOWN_TYPE, text);
            }
        }
        self.next = next;
        self.channels.insert(id, channel);
        Ok(())
    }

    /// A request for a channel.
    fn request(
        &mut self,
        id: u32,
        mut fields: Fields<'_>,
        replies: &mut Replies,
    ) -> Result<(), Error> {
        let (name, wants_reply) = (fields.string()?, fields.boolean()?);
        let has_room = self.has_room();
        let channel = self.channels.get_mut(&id).ok_or(Malformed)?;
        let is_granted = match &mut channel.setup {
            Some(setup) => match setup.ask(name, fields)? {
                Asked::Set => true,
                Asked::Refused => false,
                Asked::Start(_) if !has_room => false,
                Asked::Start(request) => {
                    channel.setup = None;
                    let (pipe, client) = channel.connect(id, self.sender.clone());
                    self.tasks
                        .spawn(session::run(self.host.clone(), request, client, pipe));
                    true
                }
            },
            None => match setup::order(name, fields)? {
                // A full queue still contains other orders; this one is refused.
                Some(order) => channel
                    .orders
                    .as_ref()
                    .is_some_and(|orders| orders.try_send(order).is_ok()),
                None => false,
            },
        };
        if wants_reply {
            let kind = match is_granted {
                true => message::SUCCESS,
                false => message::FAILURE,
            };
            replies.push(to(kind, channel.peer));
        }
        Ok(())
    }
}

impl Channel {
    /// Creates the ends of the channel's task.
    fn connect(&mut self, id: u32, events: mpsc::Sender<Event>) -> (Pipe, FromClient) {
        let (input, from_client) = inbox();
        let (orders, obeyed) = mpsc::channel(QUEUED_ORDERS);
        let (open, closed) = oneshot::channel();
        self.input = Some(input);
        self.orders = Some(orders);
        self.open = Some(open);
        let pipe = Pipe {
            channel: id,
            events,
            window: self.window.clone(),
            most: self.most,
        };
        let client = FromClient {
            input: from_client,
            orders: obeyed,
            closed,
        };
        (pipe, client)
    }

    /// Subtracts bytes from the number that the client may send.
    fn take(&mut self, count: usize) -> Result<(), Error> {
        let count = u32::try_from(count).map_err(|_| Error::Packet)?;
        let left = self.accepted.checked_sub(count);
        self.accepted = left.ok_or(Error::Protocol("more bytes than the window allows"))?;
        Ok(())
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.take(bytes.len())?;
        if let Some(input) = &self.input {
            input.push(bytes);
        }
        Ok(())
    }

    /// Reports to the client that no more bytes follow.
    fn end(&mut self, replies: &mut Replies) {
        if !std::mem::replace(&mut self.has_ended, true) && !self.has_closed {
            replies.push(to(message::EOF, self.peer));
        }
    }
}

fn to(kind: u8, peer: u32) -> Vec<u8> {
    let mut message = vec![kind];
    message.put_number(peer);
    message
}

fn confirmation(peer: u32, id: u32) -> Vec<u8> {
    let mut message = to(message::OPEN_CONFIRMATION, peer);
    message.put_number(id);
    message.put_number(WINDOW);
    message.put_number(MAX_DATA);
    message
}

fn refusal_of(peer: u32, code: u32, text: &str) -> Vec<u8> {
    let mut message = to(message::OPEN_FAILURE, peer);
    message.put_number(code);
    message.put_string(text);
    message.put_string("");
    message
}
