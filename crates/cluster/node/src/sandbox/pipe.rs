//! The agent's ends of a container's pipes. Their system calls run on separate threads
//! ([`pipe_threads`]), because a process of the container can block them.

use std::{
    future::Future as _,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
    sync::oneshot,
    time::Sleep,
};

use super::{
    child::register,
    pipe_caller::{Asleep, Caller},
    pipe_threads,
};

/// Maximum number of bytes of one system call.
const MAX_BYTES: usize = 64 * 1024;
/// The time for which a call that reads the rest of the output of an ended process may sleep.
const REST_TIMEOUT: Duration = Duration::from_secs(2);

/// Closes pipes without waiting.
pub(super) fn close(ends: impl Send + 'static) {
    pipe_threads::submit(move || drop(ends));
}

/// An end of a pipe, which is closed on another thread.
#[derive(Debug)]
struct End {
    /// `None` only while it is dropped.
    descriptor: Option<Arc<AsyncFd<OwnedFd>>>,
    ready: PollFlags,
}

impl End {
    fn new(descriptor: OwnedFd, interest: Interest, ready: PollFlags) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        Ok(Self {
            descriptor: Some(Arc::new(register(descriptor, interest)?)),
            ready,
        })
    }

    fn get(&self) -> io::Result<&Arc<AsyncFd<OwnedFd>>> {
        self.descriptor
            .as_ref()
            .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns true if the end is ready. Does not need the pipe's lock.
    fn is_ready(descriptor: &OwnedFd, ready: PollFlags) -> io::Result<bool> {
        let mut descriptors = [PollFd::new(descriptor, ready)];
        loop {
            match poll(&mut descriptors, Some(&Timespec::default())) {
                Err(Errno::INTR) => {}
                count => return Ok(count? > 0),
            }
        }
    }

    fn is_ready_now(&self) -> io::Result<bool> {
        Self::is_ready(self.get()?.get_ref(), self.ready)
    }

    /// Waits until the end is ready.
    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let descriptor = self.get()?;
        loop {
            let mut guard = if self.ready == PollFlags::IN {
                ready!(descriptor.poll_read_ready(context))?
            } else {
                ready!(descriptor.poll_write_ready(context))?
            };
            let check = |descriptor: &AsyncFd<OwnedFd>| match Self::is_ready(
                descriptor.get_ref(),
                self.ready,
            ) {
                Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
                result => result.map(drop),
            };
            if let Ok(result) = guard.try_io(check) {
                return Poll::Ready(result);
            }
        }
    }

    /// Runs a system call on another thread.
    fn submit<T: Send + 'static>(
        &self,
        call: impl FnOnce(&OwnedFd) -> Result<T, Errno> + Send + 'static,
    ) -> io::Result<Running<T>> {
        let descriptor = self.get()?.clone();
        let (sender, result) = oneshot::channel();
        let caller = Caller::default();
        let called = caller.clone();
        pipe_threads::submit(move || {
            called.begin();
            let result = call(descriptor.get_ref());
            drop(descriptor);
            let _ = sender.send(result);
        });
        Ok(Running { result, caller })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(descriptor) = self.descriptor.take() {
            close(descriptor);
        }
    }
}

/// A system call that is running.
#[derive(Debug)]
struct Running<T> {
    result: oneshot::Receiver<Result<T, Errno>>,
    caller: Caller,
}

impl<T> Running<T> {
    /// Returns the result, or `None` if the call has to be repeated.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<T>>> {
        let result = ready!(Pin::new(&mut self.result).poll(context));
        Poll::Ready(match result {
            Ok(Ok(value)) => Ok(Some(value)),
            Ok(Err(Errno::AGAIN | Errno::INTR)) => Ok(None),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(io::Error::other("the thread of the pipe ended")),
        })
    }
}

/// The reading end of a container's output.
#[derive(Debug)]
pub(crate) struct PipeReader {
    end: End,
    running: Option<Running<Bytes>>,
    /// Output that was read, but not yet returned.
    read: Bytes,
    /// The time for the rest of the output, and the sleep state of the call at its beginning.
    timeout: Option<(Pin<Box<Sleep>>, Option<Asleep>)>,
    rest_timeout: Duration,
}

impl PipeReader {
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            end: End::new(descriptor, Interest::READABLE, PollFlags::IN)?,
            running: None,
            read: Bytes::new(),
            timeout: None,
            rest_timeout: REST_TIMEOUT,
        })
    }

    fn start(&mut self, size: usize) -> io::Result<&mut Running<Bytes>> {
        let mut buffer = Vec::with_capacity(size.clamp(1, MAX_BYTES));
        let running = self.end.submit(move |descriptor| {
            rustix::io::read(descriptor, spare_capacity(&mut buffer))?;
            Ok(buffer.into())
        })?;
        Ok(self.running.insert(running))
    }

    /// Copies available output to the buffer. Returns true if there was any.
    fn take(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let count = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read[..count]);
        self.read.advance(count);
        if self.read.is_empty() {
            self.read = Bytes::new();
        }
        count > 0
    }

    /// Reads output. With `rest`, reads only the current content of the pipe.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        rest: bool,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            if self.take(buffer) {
                return Poll::Ready(Ok(()));
            }
            let running = match &mut self.running {
                Some(running) => running,
                None if rest && !self.end.is_ready_now()? => return Poll::Ready(Ok(())),
                None => {
                    if !rest {
                        ready!(self.end.poll_ready(context))?;
                    }
                    self.start(buffer.remaining())?
                }
            };
            let result = ready!(running.poll(context));
            self.running = None;
            match result? {
                Some(bytes) if bytes.is_empty() => return Poll::Ready(Ok(())),
                Some(bytes) => self.read = bytes,
                None => {}
            }
        }
    }

    /// Reads the current content of the pipe, which may be nothing. Returns an error if a process
    /// holds the pipe's lock.
    pub(super) fn poll_rest(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(result) = self.poll(context, buffer, true) {
            self.timeout = None;
            return Poll::Ready(result);
        }
        loop {
            let (sleep, before) = self.timeout.get_or_insert_with(|| {
                let sleep = tokio::time::sleep(self.rest_timeout);
                let caller = self.running.as_ref().map(|running| &running.caller);
                (Box::pin(sleep), caller.and_then(Caller::asleep))
            });
            ready!(sleep.as_mut().poll(context));
            let before = *before;
            self.timeout = None;
            let now = self.running.as_ref().and_then(|it| it.caller.asleep());
            // On a slow machine, the call may not have begun, or other work wakes and delays it.
            if now.is_some() && now == before {
                break;
            }
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the command has ended, but another process of the container is splicing to its \
             output, so the end of the output cannot be read",
        )))
    }
}

impl AsyncRead for PipeReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll(context, buffer, false)
    }
}

/// The writing end of a container's input.
#[derive(Debug)]
pub(crate) struct PipeWriter {
    end: End,
    running: Option<Running<usize>>,
}

impl PipeWriter {
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            end: End::new(descriptor, Interest::WRITABLE, PollFlags::OUT)?,
            running: None,
        })
    }
}

impl AsyncWrite for PipeWriter {
    /// Writes a copy of the bytes. Until it has returned a result, it has to be called
    /// with the same bytes, as `write_all` and `copy` do.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            let running = if let Some(running) = &mut this.running {
                running
            } else {
                ready!(this.end.poll_ready(context))?;
                let copy = Bytes::copy_from_slice(&bytes[..bytes.len().min(MAX_BYTES)]);
                let write = move |descriptor: &OwnedFd| rustix::io::write(descriptor, &copy);
                let running = this.end.submit(write)?;
                this.running.insert(running)
            };
            let result = ready!(running.poll(context));
            this.running = None;
            if let Some(written) = result? {
                return Poll::Ready(Ok(written.min(bytes.len())));
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Closed on drop.
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write as _;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn rest(reader: &mut PipeReader) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 8];
        let mut buffer = ReadBuf::new(&mut bytes);
        std::future::poll_fn(|context| reader.poll_rest(context, &mut buffer)).await?;
        Ok(buffer.filled().to_vec())
    }

    #[tokio::test]
    async fn the_rest_is_what_the_pipe_contains_now() {
        let (near, mut far) = io::pipe().unwrap();
        let mut reader = PipeReader::new(near.into()).unwrap();
        assert_eq!(rest(&mut reader).await.unwrap(), b"");
        far.write_all(b"0123456789").unwrap();
        assert_eq!(rest(&mut reader).await.unwrap(), b"01234567");
        assert_eq!(rest(&mut reader).await.unwrap(), b"89");
        assert_eq!(rest(&mut reader).await.unwrap(), b"");
        drop(far);
        assert_eq!(rest(&mut reader).await.unwrap(), b"");
    }

    /// A read that is dropped does not lose its output.
    #[tokio::test]
    async fn cancelled_reads_lose_nothing() {
        let (near, mut far) = io::pipe().unwrap();
        let mut reader = PipeReader::new(near.into()).unwrap();
        let writing = std::thread::spawn(move || {
            for number in 0..20_000_u32 {
                far.write_all(&number.to_le_bytes()).unwrap();
            }
        });
        let (mut all, mut chunk) = (Vec::new(), [0; 1000]);
        loop {
            let count = tokio::select! {
                biased;
                count = reader.read(&mut chunk) => count.unwrap(),
                () = tokio::task::yield_now() => continue,
            };
            if count == 0 {
                break;
            }
            all.extend_from_slice(&chunk[..count]);
        }
        writing.join().unwrap();
        let expected: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        assert!(all == expected, "{} of {} bytes", all.len(), expected.len());
    }

    /// The call waits for a thread, or its thread waits for a processor.
    #[tokio::test]
    async fn the_rest_is_read_however_slow_the_machine_is() {
        for has_begun in [false, true] {
            let (near, _far) = io::pipe().unwrap();
            let mut reader = PipeReader::new(near.into()).unwrap();
            let (sender, result) = oneshot::channel();
            let caller = Caller::default();
            if has_begun {
                caller.begin();
            }
            reader.running = Some(Running { result, caller });
            reader.rest_timeout = Duration::from_millis(1);
            let many_times = Duration::from_millis(500);
            let waited = tokio::time::timeout(many_times, rest(&mut reader)).await;
            assert!(waited.is_err(), "{waited:?}");
            sender.send(Ok(Bytes::from_static(b"late"))).unwrap();
            assert_eq!(rest(&mut reader).await.unwrap(), b"late");
        }
    }

    #[tokio::test]
    async fn the_rest_of_a_held_pipe_is_reported_as_lost() {
        let script = "import os, socket, threading, time; a, b = socket.socketpair(); \
            os.write(1, b'lost'); \
            threading.Thread(target=os.splice, args=(a.fileno(), 1, 9), daemon=True).start(); \
            time.sleep(0.5); os.write(2, b'holds'); time.sleep(20)";
        let (near, far) = io::pipe().unwrap();
        let (mut holds, errors) = io::pipe().unwrap();
        let mut child = std::process::Command::new("python3")
            .args(["-c", script])
            .stdout(far)
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut reader = PipeReader::new(near.into()).unwrap();
        io::Read::read_exact(&mut holds, &mut [0; 5]).unwrap();
        let error = rest(&mut reader).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(rest(&mut reader).await.unwrap(), b"lost");
    }
}
