//! The task of a forwarded connection.

use std::{sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
    time::timeout,
};

use super::{
    event::{Note, Pipe},
    inbox::Outlet,
};
use crate::{Host, Stream};

/// Buffer size in bytes.
const PIECE: usize = 32 * 1024;
/// The time for which a connection stays open without bytes from the server after the client has
/// ended its half. The server may not notice that the client has ended.
const LINGER_TIMEOUT: Duration = Duration::from_secs(60);

/// Connects, and copies bytes until both sides have ended, or the client closes the channel.
pub(super) async fn run(
    host: Arc<dyn Host>,
    (address, port): (String, u16),
    input: Outlet,
    mut closed: oneshot::Receiver<()>,
    pipe: Pipe,
) {
    let connected = tokio::select! {
        connected = host.connect(address, port) => connected,
        _ = &mut closed => return,
    };
    let stream = match connected {
        Ok(stream) => stream,
        Err(refusal) => return pipe.send(Note::Opened(Err(refusal))).await,
    };
    pipe.send(Note::Opened(Ok(()))).await;
    tokio::select! {
        () = copy(stream, input, &pipe) => {}
        _ = closed => {}
    }
    pipe.send(Note::Closed).await;
}

async fn copy(stream: Box<dyn Stream>, mut input: Outlet, pipe: &Pipe) {
    let (mut from, mut to) = tokio::io::split(stream);
    let (ended, mut end) = oneshot::channel();
    let sending = async {
        while let Some(bytes) = input.next().await {
            if to.write_all(&bytes).await.is_err() {
                return;
            }
            pipe.send(Note::Consumed(bytes.len())).await;
        }
        let _ = to.shutdown().await;
        let _ = ended.send(());
        std::future::pending::<()>().await;
    };
    let receiving = async {
        let mut buffer = BytesMut::new();
        let mut lingers = false;
        loop {
            buffer.reserve(PIECE);
            let read = from.read_buf(&mut buffer);
            let count = if lingers {
                match timeout(LINGER_TIMEOUT, read).await {
                    Ok(count) => count,
                    Err(_) => return,
                }
            } else {
                tokio::select! {
                    count = read => count,
                    _ = &mut end => {
                        lingers = true;
                        continue;
                    }
                }
            };
            match count {
                Ok(1..) => pipe.send_bytes(buffer.split().freeze(), Note::Output).await,
                Ok(0) | Err(_) => return pipe.send(Note::End).await,
            }
        }
    };
    tokio::select! {
        () = sending => {}
        () = receiving => {}
    }
}
