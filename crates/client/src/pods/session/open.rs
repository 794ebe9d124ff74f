//! Opens a session: a websocket and the tasks that move its bytes.

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{ExecOptions, Input, Reader, Session, code, pump};
use crate::{
    error::{Error, Result},
    transport::{Call, Transport},
};

/// Bytes of each stream that wait for whoever is slower.
const BUFFER: usize = 64 * 1024;
/// Frames that wait to be sent.
const FRAMES: usize = 8;

impl Session {
    pub(super) async fn open(
        transport: &Transport,
        call: &Call,
        options: &ExecOptions,
    ) -> Result<Self> {
        let connection = transport.upgrade(call).await?;
        let closes = connection.supports_stream_close();
        let (sink, stream) = connection.into_stream().split();
        let (frames, queued) = mpsc::channel(FRAMES);
        let (end, ended) = oneshot::channel();
        let (input, typed) = if options.stdin {
            let (read, write) = tokio::io::duplex(BUFFER);
            (Some(Input(write)), Some(read))
        } else {
            (None, None)
        };
        let (stdout, out) = tokio::io::duplex(BUFFER);
        let (stderr, err) = tokio::io::duplex(BUFFER);
        let url = transport.url().to_owned();
        let mut tasks = vec![
            tokio::spawn(pump::send(sink, queued)),
            tokio::spawn(pump::receive(stream, [out, err], end, url)),
        ];
        if let Some(typed) = typed {
            tasks.push(tokio::spawn(pump::input(typed, frames.clone(), closes)));
        }
        Ok(Self {
            input,
            stdout: Some(Reader(stdout)),
            stderr: (!options.tty).then_some(Reader(stderr)),
            frames,
            ended,
            ends_input: closes,
            request: call.name(),
            _tasks: tasks.into_iter().map(AbortOnDropHandle::new).collect(),
        })
    }

    /// Whether the protocol has a message for the end of the input.
    pub(crate) fn ends_input(&self) -> bool {
        self.ends_input
    }

    /// As [`Session::wait`], while the outputs are read elsewhere.
    pub(crate) async fn wait_for_end(&mut self) -> Result<i32> {
        let ended = (&mut self.ended).await;
        let status = ended.unwrap_or(Err(Error::Closed))?;
        code(self.request.clone(), status)
    }
}
