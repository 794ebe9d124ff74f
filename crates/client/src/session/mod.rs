//! Sessions with containers: commands run in them, their own input and output,
//! their pods' ports.

mod forward;
mod open;
mod pump;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use http::Method;
use longshore_model::Status;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf},
    sync::{mpsc, oneshot},
};
use tokio_util::task::AbortOnDropHandle;

pub use forward::{PortForward, PortStream};

use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    transport::Call,
    view::View,
};

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
/// Output that nobody reads holds the command up: take it and read it, or
/// [`Session::wait`], which throws away what was not taken.
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
/// input; a server that speaks only the protocol of before Kubernetes 1.30 is not
/// told of that.
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

    /// Tells the size of the terminal. Without a terminal it changes nothing.
    ///
    /// # Errors
    /// [`Error::Closed`] when the session has ended.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let frame = pump::Frame::Size { columns, rows };
        self.frames.send(frame).await.map_err(|_| Error::Closed)
    }

    /// Waits for the end; the exit code. Of an attached container it is 0 when
    /// the session ended as it should. Output that was not taken is thrown away.
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

/// The exit code that a session's last word tells.
fn code(request: String, status: Status) -> Result<i32> {
    if status.status == "Success" {
        return Ok(0);
    }
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let told = causes
        .filter(|cause| cause.reason == "ExitCode")
        .find_map(|cause| cause.message.parse().ok());
    match told {
        Some(code) if status.reason.as_str() == "NonZeroExitCode" => Ok(code),
        _ => Err(Error::from_status(request, status)),
    }
}

impl View<Pod> {
    /// Runs a command in a container of a pod. The view must have a namespace.
    ///
    /// # Errors
    /// As the server refuses: no such pod or container, or it does not run.
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
    /// use longshore_client::ExecOptions;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// let options = ExecOptions { stdin: true, ..ExecOptions::default() };
    /// let mut session = pods.exec("web", ["tr", "a-z", "A-Z"], &options).await?;
    /// let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    /// input.write_all(b"hello").await?;
    /// input.shutdown().await?;
    /// let mut text = String::new();
    /// output.read_to_string(&mut text).await?;
    /// assert_eq!((text.as_str(), session.wait().await?), ("HELLO", 0));
    /// # Ok(()) });
    /// ```
    pub async fn exec<C>(
        &self,
        name: &str,
        command: impl IntoIterator<Item = C>,
        options: &ExecOptions,
    ) -> Result<Session>
    where
        C: Into<String>,
    {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        if command.is_empty() {
            return Err(Error::Invalid(
                "a command is needed: its program and arguments".to_owned(),
            ));
        }
        let words = command.into_iter().map(|word| ("command".to_owned(), word));
        let call = self.session_call(name, "exec", options)?.queries(words);
        Session::open(&self.cluster().transport, &call, options).await
    }

    /// Takes the input and output of a container's own program, from now on. A
    /// container has input only when its spec says `stdin: true`.
    ///
    /// # Errors
    /// As [`View::exec`].
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("while sleep 0.05; do echo tick; done", async |pods| {
    /// use longshore_client::ExecOptions;
    /// use tokio::io::AsyncReadExt;
    ///
    /// let mut session = pods.attach("web", &ExecOptions::default()).await?;
    /// let mut line = [0; 5];
    /// session.stdout().unwrap().read_exact(&mut line).await?;
    /// assert_eq!(&line, b"tick\n");
    /// # Ok(()) });
    /// ```
    pub async fn attach(&self, name: &str, options: &ExecOptions) -> Result<Session> {
        let call = self.session_call(name, "attach", options)?;
        Session::open(&self.cluster().transport, &call, options).await
    }

    /// Runs a command in a container of a pod to its end.
    ///
    /// # Errors
    /// As [`View::exec`]; a code other than 0 is none.
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
    /// let output = pods.output("web", ["hostname"], None).await?;
    /// assert_eq!((output.code, &output.stdout[..]), (0, &b"web\n"[..]));
    /// # Ok(()) });
    /// ```
    pub async fn output<C>(
        &self,
        name: &str,
        command: impl IntoIterator<Item = C>,
        container: Option<&str>,
    ) -> Result<Output>
    where
        C: Into<String>,
    {
        let options = ExecOptions {
            container: container.map(str::to_owned),
            ..ExecOptions::default()
        };
        let mut session = self.exec(name, command, &options).await?;
        let (stdout, stderr) = (session.stdout(), session.stderr());
        let (stdout, stderr, code) = tokio::join!(all(stdout), all(stderr), session.wait_for_end());
        Ok(Output {
            code: code?,
            stdout,
            stderr,
        })
    }

    fn session_call(&self, name: &str, what: &str, options: &ExecOptions) -> Result<Call> {
        let path = format!("{}/{what}", self.object_path(name)?);
        let mut call = Call::new(Method::GET, path);
        if let Some(container) = &options.container {
            call = call.with("container", container.as_str());
        }
        for (name, wanted) in [
            ("stdin", options.stdin),
            ("stdout", true),
            ("stderr", !options.tty),
            ("tty", options.tty),
        ] {
            call = call.with(name, wanted.to_string());
        }
        Ok(call)
    }
}

impl Item<Pod> {
    /// As [`View::exec`], in this pod.
    ///
    /// # Errors
    /// As [`View::exec`].
    pub async fn exec<C>(
        &self,
        command: impl IntoIterator<Item = C>,
        options: &ExecOptions,
    ) -> Result<Session>
    where
        C: Into<String>,
    {
        self.view().exec(self.name(), command, options).await
    }

    /// As [`View::attach`], to this pod.
    ///
    /// # Errors
    /// As [`View::exec`].
    pub async fn attach(&self, options: &ExecOptions) -> Result<Session> {
        self.view().attach(self.name(), options).await
    }

    /// As [`View::output`], in this pod.
    ///
    /// # Errors
    /// As [`View::exec`].
    pub async fn output<C>(
        &self,
        command: impl IntoIterator<Item = C>,
        container: Option<&str>,
    ) -> Result<Output>
    where
        C: Into<String>,
    {
        self.view().output(self.name(), command, container).await
    }
}

/// All that comes; what is broken off is told by the session's end.
async fn all(reader: Option<Reader>) -> Vec<u8> {
    let mut whole = Vec::new();
    if let Some(mut reader) = reader {
        let _ = reader.read_to_end(&mut whole).await;
    }
    whole
}
