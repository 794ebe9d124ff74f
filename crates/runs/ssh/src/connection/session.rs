//! The task of a session: copies its streams between the client and the host.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
};

use super::{
    event::{Note, Pipe},
    inbox::Outlet,
};
use crate::{BoxRead, BoxWrite, Control, Exit, Host, Request};

/// Buffer size in bytes.
const PIECE: usize = 32 * 1024;
/// The exit code of a session that could not be started, or whose end is unknown. ssh uses the same
/// code for its own failures.
const FAILED: u32 = 255;
/// The maximum time to send the hangup signal to a session whose client has left.
const HANGUP_TIMEOUT: Duration = Duration::from_secs(3);

/// An order of the client to a running session.
#[derive(Debug)]
pub(super) enum Order {
    Resize(u16, u16),
    Signal(String),
}

/// The input of a channel from the client.
pub(super) struct FromClient {
    /// The bytes of the client.
    pub(super) input: Outlet,
    /// Orders to the session.
    pub(super) orders: mpsc::Receiver<Order>,
    /// Completes when the client has closed the channel.
    pub(super) closed: oneshot::Receiver<()>,
}

/// Runs a session up to its end, or until the client closes its channel.
pub(super) async fn run(host: Arc<dyn Host>, request: Request, client: FromClient, pipe: Pipe) {
    let FromClient {
        input,
        orders,
        mut closed,
    } = client;
    let has_terminal = request.terminal.is_some();
    let started = tokio::select! {
        started = host.start(request) => started,
        _ = &mut closed => return,
    };
    match started {
        Ok(started) => {
            let control = started.control;
            let streams = Streams {
                input: started.input,
                output: started.output,
                errors: started.errors,
                exit: started.exit,
            };
            let is_closed = tokio::select! {
                () = streams.copy(&*control, input, orders, &pipe) => false,
                _ = &mut closed => true,
            };
            if is_closed {
                // Like a closed terminal: processes that ignore the signal continue.
                let hangup = control.signal("HUP".to_owned());
                let _ = tokio::time::timeout(HANGUP_TIMEOUT, hangup).await;
            }
        }
        Err(problem) => fail(&problem, has_terminal, &pipe).await,
    }
    pipe.send(Note::End).await;
    pipe.send(Note::Closed).await;
}

/// Shows a message of the server, and ends the session.
async fn fail(problem: &str, has_terminal: bool, pipe: &Pipe) {
    let end = if has_terminal { "\r\n" } else { "\n" };
    let text = Bytes::from(format!("longshore: {problem}{end}"));
    pipe.send_bytes(text, Note::Errors).await;
    pipe.send(Note::Exit(FAILED)).await;
}

/// The streams of a running session, and its end.
struct Streams {
    input: BoxWrite,
    output: BoxRead,
    errors: Option<BoxRead>,
    exit: BoxFuture<'static, Exit>,
}

impl Streams {
    async fn copy(
        self,
        control: &dyn Control,
        input: Outlet,
        mut orders: mpsc::Receiver<Order>,
        pipe: &Pipe,
    ) {
        let has_terminal = self.errors.is_none();
        // Waits for both at the same time: a host may carry out orders while it waits for the exit.
        let finished = async {
            let outputs = copy_output(self.output, self.errors, pipe);
            tokio::join!(outputs, self.exit).1
        };
        let obeying = async {
            while let Some(order) = orders.recv().await {
                match order {
                    Order::Resize(columns, rows) => control.resize(columns, rows).await,
                    Order::Signal(name) => control.signal(name).await,
                }
            }
            std::future::pending::<()>().await;
        };
        let exit = tokio::select! {
            exit = finished => exit,
            () = obeying => return,
            () = copy_input(input, self.input, pipe) => return,
        };
        match exit {
            Ok(code) => {
                pipe.send(Note::Exit(u32::try_from(code).unwrap_or(FAILED)))
                    .await
            }
            Err(problem) => fail(&problem, has_terminal, pipe).await,
        }
    }
}

/// Copies the client's bytes to the session. Does not return before the session ends.
async fn copy_input(mut input: Outlet, mut to: BoxWrite, pipe: &Pipe) {
    let mut is_open = true;
    while let Some(bytes) = input.next().await {
        // A program that does not read its input does not block the client.
        is_open = is_open && to.write_all(&bytes).await.is_ok() && to.flush().await.is_ok();
        pipe.send(Note::Consumed(bytes.len())).await;
    }
    let _ = to.shutdown().await;
    drop(to);
    std::future::pending::<()>().await;
}

/// Copies the outputs to the client, in turn, because both share the window of the channel.
async fn copy_output(output: BoxRead, errors: Option<BoxRead>, pipe: &Pipe) {
    let mut outputs = [Some(output), errors];
    let mut buffers = [BytesMut::new(), BytesMut::new()];
    while outputs.iter().any(Option::is_some) {
        let [output, errors] = &mut outputs;
        let [from_output, from_errors] = &mut buffers;
        let (which, bytes) = tokio::select! {
            bytes = read(output, from_output) => (0, bytes),
            bytes = read(errors, from_errors) => (1, bytes),
        };
        match bytes {
            Some(bytes) if which == 0 => pipe.send_bytes(bytes, Note::Output).await,
            Some(bytes) => pipe.send_bytes(bytes, Note::Errors).await,
            None => outputs[which] = None,
        }
    }
}

/// The next bytes of an output; `None` at its end. Waits forever without an output.
async fn read(from: &mut Option<BoxRead>, buffer: &mut BytesMut) -> Option<Bytes> {
    let Some(from) = from else {
        return std::future::pending().await;
    };
    buffer.reserve(PIECE);
    match from.read_buf(buffer).await {
        Ok(1..) => Some(buffer.split().freeze()),
        Ok(0) | Err(_) => None,
    }
}
