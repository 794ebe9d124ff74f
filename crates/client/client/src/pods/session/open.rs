//! Opens sessions: a WebSocket connection and the tasks that transfer its data.

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{ExecOptions, Input, Reader, Session, code, pump};
use crate::{
    error::{Error, Result},
    transport::{Call, Transport},
};

/// The size of each stream's buffer, in bytes.
const BUFFER: usize = 64 * 1024;
/// The maximum number of frames in the queue of the sender.
const QUEUED_FRAMES: usize = 8;

impl Session {
    pub(super) async fn open(
        transport: &Transport,
        call: &Call,
        options: &ExecOptions,
    ) -> Result<Self> {
        let connection = transport.upgrade(call).await?;
        let ends_input = connection.supports_stream_close();
        let (sink, stream) = connection.into_stream().split();
        let (frames, queued) = mpsc::channel(QUEUED_FRAMES);
        let (end, ended) = oneshot::channel();
        let (input, stdin) = if options.stdin {
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
        if let Some(stdin) = stdin {
            tasks.push(tokio::spawn(pump::input(stdin, frames.clone(), ends_input)));
        }
        Ok(Self {
            input,
            stdout: Some(Reader(stdout)),
            stderr: (!options.tty).then_some(Reader(stderr)),
            frames,
            ended,
            ends_input,
            request: call.name(),
            _tasks: tasks.into_iter().map(AbortOnDropHandle::new).collect(),
        })
    }

    /// Returns true if the protocol can signal the end of the input.
    pub(crate) fn ends_input(&self) -> bool {
        self.ends_input
    }

    /// Like [`Session::wait`], for callers that read the outputs or change the size of the terminal
    /// meanwhile. Can be called again if the future was dropped before its end.
    ///
    /// # Errors
    /// The same as [`Session::wait`].
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
    /// use longshore_client::ExecOptions;
    /// use tokio::io::AsyncReadExt;
    ///
    /// let mut session = pods.exec("web", ["hostname"], &ExecOptions::default()).await?;
    /// let (mut output, mut text) = (session.stdout().unwrap(), String::new());
    /// let (read, code) = tokio::join!(output.read_to_string(&mut text), session.wait_for_end());
    /// assert_eq!((read?, text.as_str(), code?), (4, "web\n", 0));
    /// # Ok(()) });
    /// ```
    pub async fn wait_for_end(&mut self) -> Result<i32> {
        let ended = (&mut self.ended).await;
        let status = ended.unwrap_or(Err(Error::Closed))?;
        code(self.request.clone(), status)
    }
}
