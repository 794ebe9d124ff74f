//! The agent's ends of a process's streams: pipes or a terminal.

use std::{
    fs::File,
    io::{self, IoSlice},
    os::fd::OwnedFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustix::{
    fs::OFlags,
    io::Errno,
    pty::OpenptFlags,
    termios::{Winsize, tcsetwinsize},
};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

use super::{
    child::register,
    pipe::{PipeReader, PipeWriter},
};

/// The stream that a process wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Errors,
}

/// The streams that a process gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wiring {
    /// Pipes; streams that are not requested are connected to /dev/null.
    Pipes {
        /// Standard input.
        input: bool,
        /// Standard output.
        output: bool,
        /// Standard error.
        errors: bool,
    },
    /// A terminal for all three.
    Terminal,
}

impl Default for Wiring {
    /// Returns the default of a container: standard output and standard error.
    fn default() -> Self {
        Self::Pipes {
            input: false,
            output: true,
            errors: true,
        }
    }
}

/// The agent's ends of the streams.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) input: Option<Input>,
    pub(crate) output: Option<Output>,
    pub(crate) errors: Option<Output>,
    pub(crate) terminal: Option<Terminal>,
}

impl Wiring {
    /// Creates the streams: the agent's ends, and the process's ends (standard input, output,
    /// error). A terminal belongs to `user`.
    pub(super) fn open(self, user: Option<u32>) -> io::Result<(Ends, [OwnedFd; 3])> {
        let Self::Pipes {
            input,
            output,
            errors,
        } = self
        else {
            return terminal(user);
        };
        let mut ends = Ends::default();
        let nothing = |write: bool| File::options().read(!write).write(write).open("/dev/null");
        let first = if input {
            let (end, far) = io::pipe()?;
            ends.input = Some(Input::Pipe(PipeWriter::new(far.into())?));
            end.into()
        } else {
            nothing(false)?.into()
        };
        let out = |wanted: bool| -> io::Result<(Option<Output>, OwnedFd)> {
            if !wanted {
                return Ok((None, nothing(true)?.into()));
            }
            let (near, end) = io::pipe()?;
            Ok((Some(Output::pipe(near.into())?), end.into()))
        };
        let (near, second) = out(output)?;
        ends.output = near;
        let (near, third) = out(errors)?;
        ends.errors = near;
        Ok((ends, [first, second, third]))
    }
}

fn terminal(user: Option<u32>) -> io::Result<(Ends, [OwnedFd; 3])> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = rustix::pty::openpt(flags).map_err(|error| match error {
        Errno::NOSPC => io::Error::other(
            "the machine has no more terminals (kernel.pty.max): end programs that use them",
        ),
        error => error.into(),
    })?;
    rustix::pty::unlockpt(&near)?;
    let far = rustix::pty::ioctl_tiocgptpeer(&near, flags)?;
    if let Some(user) = user {
        let user = rustix::process::Uid::from_raw(user);
        rustix::fs::fchown(&far, Some(user), None)?;
    }
    let status = rustix::fs::fcntl_getfl(&near)?;
    rustix::fs::fcntl_setfl(&near, status | OFlags::NONBLOCK)?;
    let both = Interest::READABLE | Interest::WRITABLE;
    let near = Terminal(Arc::new(register(near, both)?));
    let ends = Ends {
        input: Some(Input::Terminal(near.clone())),
        output: Some(Output::Terminal(near.clone())),
        errors: None,
        terminal: Some(near),
    };
    Ok((ends, [far.try_clone()?, far.try_clone()?, far]))
}

/// The controlling end of a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// Sets the size. The terminal's programs are notified.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // Fails harmlessly if the terminal is no longer open.
        let _ = tcsetwinsize(self.0.get_ref(), size);
    }

    /// Reads available output. Returns `Err(AGAIN)` if nothing is available, and 0 at the end.
    /// Programs can block the other end of a pipe, but not the controlling end of their terminal.
    fn read_now(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match rustix::io::read(self.0.get_ref(), &mut *buffer) {
                Err(Errno::INTR) => {}
                // No process has the terminal open any more.
                Err(Errno::IO) => return Ok(0),
                result => return result,
            }
        }
    }
}

/// The input of a process.
#[derive(Debug)]
pub(crate) enum Input {
    Pipe(PipeWriter),
    Terminal(Terminal),
}

impl AsyncWrite for Input {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let terminal = match self.get_mut() {
            Self::Pipe(pipe) => return Pin::new(pipe).poll_write(context, bytes),
            Self::Terminal(terminal) => terminal,
        };
        loop {
            let mut guard = ready!(terminal.0.poll_write_ready(context))?;
            let write = |fd: &AsyncFd<OwnedFd>| Ok(rustix::io::write(fd.get_ref(), bytes)?);
            if let Ok(written) = guard.try_io(write) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty());
        self.poll_write(context, first.map_or(&[][..], |part| part))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Closed on drop.
        Poll::Ready(Ok(()))
    }
}

/// The output of a process.
#[derive(Debug)]
pub(crate) enum Output {
    Pipe(PipeReader),
    Terminal(Terminal),
}

impl Output {
    /// The output that the reading end of a pipe returns.
    pub(crate) fn pipe(end: OwnedFd) -> io::Result<Self> {
        PipeReader::new(end).map(Self::Pipe)
    }

    /// Reads available output, or nothing if none is available or at the end. Queries the kernel
    /// directly, because tokio reports no data until its reactor has noticed it. Returns an error
    /// if a process that still has the output prevents this.
    pub(crate) fn poll_rest(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let terminal = match self {
            Self::Pipe(pipe) => return pipe.poll_rest(context, buffer),
            Self::Terminal(terminal) => terminal,
        };
        match terminal.read_now(buffer.initialize_unfilled()) {
            Ok(count) => buffer.advance(count),
            Err(Errno::AGAIN) => {}
            Err(error) => return Poll::Ready(Err(error.into())),
        }
        Poll::Ready(Ok(()))
    }

    /// Asynchronous form of [`Self::poll_rest`].
    pub(crate) async fn rest(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        std::future::poll_fn(|context| self.poll_rest(context, &mut buffer)).await?;
        Ok(buffer.filled().len())
    }
}

impl AsyncRead for Output {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let terminal = match self.get_mut() {
            Self::Pipe(pipe) => return Pin::new(pipe).poll_read(context, buffer),
            Self::Terminal(terminal) => terminal,
        };
        loop {
            let mut guard = ready!(terminal.0.poll_read_ready(context))?;
            let unfilled = buffer.initialize_unfilled();
            if let Ok(read) = guard.try_io(|_| Ok(terminal.read_now(unfilled)?)) {
                buffer.advance(read?);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn unrequested_streams_are_absent() {
        let wiring = Wiring::Pipes {
            input: true,
            output: false,
            errors: true,
        };
        let (ends, far) = wiring.open(None).unwrap();
        assert!(ends.input.is_some() && ends.output.is_none() && ends.errors.is_some());
        assert_eq!(rustix::io::write(&far[1], b"to nowhere").unwrap(), 10);
        let mut input = ends.input.unwrap();
        input.write_all(b"in").await.unwrap();
        drop(input);
        let mut text = [0; 8];
        assert_eq!(rustix::io::read(&far[0], &mut text).unwrap(), 2);
        assert_eq!(rustix::io::read(&far[0], &mut text).unwrap(), 0);
    }

    #[tokio::test]
    async fn a_terminal_echoes_and_ends_with_its_last_process() {
        let (ends, far) = Wiring::Terminal.open(None).unwrap();
        let (mut input, mut output) = (ends.input.unwrap(), ends.output.unwrap());
        ends.terminal.unwrap().resize(101, 7);
        let size = rustix::termios::tcgetwinsize(&far[0]).unwrap();
        assert_eq!((size.ws_col, size.ws_row), (101, 7));
        input.write_all(b"hello\n").await.unwrap();
        let mut text = [0; 7];
        output.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"hello\r\n");
        drop(far);
        assert_eq!(output.read(&mut text).await.unwrap(), 0);
    }

    /// Holds the locks of standard input and output for some seconds, by splices from a socket that
    /// sends nothing, and to a socket that nothing reads.
    const SPLICES: &str = r#"
import os, socket, threading, time
ours, theirs = socket.socketpair()
full, unread = socket.socketpair()
full.setblocking(False)
try:
    while True:
        full.send(b"x" * 4096)
except BlockingIOError:
    full.setblocking(True)
os.write(1, b"before\n")
os.read(0, 1)
threading.Thread(target=os.splice, args=(ours.fileno(), 1, 100), daemon=True).start()
threading.Thread(target=os.splice, args=(0, full.fileno(), 100), daemon=True).start()
time.sleep(0.5)
os.write(2, b"holds")
time.sleep(4)
"#;

    #[tokio::test]
    async fn a_process_that_holds_its_pipes_does_not_block_the_runtime() {
        let wiring = Wiring::Pipes {
            input: true,
            output: true,
            errors: true,
        };
        let (ends, [first, second, third]) = wiring.open(None).unwrap();
        let mut child = std::process::Command::new("python3")
            .args(["-c", SPLICES])
            .stdin(first)
            .stdout(second)
            .stderr(third)
            .spawn()
            .unwrap();
        let (mut input, mut output) = (ends.input.unwrap(), ends.output.unwrap());
        input.write_all(b"1234").await.unwrap();
        let mut text = [0; 7];
        ends.errors
            .unwrap()
            .read_exact(&mut text[..5])
            .await
            .unwrap();
        assert_eq!(&text[..5], b"holds");

        let start = std::time::Instant::now();
        let moment = std::time::Duration::from_millis(100);
        let write = tokio::time::timeout(moment, input.write_all(b"5"));
        let read = tokio::time::timeout(moment, output.read_exact(&mut text));
        let (write, read) = tokio::join!(write, read);
        assert!(write.is_err() && read.is_err(), "the pipes are not held");
        drop(input);
        let elapsed = start.elapsed();
        assert!(elapsed.as_secs() < 2, "blocked for {elapsed:?}");

        // Nothing is lost.
        child.kill().unwrap();
        output.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"before\n");
        assert_eq!(output.read(&mut text).await.unwrap(), 0);
        child.wait().unwrap();
    }
}
