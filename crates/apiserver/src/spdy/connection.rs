//! A connection: one task reads and hands out, one writes. What waits for a
//! slow reader is bounded on both ways: a stream that nobody reads makes the
//! whole connection wait, as there is no flow control.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, interval_at, timeout},
};

use super::{
    Headers, ProtocolError,
    frame::{BROKEN, Control, Frame, GO_AWAY_BROKEN, GO_AWAY_OK, HEAD, Head, REFUSED},
    headers::{Packer, Unpacker},
};
use crate::limits;

/// Frames that may wait to be written, and chunks that may wait for the reader
/// of a stream.
const WAITING: usize = 8;

/// A chunk that waits for its reader, and the room it takes.
struct Chunk {
    bytes: BytesMut,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A connection; dropping it ends it.
pub(crate) struct Connection {
    opened: mpsc::Receiver<Stream>,
    frames: mpsc::Sender<Frame>,
    gone: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

/// A stream that the client has opened.
pub(crate) struct Stream {
    /// What it is for.
    pub(crate) headers: Headers,
    /// What comes, until its end.
    pub(crate) chunks: mpsc::Receiver<Bytes>,
    /// What goes.
    pub(crate) writer: Writer,
    /// Told when the client breaks the stream off.
    pub(crate) reset: oneshot::Receiver<()>,
}

impl Stream {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The way back on a stream.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    stream: u32,
    frames: mpsc::Sender<Frame>,
}

impl Writer {
    /// Sends bytes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn send(&self, bytes: Bytes) -> io::Result<()> {
        self.data(bytes, false).await
    }

    /// Says that nothing more comes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn finish(&self) -> io::Result<()> {
        self.data(Bytes::new(), true).await
    }

    async fn data(&self, bytes: Bytes, last: bool) -> io::Result<()> {
        let stream = self.stream;
        let frame = Frame::Data {
            stream,
            bytes,
            last,
        };
        let sent = self.frames.send(frame).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Connection {
    /// Speaks SPDY over a connection that has just been upgraded.
    pub(crate) fn new(io: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (read, write) = tokio::io::split(io);
        let (frames, outgoing) = mpsc::channel(WAITING);
        let (opens, opened) = mpsc::channel(WAITING);
        let (tell, gone) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let reader = Reader {
            read,
            unpacker: Unpacker::new(),
            streams: HashMap::new(),
            last: 0,
            opens,
            frames: frames.clone(),
            unread: Arc::new(Semaphore::new(limits::SPDY_UNREAD)),
        };
        let tell = Arc::new(tell);
        tasks.spawn({
            let tell = tell.clone();
            async move {
                let mut reader = reader;
                if let Err(error) = reader.run().await {
                    tracing::debug!(%error, "a SPDY connection ended");
                    if error.kind() == io::ErrorKind::InvalidData {
                        // The client is told before the connection is closed.
                        let _ = timeout(limits::DRAIN, reader.refuse()).await;
                    }
                }
                tell.send_replace(true);
            }
        });
        tasks.spawn(async move {
            // The reader may be waiting for others: it is the pings that tell
            // that nobody is there any more.
            if let Err(error) = write_frames(write, outgoing).await {
                tracing::debug!(%error, "a SPDY connection ended");
                tell.send_replace(true);
            }
        });
        Self {
            opened,
            frames,
            gone,
            tasks,
        }
    }

    /// The next stream that the client opens; `None` at the end.
    pub(crate) async fn accept(&mut self) -> Option<Stream> {
        self.opened.recv().await
    }

    /// Done when the client has gone.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Lets what was sent arrive: waits until the client, which has heard that
    /// all streams are over, hangs up. One that is told to go drops what it has
    /// not read yet.
    pub(crate) async fn linger(mut self, most: Duration) {
        let hung_up = self.gone();
        let ignored = async { while self.opened.recv().await.is_some() {} };
        let both = async { tokio::join!(hung_up, ignored) };
        if timeout(most, both).await.is_err() {
            let bye = Frame::GoAway {
                last_stream: 0,
                status: GO_AWAY_OK,
            };
            let _ = self.frames.send(bye).await;
        }
        // The last sender's end ends the writer.
        let Self {
            frames, mut tasks, ..
        } = self;
        drop(frames);
        let ended = async { while tasks.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_secs(1), ended).await;
    }
}

/// Who reads a stream.
struct Reading {
    /// `None` when it has ended or nobody reads it.
    chunks: Option<mpsc::Sender<Bytes>>,
    /// `None` when it was broken off.
    reset: Option<oneshot::Sender<()>>,
}

impl Reading {
    /// Whether anybody still has the stream.
    fn is_held(&self) -> bool {
        let reads = self.chunks.as_ref().is_some_and(|one| !one.is_closed());
        reads || self.reset.as_ref().is_some_and(|one| !one.is_closed())
    }
}

/// The headers that mean something here, each once. They are kept as long as
/// the stream, so `None` when they are too long.
fn meant(headers: Headers) -> Option<Headers> {
    const MEANT: [&str; 3] = ["streamtype", "port", "requestid"];
    let mut headers = headers;
    let found = MEANT.iter().filter_map(|name| {
        let at = headers.iter().position(|(other, _)| other == name)?;
        Some(headers.swap_remove(at))
    });
    let found: Headers = found.collect();
    let fits = |(_, value): &(String, String)| value.len() <= limits::SPDY_HEADER;
    found.iter().all(fits).then_some(found)
}

struct Reader<R> {
    read: R,
    unpacker: Unpacker,
    streams: HashMap<u32, Reading>,
    /// The stream opened last.
    last: u32,
    opens: mpsc::Sender<Stream>,
    frames: mpsc::Sender<Frame>,
    /// Room for what waits to be read, in bytes.
    unread: Arc<Semaphore>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(&mut self) -> io::Result<()> {
        let broken = |error: ProtocolError| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            let mut head = [0; HEAD];
            match self.read.read_exact(&mut head).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                result => result?,
            };
            match Head::read(head).map_err(broken)? {
                Head::Data {
                    stream,
                    length,
                    last,
                } => self.data(stream, length, last).await?,
                Head::Control {
                    kind,
                    flags,
                    length,
                } => {
                    let mut body = vec![0; length];
                    self.read.read_exact(&mut body).await?;
                    let control = Control::read(kind, flags, &body, &mut self.unpacker);
                    if !self.control(control.map_err(broken)?).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Tells a client that it broke the protocol, and reads what it still
    /// sends: a connection that is closed before is reset, and the client may
    /// not see why.
    async fn refuse(&mut self) {
        let bye = Frame::GoAway {
            last_stream: self.last,
            status: GO_AWAY_BROKEN,
        };
        self.streams.clear();
        let mut dropped = vec![0; limits::STREAM_CHUNK];
        if self.frames.send(bye).await.is_ok() {
            while let Ok(1..) = self.read.read(&mut dropped).await {}
        }
    }

    /// Hands data on in pieces of a bounded size, however long the frame.
    async fn data(&mut self, stream: u32, length: usize, last: bool) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let size = left.min(limits::STREAM_CHUNK);
            let room = u32::try_from(size).map_err(io::Error::other)?;
            let room = self.unread.clone().acquire_many_owned(room).await;
            let mut bytes = BytesMut::zeroed(size);
            self.read.read_exact(&mut bytes).await?;
            left -= size;
            let chunk = Bytes::from_owner(Chunk {
                bytes,
                _room: room.map_err(io::Error::other)?,
            });
            // What nobody reads is dropped, as are bytes for no stream.
            if let Some(reading) = self.streams.get_mut(&stream)
                && let Some(chunks) = &reading.chunks
                && chunks.send(chunk).await.is_err()
            {
                reading.chunks = None;
            }
        }
        if last && let Some(reading) = self.streams.get_mut(&stream) {
            reading.chunks = None;
        }
        Ok(())
    }

    /// Whether the connection goes on.
    async fn control(&mut self, control: Control) -> bool {
        let answer = match control {
            Control::Open {
                stream,
                headers,
                last,
            } => return self.open(stream, headers, last).await,
            Control::Reset { stream } => {
                if let Some(reading) = self.streams.get_mut(&stream) {
                    reading.chunks = None;
                    // Who has let go of the stream need not hear.
                    let _ = reading.reset.take().map(|reset| reset.send(()));
                }
                return true;
            }
            // Even numbers are answers to our own.
            Control::Ping { id } if id % 2 == 1 => Frame::Ping { id },
            Control::GoAway => return false,
            Control::Ping { .. } | Control::Other => return true,
        };
        self.frames.send(answer).await.is_ok()
    }

    async fn open(&mut self, stream: u32, headers: Headers, last: bool) -> bool {
        let reset = |code| Frame::Reset { stream, code };
        // Clients count up, in odd numbers.
        if stream.is_multiple_of(2) || stream <= self.last {
            return self.frames.send(reset(BROKEN)).await.is_ok();
        }
        self.last = stream;
        let Some(headers) = meant(headers) else {
            return self.frames.send(reset(BROKEN)).await.is_ok();
        };
        // Those that have ended and are read no more make room.
        self.streams.retain(|_, reading| reading.is_held());
        if self.streams.len() >= limits::SPDY_STREAMS {
            return self.frames.send(reset(REFUSED)).await.is_ok();
        }
        let (chunks, received) = mpsc::channel(WAITING);
        let (reset, broken_off) = oneshot::channel();
        let reading = Reading {
            chunks: (!last).then_some(chunks),
            reset: Some(reset),
        };
        self.streams.insert(stream, reading);
        let opened = Stream {
            headers,
            chunks: received,
            writer: Writer {
                stream,
                frames: self.frames.clone(),
            },
            reset: broken_off,
        };
        // Data that comes before the reply is dropped by clients.
        self.frames.send(Frame::Reply { stream }).await.is_ok()
            && self.opens.send(opened).await.is_ok()
    }
}

async fn write_frames(
    mut write: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Frame>,
) -> io::Result<()> {
    let (mut packer, mut head) = (Packer::new(), BytesMut::new());
    let mut pings = interval_at(Instant::now() + limits::PING, limits::PING);
    let mut ping = 2;
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            _ = pings.tick() => {
                ping = (ping + 2) & 0x7fff_fffe;
                Some(Frame::Ping { id: ping })
            }
        };
        let Some(frame) = frame else {
            return write.shutdown().await;
        };
        head.clear();
        frame.write(&mut head, &mut packer);
        write.write_all(&head).await?;
        if let Frame::Data { bytes, .. } = &frame {
            write.write_all(bytes).await?;
        }
        if frames.is_empty() {
            write.flush().await?;
        }
    }
}
