//! A connection: one task reads and distributes frames, another writes.
//! Buffered data is bounded in both directions: SPDY flow control is not used,
//! so a stream that is not read blocks the whole connection.

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
    frame::{
        Control, Frame, GO_AWAY_OK, GO_AWAY_PROTOCOL_ERROR, HEADER_LENGTH, Head, PROTOCOL_ERROR,
        REFUSED,
    },
    headers::{Compressor, Decompressor},
};
use crate::limits;

/// Maximum number of frames that wait to be written, and of chunks that wait
/// for the reader of a stream.
const QUEUE_LENGTH: usize = 8;

/// A chunk that waits for its reader, and its reservation.
struct Chunk {
    bytes: BytesMut,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A connection; drop it to end it.
pub(crate) struct Connection {
    opened: mpsc::Receiver<Stream>,
    frames: mpsc::Sender<Frame>,
    disconnected: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

/// A stream that the client opened.
pub(crate) struct Stream {
    /// Headers that describe the purpose of the stream.
    pub(crate) headers: Headers,
    /// Data from the client, until the stream ends.
    pub(crate) chunks: mpsc::Receiver<Bytes>,
    /// Sends data to the client.
    pub(crate) writer: Writer,
    /// Resolves when the client resets the stream.
    pub(crate) reset: oneshot::Receiver<()>,
}

impl Stream {
    /// Returns a header by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The sending half of a stream.
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

    /// Ends this direction of the stream.
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
    /// Starts SPDY on an upgraded connection.
    pub(crate) fn new(io: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (read, write) = tokio::io::split(io);
        let (frames, outgoing) = mpsc::channel(QUEUE_LENGTH);
        let (opens, opened) = mpsc::channel(QUEUE_LENGTH);
        let (tell, disconnected) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let reader = Reader {
            read,
            decompressor: Decompressor::new(),
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
                        // Send the client the reason before closing the
                        // connection.
                        let _ = timeout(limits::DRAIN, reader.refuse()).await;
                    }
                }
                tell.send_replace(true);
            }
        });
        tasks.spawn(async move {
            // The reader may be blocked: a failed ping shows that the client
            // disconnected.
            if let Err(error) = write_frames(write, outgoing).await {
                tracing::debug!(%error, "a SPDY connection ended");
                tell.send_replace(true);
            }
        });
        Self {
            opened,
            frames,
            disconnected,
            tasks,
        }
    }

    /// Returns the next stream that the client opens, or `None` at the end.
    pub(crate) async fn accept(&mut self) -> Option<Stream> {
        self.opened.recv().await
    }

    /// Resolves when the client disconnects.
    pub(crate) fn disconnected(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut disconnected = self.disconnected.clone();
        async move {
            let _ = disconnected.wait_for(|disconnected| *disconnected).await;
        }
    }

    /// Waits for the client to close the connection after all streams have ended, so that sent data
    /// arrives. A client that receives GOAWAY discards the data that it has not read.
    pub(crate) async fn linger(mut self, most: Duration) {
        let hung_up = self.disconnected();
        let ignored = async { while self.opened.recv().await.is_some() {} };
        let both = async { tokio::join!(hung_up, ignored) };
        if timeout(most, both).await.is_err() {
            let bye = Frame::GoAway {
                last_stream: 0,
                status: GO_AWAY_OK,
            };
            let _ = self.frames.send(bye).await;
        }
        // Dropping the last sender ends the writer.
        let Self {
            frames, mut tasks, ..
        } = self;
        drop(frames);
        let ended = async { while tasks.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_secs(1), ended).await;
    }
}

/// The readers of a stream.
struct StreamReaders {
    /// `None` if the stream has ended or its reader was dropped.
    chunks: Option<mpsc::Sender<Bytes>>,
    /// `None` if the stream was reset.
    reset: Option<oneshot::Sender<()>>,
}

impl StreamReaders {
    /// Returns true if the stream is still in use.
    fn is_in_use(&self) -> bool {
        let reads = self.chunks.as_ref().is_some_and(|one| !one.is_closed());
        reads || self.reset.as_ref().is_some_and(|one| !one.is_closed())
    }
}

/// Returns the known headers, each once. They are kept as long as the stream,
/// so the result is `None` if they are too long.
fn known_headers(headers: Headers) -> Option<Headers> {
    const KNOWN: [&str; 3] = ["streamtype", "port", "requestid"];
    let mut headers = headers;
    let found = KNOWN.iter().filter_map(|name| {
        let at = headers.iter().position(|(other, _)| other == name)?;
        Some(headers.swap_remove(at))
    });
    let found: Headers = found.collect();
    let fits = |(_, value): &(String, String)| value.len() <= limits::SPDY_HEADER;
    found.iter().all(fits).then_some(found)
}

struct Reader<R> {
    read: R,
    decompressor: Decompressor,
    streams: HashMap<u32, StreamReaders>,
    /// The last stream that was opened.
    last: u32,
    opens: mpsc::Sender<Stream>,
    frames: mpsc::Sender<Frame>,
    /// Limits the unread bytes.
    unread: Arc<Semaphore>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(&mut self) -> io::Result<()> {
        let broken = |error: ProtocolError| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            let mut head = [0; HEADER_LENGTH];
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
                    let control = Control::read(kind, flags, &body, &mut self.decompressor);
                    if !self.control(control.map_err(broken)?).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Sends the client a protocol error and discards further data from the client. Closing the
    /// connection earlier would reset it, and the client might not receive the error.
    async fn refuse(&mut self) {
        let bye = Frame::GoAway {
            last_stream: self.last,
            status: GO_AWAY_PROTOCOL_ERROR,
        };
        self.streams.clear();
        let mut dropped = vec![0; limits::STREAM_CHUNK];
        if self.frames.send(bye).await.is_ok() {
            while let Ok(1..) = self.read.read(&mut dropped).await {}
        }
    }

    /// Forwards data in bounded pieces, regardless of the frame's length.
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
            // Data that has no reader or belongs to no stream is discarded.
            if let Some(readers) = self.streams.get_mut(&stream)
                && let Some(chunks) = &readers.chunks
                && chunks.send(chunk).await.is_err()
            {
                readers.chunks = None;
            }
        }
        if last && let Some(readers) = self.streams.get_mut(&stream) {
            readers.chunks = None;
        }
        Ok(())
    }

    /// Handles a control frame. Returns true if the connection continues.
    async fn control(&mut self, control: Control) -> bool {
        let answer = match control {
            Control::Open {
                stream,
                headers,
                last,
            } => return self.open(stream, headers, last).await,
            Control::Reset { stream } => {
                if let Some(readers) = self.streams.get_mut(&stream) {
                    readers.chunks = None;
                    // The stream's owner may have dropped the receiver.
                    let _ = readers.reset.take().map(|reset| reset.send(()));
                }
                return true;
            }
            // Even ids are responses to the server's own pings.
            Control::Ping { id } if id % 2 == 1 => Frame::Ping { id },
            Control::GoAway => return false,
            Control::Ping { .. } | Control::Other => return true,
        };
        self.frames.send(answer).await.is_ok()
    }

    async fn open(&mut self, stream: u32, headers: Headers, last: bool) -> bool {
        let reset = |code| Frame::Reset { stream, code };
        // Clients use increasing odd numbers.
        if stream.is_multiple_of(2) || stream <= self.last {
            return self.frames.send(reset(PROTOCOL_ERROR)).await.is_ok();
        }
        self.last = stream;
        let Some(headers) = known_headers(headers) else {
            return self.frames.send(reset(PROTOCOL_ERROR)).await.is_ok();
        };
        // Remove streams that have ended and are no longer read.
        self.streams.retain(|_, readers| readers.is_in_use());
        if self.streams.len() >= limits::SPDY_STREAMS {
            return self.frames.send(reset(REFUSED)).await.is_ok();
        }
        let (chunks, received) = mpsc::channel(QUEUE_LENGTH);
        let (reset, reset_receiver) = oneshot::channel();
        let readers = StreamReaders {
            chunks: (!last).then_some(chunks),
            reset: Some(reset),
        };
        self.streams.insert(stream, readers);
        let opened = Stream {
            headers,
            chunks: received,
            writer: Writer {
                stream,
                frames: self.frames.clone(),
            },
            reset: reset_receiver,
        };
        // Clients discard data that arrives before the reply.
        self.frames.send(Frame::Reply { stream }).await.is_ok()
            && self.opens.send(opened).await.is_ok()
    }
}

async fn write_frames(
    mut write: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Frame>,
) -> io::Result<()> {
    let (mut compressor, mut head) = (Compressor::new(), BytesMut::new());
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
        frame.write(&mut head, &mut compressor);
        write.write_all(&head).await?;
        if let Frame::Data { bytes, .. } = &frame {
            write.write_all(bytes).await?;
        }
        if frames.is_empty() {
            write.flush().await?;
        }
    }
}
