//! Sessions with containers: exec and attach.

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

/// Options of [`View::exec`](crate::View::exec) and [`View::attach`](crate::View::attach).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The container. Required if the pod has several containers and no default container.
    pub container: Option<String>,
    /// Sends input to the command.
    pub stdin: bool,
    /// Allocates a terminal. All output is then standard output.
    pub tty: bool,
}

/// The output and the exit code of a command in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code; 128 plus the signal's number if a signal ended the command.
    pub code: i32,
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error.
    pub stderr: Vec<u8>,
}

/// A session with a container, from exec or attach. Dropping it closes the connection. Input
/// that was already sent is delivered, and the command continues to run, as in Kubernetes.
///
/// The command blocks if its output is not read. Take the outputs and read them, or call
/// [`Session::wait`], which discards the outputs that were not taken.
///
/// ```
/// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
/// use longshore_client::ExecOptions;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let options = ExecOptions { stdin: true, tty: true, ..ExecOptions::default() };
/// let mut shell = pods.exec("web", ["sh"], &options).await?;
/// shell.resize(100, 40).await?;
/// // With a terminal, all output is standard output.
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
    /// True if the protocol can signal the end of the input.
    ends_input: bool,
    /// The name of the request in errors.
    request: String,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// The standard input of a [`Session`]. Shutting it down or dropping it ends the input. Servers
/// before Kubernetes 1.30 do not recognize the end of the input.
#[derive(Debug)]
pub struct Input(DuplexStream);

/// The standard output or the standard error of a [`Session`].
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
    /// Takes the standard input. `None` if it was taken before, or without
    /// [`ExecOptions::stdin`].
    pub fn stdin(&mut self) -> Option<Input> {
        self.input.take()
    }

    /// Takes the standard output. `None` if it was taken before.
    pub fn stdout(&mut self) -> Option<Reader> {
        self.stdout.take()
    }

    /// Takes the standard error. `None` if it was taken before, or with a terminal.
    pub fn stderr(&mut self) -> Option<Reader> {
        self.stderr.take()
    }

    /// Sets the size of the terminal. Does nothing without a terminal.
    ///
    /// # Errors
    /// [`Error::Closed`] if the session has ended.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let frame = pump::Frame::Size { columns, rows };
        self.frames.send(frame).await.map_err(|_| Error::Closed)
    }

    /// Waits for the end of the session and returns the exit code. After attach, 0 means that
    /// the session ended without an error. Discards the outputs that were not taken.
    ///
    /// # Errors
    /// [`Error::Api`] if the command could not be run, [`Error::Unreachable`] if the
    /// connection is lost.
    pub async fn wait(mut self) -> Result<i32> {
        self.input = None;
        self.stdout = None;
        self.stderr = None;
        let status = self.ended.await.unwrap_or(Err(Error::Closed))?;
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

/// Returns the exit code in the final status of a session.
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
