//! A connection, with clients that follow the protocol and clients that violate
//! it.
#![allow(clippy::unwrap_used)]
use bytes::BufMut as _;
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    Connection,
    frame::{Frame, HEADER_LENGTH, Head},
    headers::Compressor,
};
use crate::limits;

/// A client that writes and reads frames.
struct Client {
    io: DuplexStream,
    compressor: Compressor,
}

impl Client {
    fn connect() -> (Self, Connection) {
        let (io, far) = tokio::io::duplex(1 << 20);
        let compressor = Compressor::new();
        (Self { io, compressor }, Connection::new(far))
    }

    async fn write(&mut self, frame: Frame) {
        let mut out = BytesMut::new();
        frame.write(&mut out, &mut self.compressor);
        if let Frame::Data { bytes, .. } = frame {
            out.put(bytes);
        }
        self.io.write_all(&out).await.unwrap();
    }

    async fn open(&mut self, stream: u32, kind: &str) {
        let headers = vec![("streamtype".to_owned(), kind.to_owned())];
        self.write(Frame::Open { stream, headers }).await;
    }

    async fn data(&mut self, stream: u32, text: &[u8], last: bool) {
        let bytes = Bytes::copy_from_slice(text);
        self.write(Frame::Data {
            stream,
            bytes,
            last,
        })
        .await;
    }

    /// Reads the next frame's header and body.
    async fn read(&mut self) -> Option<(Head, Vec<u8>)> {
        let mut head = [0; HEADER_LENGTH];
        self.io.read_exact(&mut head).await.ok()?;
        let head = Head::read(head).unwrap();
        let (Head::Data { length, .. } | Head::Control { length, .. }) = head;
        let mut body = vec![0; length];
        self.io.read_exact(&mut body).await.unwrap();
        Some((head, body))
    }

    /// Reads the type of the next control frame: 2 reply, 3 reset, 6 ping.
    async fn control(&mut self) -> u16 {
        match self.read().await {
            Some((Head::Control { kind, .. }, _)) => kind,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn streams_carry_bytes_both_ways() {
    let (mut client, mut connection) = Client::connect();
    client.open(1, "data").await;
    let mut stream = connection.accept().await.unwrap();
    assert_eq!(stream.header("streamtype"), "data");
    assert_eq!(client.control().await, 2);
    // A frame that is larger than the pieces that are forwarded.
    let long = vec![7; limits::STREAM_CHUNK * 3 + 1];
    client.data(1, &long, true).await;
    let mut got = Vec::new();
    while let Some(chunk) = stream.chunks.recv().await {
        assert!(chunk.len() <= limits::STREAM_CHUNK);
        got.extend_from_slice(&chunk);
    }
    assert_eq!(got, long);
    stream
        .writer
        .send(Bytes::from_static(b"back"))
        .await
        .unwrap();
    stream.writer.finish().await.unwrap();
    let (head, body) = client.read().await.unwrap();
    assert_eq!(body, b"back");
    let last = |head| {
        matches!(
            head,
            Head::Data {
                stream: 1,
                last: true,
                ..
            }
        )
    };
    assert!(!last(head));
    let (head, body) = client.read().await.unwrap();
    assert!(last(head) && body.is_empty());
    // The connection ends when the client closes it.
    drop(client);
    connection.disconnected().await;
    assert!(connection.accept().await.is_none());
}

#[tokio::test]
async fn pings_are_answered_and_resets_reported() {
    let (mut client, mut connection) = Client::connect();
    client.write(Frame::Ping { id: 5 }).await;
    assert_eq!(client.control().await, 6);
    client.open(1, "data").await;
    let stream = connection.accept().await.unwrap();
    assert_eq!(client.control().await, 2);
    let reset = Frame::Reset { stream: 1, code: 5 };
    client.write(reset).await;
    stream.reset.await.unwrap();
    // Stream ids that do not increase, and even ids, which belong to the
    // server.
    for bad in [1, 2] {
        client.open(bad, "data").await;
        assert_eq!(client.control().await, 3, "{bad}");
    }
    client.data(99, b"unread", true).await;
    client
        .write(Frame::GoAway {
            last_stream: 0,
            status: 0,
        })
        .await;
    connection.disconnected().await;
}

#[tokio::test]
async fn no_more_streams_than_the_limit() {
    let (mut client, mut connection) = Client::connect();
    let mut held = Vec::new();
    let most = u32::try_from(limits::SPDY_STREAMS).unwrap();
    for number in 0..most {
        client.open(number * 2 + 1, "data").await;
        held.push(connection.accept().await.unwrap());
        assert_eq!(client.control().await, 2);
    }
    client.open(most * 2 + 1, "data").await;
    assert_eq!(client.control().await, 3);
    drop(held);
    client.open(most * 2 + 3, "data").await;
    assert_eq!(client.control().await, 2);
}

#[tokio::test]
async fn an_unread_stream_blocks_the_connection_and_uses_little_memory() {
    let (mut client, mut connection) = Client::connect();
    client.open(1, "data").await;
    let stream = connection.accept().await.unwrap();
    let chunk = vec![0; limits::STREAM_CHUNK];
    let flood = async {
        let mut sent = 0;
        loop {
            client.data(1, &chunk, false).await;
            sent += chunk.len();
            assert!(sent < 4 << 20, "{sent} bytes were taken");
        }
    };
    let stuck = tokio::time::timeout(Duration::from_millis(300), flood).await;
    assert!(stuck.is_err());
    drop(stream);
    connection.linger(Duration::ZERO).await;
}

#[tokio::test]
async fn many_unread_streams_use_little_memory() {
    let (mut client, mut connection) = Client::connect();
    let streams = limits::SPDY_STREAMS as u32;
    let mut held = Vec::new();
    for number in 0..streams {
        client.open(number * 2 + 1, "data").await;
        held.push(connection.accept().await.unwrap());
        assert_eq!(client.control().await, 2);
    }
    let chunk = vec![0; limits::STREAM_CHUNK];
    let flood = async {
        let mut sent = 0;
        for number in (0..streams).cycle() {
            client.data(number * 2 + 1, &chunk, false).await;
            sent += chunk.len();
            assert!(sent < 2 * limits::SPDY_UNREAD, "{sent} bytes were taken");
        }
    };
    let stuck = tokio::time::timeout(Duration::from_millis(500), flood).await;
    assert!(stuck.is_err());
    // Reading frees the reservation.
    for stream in &mut held {
        while stream.chunks.try_recv().is_ok() {}
    }
    let more = client.data(1, &chunk, false);
    tokio::time::timeout(Duration::from_secs(30), more)
        .await
        .unwrap();
    drop(held);
    connection.linger(Duration::ZERO).await;
}

#[tokio::test]
async fn invalid_frames_end_the_connection() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x80\x02\0\x01\0\0\0\0",
        b"\x80\x03\0\x01\0\xff\xff\xff",
        b"\x80\x03\0\x01\0\0\0\x02\0\0",
        b"\x80\x03\0\x01\0\0\0\x0c\0\0\0\x01\0\0\0\0\0\0\xff\xff",
    ] {
        let (mut client, connection) = Client::connect();
        client.io.write_all(bytes).await.unwrap();
        client.io.shutdown().await.unwrap();
        let disconnected = tokio::time::timeout(Duration::from_secs(5), connection.disconnected());
        assert!(disconnected.await.is_ok(), "{bytes:?}");
        if bytes[0] & 0x80 == 0 {
            // Data of a frame that ends early.
            continue;
        }
        // The client received GOAWAY with PROTOCOL_ERROR.
        let (head, body) = client.read().await.unwrap();
        assert!(matches!(head, Head::Control { kind: 7, .. }), "{head:?}");
        assert_eq!(body[4..], [0, 0, 0, 1], "{bytes:?}");
    }
}

#[tokio::test]
async fn unknown_headers_are_dropped_and_long_ones_rejected() {
    let (mut client, mut connection) = Client::connect();
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let mut headers: Vec<_> = (0..500)
        .map(|number| pair(&format!("x-{number}"), "v".repeat(100)))
        .collect();
    headers.push(pair("streamtype", "data".into()));
    headers.push(pair("streamtype", "again".into()));
    client.write(Frame::Open { stream: 1, headers }).await;
    let stream = connection.accept().await.unwrap();
    assert_eq!(stream.headers, [pair("streamtype", "data".into())]);
    assert_eq!(client.control().await, 2);
    let long = vec![pair("requestid", "1".repeat(limits::SPDY_HEADER + 1))];
    let open = Frame::Open {
        stream: 3,
        headers: long,
    };
    client.write(open).await;
    assert_eq!(client.control().await, 3);
    client.open(5, "data").await;
    assert_eq!(client.control().await, 2);
}

#[tokio::test]
async fn floods_of_control_frames_use_little_memory() {
    // Frames without responses are processed and leave no state.
    let (mut client, mut connection) = Client::connect();
    let window = [
        0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff,
    ];
    let settings = [0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0];
    for frame in [&window[..], &settings] {
        client.io.write_all(&frame.repeat(50_000)).await.unwrap();
    }
    for number in 0..300 {
        let chunk = vec![0; limits::STREAM_CHUNK];
        client.data(number * 2 + 1001, &chunk, false).await;
    }
    client.open(1, "data").await;
    let stream = connection.accept().await.unwrap();
    assert_eq!(stream.header("streamtype"), "data");
    assert_eq!(client.control().await, 2);

    // If the client does not read the responses, the connection blocks.
    let (mut client, connection) = Client::connect();
    let flood = async {
        let pings = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1].repeat(10_000);
        let mut sent = 0;
        loop {
            client.io.write_all(&pings).await.unwrap();
            sent += pings.len();
            assert!(sent < 8 << 20, "{sent} bytes of pings were taken");
        }
    };
    let stuck = tokio::time::timeout(Duration::from_secs(2), flood).await;
    assert!(stuck.is_err());
    drop(connection);

    // Streams that are opened and reset one after another leave no state.
    let (mut client, mut connection) = Client::connect();
    let storm = u32::try_from(limits::SPDY_STREAMS).unwrap() * 4;
    for number in 0..storm {
        let stream = number * 2 + 1;
        client.open(stream, "data").await;
        client.write(Frame::Reset { stream, code: 5 }).await;
        assert_eq!(client.control().await, 2);
        drop(connection.accept().await.unwrap());
    }
}
