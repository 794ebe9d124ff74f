//! Port-forward: connections to a pod's ports, each with a data stream and an
//! error stream.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use longshore_node_api::{BoxedConnection, ContainerRef, NodeStreams, SessionError};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    activity::Activity,
    channel::{Incoming, Outgoing},
    protocol::Framing,
    socket::Socket,
};
use crate::{
    limits,
    shares::Share,
    spdy,
    status_error::{StatusError, required},
};

/// The pod, and for WebSockets the ports.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) pod: ContainerRef,
    pub(crate) ports: Vec<u16>,
}

/// The streams of one connection.
struct Pair {
    data: (Incoming, Outgoing),
    /// Resolves when the client resets the stream.
    reset: Option<oneshot::Receiver<()>>,
    errors: Outgoing,
}

/// A stream whose counterpart has not been opened.
#[derive(Default)]
struct UnpairedStream {
    data: Option<spdy::Stream>,
    errors: Option<spdy::Stream>,
    since: Option<Instant>,
}

impl Forward {
    /// Checks that a WebSocket request names its ports; it cannot open streams
    /// later.
    pub(super) fn check_ports(&self) -> Result<(), StatusError> {
        if self.ports.is_empty() {
            let causes = vec![required("ports", "name the ports to forward")];
            return Err(StatusError::invalid_options(
                "PodPortForwardOptions",
                causes,
            ));
        }
        if self.ports.len() > limits::SOCKET_PORTS {
            return Err(StatusError::bad_request(format!(
                "at most {} ports can be forwarded over one websocket",
                limits::SOCKET_PORTS
            )));
        }
        Ok(())
    }

    pub(super) async fn over_socket<S>(
        self,
        (streams, room): (&dyn NodeStreams, &Share),
        io: S,
        framing: Framing,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let channels = (0..).step_by(2).take(self.ports.len());
        let channels: Vec<u8> = channels.collect();
        let (socket, incoming) = Socket::open(io, framing, &channels).await;
        let activity = &Activity::new();
        let pairs = self.ports.iter().zip(channels).zip(incoming);
        let forwarding = pairs.map(|((port, channel), incoming)| {
            let writer = |channel| Outgoing::Socket(socket.writer(channel));
            let pair = Pair {
                data: (incoming, writer(channel)),
                reset: None,
                errors: writer(channel + 1),
            };
            let pod = &self.pod;
            async move {
                let begin = Bytes::copy_from_slice(&port.to_le_bytes());
                let sent = tokio::join!(
                    pair.data.1.send(begin.clone()),
                    pair.errors.send(begin.clone())
                );
                if let (Ok(()), Ok(())) = sent {
                    connect((streams, room), pod.clone(), *port, pair, activity).await;
                }
            }
        });
        tokio::select! {
            _ = futures::future::join_all(forwarding) => {}
            () = socket.disconnected() => {}
            () = activity.idle() => {}
        }
        socket.close(limits::LINGER).await;
    }

    pub(super) async fn over_spdy<S>(self, (streams, room): (Arc<dyn NodeStreams>, Share), io: S)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut connection = spdy::Connection::new(io);
        let mut halves: HashMap<String, UnpairedStream> = HashMap::new();
        let mut tasks = JoinSet::new();
        let mut idle_since = Instant::now();
        loop {
            let idle = sleep_until(idle_since + limits::SESSION_IDLE);
            let stream = tokio::select! {
                stream = connection.accept() => stream,
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {
                    idle_since = Instant::now();
                    continue;
                }
                () = idle, if tasks.is_empty() => None,
            };
            let Some(stream) = stream else { break };
            // Drop streams whose counterpart does not arrive in time.
            halves.retain(|_, half| {
                half.since
                    .is_some_and(|since| since.elapsed() < limits::STREAM_CREATION)
            });
            let Ok(port) = stream.header("port").parse::<u16>() else {
                let _ = stream.writer.finish().await;
                continue;
            };
            let id = stream.header("requestid").to_owned();
            let is_data = match stream.header("streamtype") {
                "data" => true,
                "error" => false,
                // A reset stream leaves no state.
                _ => {
                    let _ = stream.writer.finish().await;
                    continue;
                }
            };
            let half = halves.entry(id.clone()).or_default();
            half.since.get_or_insert_with(Instant::now);
            if is_data {
                half.data = Some(stream);
            } else {
                half.errors = Some(stream);
            }
            if half.data.is_none() || half.errors.is_none() {
                continue;
            }
            let half = halves.remove(&id).unwrap_or_default();
            if let (Some(data), Some(errors)) = (half.data, half.errors) {
                let pair = Pair {
                    data: (data.chunks, Outgoing::Spdy(data.writer)),
                    reset: Some(data.reset),
                    errors: Outgoing::Spdy(errors.writer),
                };
                let (streams, room) = (streams.clone(), room.clone());
                let pod = self.pod.clone();
                tasks.spawn(async move {
                    let activity = Activity::new();
                    tokio::select! {
                        () = connect((&*streams, &room), pod, port, pair, &activity) => {}
                        () = activity.idle() => {}
                    }
                });
            }
        }
        tasks.shutdown().await;
        connection.linger(Duration::ZERO).await;
    }
}

/// Connects to a port and copies bytes until one side ends.
async fn connect(
    (streams, room): (&dyn NodeStreams, &Share),
    pod: ContainerRef,
    port: u16,
    pair: Pair,
    activity: &Activity,
) {
    let (name, uid) = (pod.pod.clone(), pod.uid.clone());
    let room = room.try_take();
    let connected = match &room {
        Some(_) => streams.connect(pod, port).await,
        None => Err(SessionError::Failed(
            "too many connections are forwarded at a time: close some of them".to_owned(),
        )),
    };
    match connected {
        Ok(connection) => carry(connection, pair.data, pair.reset, activity).await,
        Err(error) => {
            let text = format!("error forwarding port {port} to pod {name}, uid {uid}: {error}");
            let _ = pair.errors.send(text.into()).await;
            let _ = pair.data.1.finish().await;
        }
    }
    let _ = pair.errors.finish().await;
}

/// Copies bytes in both directions until the pod closes its side or the client
/// resets the stream.
async fn carry(
    connection: BoxedConnection,
    (mut incoming, outgoing): (Incoming, Outgoing),
    reset: Option<oneshot::Receiver<()>>,
    activity: &Activity,
) {
    let (read, mut write) = tokio::io::split(connection);
    let up = async {
        while let Some(chunk) = incoming.recv().await {
            activity.note();
            if write.write_all(&chunk).await.is_err() {
                break;
            }
        }
        let _ = write.shutdown().await;
        std::future::pending::<()>().await;
    };
    let client_reset = async {
        let was_reset = match reset {
            Some(reset) => reset.await.is_ok(),
            None => false,
        };
        if !was_reset {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = outgoing.send_all(Box::pin(read), || activity.note()) => {}
        () = up => {}
        () = client_reset => {}
    }
}
