//! The session of a command with a client: exec and attach, over any transport.

use std::{io, time::Duration};

use bytes::Bytes;
use futures::FutureExt as _;
use longshore_node_api::{
    BoxedRead, BoxedWrite, ContainerRef, NodeStreams, Session, SessionError, StreamsWanted,
};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};

use super::{
    activity::Activity,
    channel::{Incoming, Outgoing},
    protocol::{Framing, Report},
    socket::Socket,
    status::Outcome,
};
use crate::{limits, spdy};

/// Time that a command waits for the initial size of its terminal, to avoid an immediate resize.
const INITIAL_SIZE_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum length of a terminal size message.
const MAX_SIZE_MESSAGE: usize = 1024;

/// A command to run, or a process to attach to.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) container: ContainerRef,
    /// `None` attaches to the container's main process.
    pub(crate) words: Option<Vec<String>>,
    pub(crate) wanted: StreamsWanted,
}

/// The client's channels or streams.
struct Remote {
    input: Option<Incoming>,
    resize: Option<Incoming>,
    output: Option<Outgoing>,
    errors: Option<Outgoing>,
}

/// The size of a terminal, in the form that clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    width: u16,
    height: u16,
}

impl Command {
    pub(super) async fn over_socket<S>(self, streams: &dyn NodeStreams, io: S, framing: Framing)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let wanted = self.wanted;
        let (socket, incoming) = Socket::open(io, framing, &[0, 4]).await;
        let mut incoming = incoming.into_iter();
        let writer = |channel| Outgoing::Socket(socket.writer(channel));
        let remote = Remote {
            input: incoming.next().filter(|_| wanted.input),
            resize: incoming.next().filter(|_| wanted.terminal),
            output: wanted.output.then(|| writer(1)),
            errors: wanted.errors.then(|| writer(2)),
        };
        let report = writer(3);
        // This shows clients that they are connected.
        let first = remote.output.as_ref().or(remote.errors.as_ref());
        let greeted = first.unwrap_or(&report).send(Bytes::new()).await;
        let what = self.what();
        let outcome = self.run(streams, remote, socket.disconnected()).await;
        if let (Some(outcome), Ok(())) = (outcome, greeted)
            && let Some(text) = outcome.report(framing.report, what)
        {
            // A client that does not read does not receive the report either.
            let _ = timeout(limits::SESSION_IDLE, report.send(text.into())).await;
        }
        drop(report);
        socket.close(limits::LINGER).await;
    }

    pub(super) async fn over_spdy<S>(
        self,
        streams: &dyn NodeStreams,
        io: S,
        report: Report,
        resizes: bool,
    ) where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut connection = spdy::Connection::new(io);
        let accepting = self.accept(&mut connection, resizes);
        let Ok(Some((remote, errors))) = timeout(limits::STREAM_CREATION, accepting).await else {
            return tracing::debug!("a client did not open the streams of its session");
        };
        let what = self.what();
        let disconnected = connection.disconnected();
        let left = async {
            tokio::select! {
                () = disconnected => {}
                // Unexpected streams are ignored.
                () = async { while connection.accept().await.is_some() {} } => {}
            }
        };
        let Some(outcome) = self.run(streams, remote, left).await else {
            return;
        };
        if let Some(text) = outcome.report(report, what) {
            let _ = errors.send(text.into()).await;
        }
        let _ = errors.finish().await;
        drop(errors);
        connection.linger(limits::LINGER).await;
    }

    /// Accepts the streams that the client opens. Also returns the stream for errors.
    async fn accept(
        &self,
        connection: &mut spdy::Connection,
        resizes: bool,
    ) -> Option<(Remote, Outgoing)> {
        let wanted = self.wanted;
        let mut report = None;
        let mut remote = Remote {
            input: None,
            resize: None,
            output: None,
            errors: None,
        };
        loop {
            let is_whole = remote.input.is_some() == wanted.input
                && remote.output.is_some() == wanted.output
                && remote.errors.is_some() == wanted.errors
                && remote.resize.is_some() == (wanted.terminal && resizes);
            if let Some(report) = report.take_if(|_| is_whole) {
                return Some((remote, report));
            }
            let stream = connection.accept().await?;
            let kind = stream.header("streamtype").to_owned();
            let (chunks, writer) = (stream.chunks, Outgoing::Spdy(stream.writer));
            match kind.as_str() {
                "error" => report = Some(writer),
                "stdin" => remote.input = Some(chunks),
                "stdout" => remote.output = Some(writer),
                "stderr" => remote.errors = Some(writer),
                "resize" => remote.resize = Some(chunks),
                _ => return None,
            }
        }
    }

    fn what(&self) -> &'static str {
        match self.words {
            Some(_) => "executing command in",
            None => "attaching to",
        }
    }

    /// Runs the command or attaches until it ends. Returns `None` if the client `left` first; its
    /// input is still delivered, and a command continues to run.
    async fn run(
        self,
        streams: &dyn NodeStreams,
        mut remote: Remote,
        left: impl Future<Output = ()>,
    ) -> Option<Outcome> {
        let mut sizes = Sizes::default();
        let mut size = None;
        if let Some(resize) = &mut remote.resize {
            size = timeout(INITIAL_SIZE_TIMEOUT, sizes.next(resize))
                .await
                .ok()
                .flatten();
        }
        let opening = match self.words {
            Some(words) => streams.exec(self.container, words, self.wanted),
            None => streams.attach(self.container, self.wanted),
        };
        let session = match opening.await {
            Ok(session) => session,
            Err(SessionError::Command { code, message }) => {
                // The message that a shell would print.
                if let Some(errors) = remote.errors.or(remote.output) {
                    let _ = errors.send(format!("{message}\n").into()).await;
                    let _ = errors.finish().await;
                }
                return Some(Outcome::Code(code));
            }
            Err(error) => return Some(error.into()),
        };
        let Session {
            input,
            output,
            errors,
            resize,
            end,
        } = session;
        let activity = Activity::new();
        let note = || activity.note();
        let mut end = std::pin::pin!(end.fuse());
        // At most one message for each output.
        let (report_loss, mut lost) = mpsc::channel(2);
        let outputs = async {
            tokio::join!(
                forward_output(output, remote.output, note, &report_loss),
                forward_output(errors, remote.errors, note, &report_loss)
            )
        };
        let mut feeding = std::pin::pin!(feed(remote.input, input, note));
        let sizing = async {
            let (Some(resize), Some(messages)) = (resize, &mut remote.resize) else {
                return;
            };
            let mut size = size;
            loop {
                if let Some(size) = size {
                    resize(size.width, size.height);
                }
                match sizes.next(messages).await {
                    Some(next) => size = Some(next),
                    None => return,
                }
            }
        };
        {
            let mut fed = false;
            let mut ended = std::pin::pin!(async { tokio::join!(&mut end, outputs).0 });
            let mut sizing = std::pin::pin!(then_pending(sizing));
            let mut left = std::pin::pin!(left);
            let mut idle = std::pin::pin!(activity.idle());
            loop {
                tokio::select! {
                    code = &mut ended => return Some(Outcome::Code(code)),
                    () = &mut feeding, if !fed => fed = true,
                    () = &mut sizing => {}
                    Some(why) = lost.recv() => return Some(Outcome::Failed(why)),
                    () = &mut left => break,
                    () = &mut idle => {
                        let text = "the session lay still for too long";
                        return Some(Outcome::Failed(text.to_owned()));
                    }
                }
            }
            if fed {
                return None;
            }
        }
        // Deliver the input that the client sent before it disconnected.
        tokio::select! {
            () = feeding => {}
            _ = end => {}
            () = activity.idle() => {}
        }
        None
    }
}

/// Awaits a future and then never resolves.
async fn then_pending(work: impl Future<Output = ()>) {
    work.await;
    std::future::pending().await
}

/// Forwards an output; reports the reason if the node drops a client that does
/// not read.
async fn forward_output(
    from: Option<BoxedRead>,
    to: Option<Outgoing>,
    note: impl Fn(),
    report_loss: &mpsc::Sender<String>,
) {
    let Some(to) = to else { return };
    let passed = match from {
        Some(from) => to.send_all(from, note).await,
        None => to.finish().await,
    };
    match passed {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            let _ = report_loss.try_send(error.to_string());
        }
        // A disconnected client is detected elsewhere.
        _ => {}
    }
}

/// Forwards a client's input to a command. Input that the command no longer
/// reads is discarded, because other messages may follow it.
async fn feed(from: Option<Incoming>, to: Option<BoxedWrite>, note: impl Fn()) {
    let Some(mut from) = from else { return };
    let mut to = to;
    while let Some(chunk) = from.recv().await {
        note();
        if let Some(input) = &mut to
            && input.write_all(&chunk).await.is_err()
        {
            to = None;
        }
    }
}

/// Parses terminal sizes from a stream of pieces.
#[derive(Debug, Default)]
struct Sizes(Vec<u8>);

impl Sizes {
    /// Returns the next size, or `None` at the end.
    async fn next(&mut self, messages: &mut Incoming) -> Option<Size> {
        loop {
            if let Some(size) = self.take() {
                return Some(size);
            }
            let piece = messages.recv().await?;
            if self.0.len() + piece.len() > MAX_SIZE_MESSAGE {
                self.0.clear();
            }
            let room = MAX_SIZE_MESSAGE - self.0.len();
            self.0.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    fn take(&mut self) -> Option<Size> {
        let mut sizes = serde_json::Deserializer::from_slice(&self.0).into_iter();
        let next: Result<Size, _> = sizes.next()?;
        let read = sizes.byte_offset();
        match next {
            Ok(size) => {
                self.0.drain(..read);
                Some(size)
            }
            Err(error) if error.is_eof() => None,
            Err(_) => {
                self.0.clear();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn sizes_in_pieces() {
        let (sender, mut messages) = tokio::sync::mpsc::channel(9);
        for piece in [
            r#"{"Width":80,"Hei"#,
            "ght\":24}\n{\"Width\":81,\"Height\":25}",
            "nonsense",
            r#"{"Width":82,"Height":26}"#,
        ] {
            sender
                .try_send(Bytes::from_static(piece.as_bytes()))
                .unwrap();
        }
        drop(sender);
        let mut sizes = Sizes::default();
        let mut widths = Vec::new();
        while let Some(size) = sizes.next(&mut messages).await {
            widths.push(size.width);
        }
        assert_eq!(widths, [80, 81, 82]);
    }
}
