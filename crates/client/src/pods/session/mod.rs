//! Sessions with containers: commands run in them, and their own input and output.

mod exec;
mod open;
mod pump;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use longshore_model::Status;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf},
    sync::{mpsc, oneshot},
};
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Error, Result};

/// How a command is run in a container, or its own input and output taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The container; needed when the pod has several and names no default.
    pub container: Option<String>,
    /// Whether input is sent.
    pub stdin: bool,
    /// Whether there is a terminal: then all output comes as standard output.
    pub tty: bool,
}

/// What a command in a container has written, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; 128 and more when a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// A command that runs in a container, or a container that one is attached to.
/// Dropping it ends the connection; what was sent is delivered, and the command
/// goes on, as in Kubernetes.
///
/// Output that is not read blocks the command: take it and read it, or call
/// [`Session::wait`], which discards what was not taken.
///
/// ```
/// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
/// use longshore_client::ExecOptions;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let options = ExecOptions { stdin: true, tty: true, ..ExecOptions::default() };
/// let mut shell = pods.exec("web", ["sh"], &options).await?;
/// shell.resize(100, 40).await?;
/// // With a terminal, all output comes as standard output.
/// assert!(shell.stderr().is_none());
/// let (mut keys, mut screen) = (shell.stdin().unwrap(), shell.stdout().unwrap());
/// keys.write_all(b"stty -echo; echo $((6 * 7)); exit 3\n").await?;
/// let mut seen = String::new();
/// screen.read_to_string(&mut seen).await?;
/// assert!(seen.contains("42"));
/// assert_eq!(shell.wait().await?, 3);
/// # Ok(()) });
/// ```
pub struct Session {
    input: Option<Input>,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
    frames: mpsc::Sender<pump::Frame>,
    ended: oneshot::Receiver<Result<Status>>,
    ends_input: bool,
    request: String,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// The input of a [`Session`]. Shutting it down or dropping it is the end of the
/// input; with the protocol of before Kubernetes 1.30, the server does not see
/// that.
#[derive(Debug)]
pub struct Input(DuplexStream);

/// An output of a [`Session`].
#[derive(Debug)]
pub struct Reader(DuplexStream);

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl Session {
    /// The input, once; `None` when none was asked for.
    pub fn stdin(&mut self) -> Option<Input> {
        self.input.take()
    }

    /// The standard output, once.
    pub fn stdout(&mut self) -> Option<Reader> {
        self.stdout.take()
    }

    /// The standard error, once; `None` with a terminal.
    pub fn stderr(&mut self) -> Option<Reader> {
        self.stderr.take()
    }

    /// Sets the size of the terminal. Without a terminal it changes nothing.
    ///
    /// # Errors
    /// [`Error::Closed`] when the session has ended.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let frame = pump::Frame::Size { columns, rows };
        self.frames.send(frame).await.map_err(|_| Error::Closed)
    }

    /// Waits for the end; the exit code. Of an attached container it is 0 when
    /// the session ended as it should. Output that was not taken is discarded.
    ///
    /// # Errors
    /// [`Error::Api`] when the command could not be run, [`Error::Unreachable`]
    /// when the connection broke.
    pub async fn wait(mut self) -> Result<i32> {
        self.input = None;
        self.stdout = None;
        self.stderr = None;
        let broken = || Err(Error::Closed);
        let status = self.ended.await.unwrap_or_else(|_| broken())?;
        code(self.request, status)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// The exit code of a session's final status.
fn code(request: String, status: Status) -> Result<i32> {
    if status.status == "Success" {
        return Ok(0);
    }
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let exit_code = causes
        .filter(|cause| cause.reason == "ExitCode")
        .find_map(|cause| cause.message.parse().ok());
    match exit_code {
        Some(code) if status.reason.as_str() == "NonZeroExitCode" => Ok(code),
        _ => Err(Error::from_status(request, status)),
    }
}
