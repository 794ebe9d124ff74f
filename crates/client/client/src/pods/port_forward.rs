//! Connects to ports of pods through the API server.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use http::Method;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf},
    net::TcpListener,
};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    error::Result,
    item::Item,
    kinds::Pod,
    transport::{Call, Transport},
    view::View,
};

/// The size of the buffer in each direction, in bytes.
const BUFFER: usize = 64 * 1024;
/// The channels of a connection's first and only port.
const DATA: u8 = 0;
const ERROR: u8 = 1;

/// A port of a pod, returned by [`View::port_forward`].
#[derive(Debug, Clone)]
pub struct PortForward {
    transport: Transport,
    path: String,
    port: u16,
}

/// A connection to a port of a pod. If the pod rejects the connection, reading fails with the
/// reason.
///
/// The protocol has no half-closed connections: the pod sees the end of the data only when
/// the stream is dropped.
#[derive(Debug)]
pub struct PortStream {
    inner: DuplexStream,
    /// The error that the node reported.
    error: Arc<OnceLock<String>>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl View<Pod> {
    /// Returns a port of a pod to connect to. Sends no request. The view must have a
    /// namespace.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) or
    /// [`Error::Namespace`](crate::Error::Namespace) if the name or the namespace is invalid.
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
    /// use tokio::{io::AsyncReadExt, net::{TcpListener, TcpStream}};
    ///
    /// let port = pods.port_forward("web", 1)?;
    /// // No process listens at this port: reading fails.
    /// let mut stream = port.connect().await?;
    /// assert!(stream.read_to_string(&mut String::new()).await.is_err());
    ///
    /// // Forwards a local port, for other programs.
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let address = listener.local_addr()?;
    /// tokio::spawn(async move { port.serve(listener, |problem| eprintln!("{problem}")).await });
    /// TcpStream::connect(address).await?;
    /// # Ok(()) });
    /// ```
    pub fn port_forward(&self, name: &str, port: u16) -> Result<PortForward> {
        Ok(PortForward {
            transport: self.cluster().transport.clone(),
            path: format!("{}/portforward", self.object_path(name)?),
            port,
        })
    }
}

impl Item<Pod> {
    /// Like [`View::port_forward`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::port_forward`].
    pub fn port_forward(&self, port: u16) -> Result<PortForward> {
        self.view().port_forward(self.name(), port)
    }
}

impl PortForward {
    /// Connects to the port. If no process listens on the port, the first read fails.
    ///
    /// # Errors
    /// The server's errors, for example if the pod does not exist or is not running.
    pub async fn connect(&self) -> Result<PortStream> {
        let call = Call::new(Method::GET, self.path.as_str()).with("ports", self.port.to_string());
        let connection = self.transport.upgrade(&call).await?;
        let (mut sink, mut stream) = connection.into_stream().split();
        let (inner, outer) = tokio::io::duplex(BUFFER);
        let (mut read, mut write) = tokio::io::split(outer);
        let error = Arc::new(OnceLock::new());
        let reported = error.clone();
        let receive = async move {
            // The first message of each channel contains the port.
            let mut started = [false; 2];
            while let Some(Ok(message)) = stream.next().await {
                let Message::Binary(mut data) = message else {
                    continue;
                };
                let Some(&channel @ (DATA | ERROR)) = data.first() else {
                    continue;
                };
                data.advance(1);
                if !std::mem::replace(&mut started[usize::from(channel)], true) {
                    continue;
                }
                if channel == ERROR {
                    let _ = reported.set(String::from_utf8_lossy(&data).trim().to_owned());
                    break;
                }
                if write.write_all(&data).await.is_err() {
                    break;
                }
            }
            let _ = write.shutdown().await;
        };
        let send = async move {
            let mut buffer = BytesMut::new();
            loop {
                buffer.reserve(BUFFER / 2);
                buffer.put_u8(DATA);
                match read.read_buf(&mut buffer).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return,
                }
                let data: Bytes = buffer.split().freeze();
                if sink.send(Message::Binary(data)).await.is_err() {
                    return;
                }
            }
        };
        Ok(PortStream {
            inner,
            error,
            _tasks: [
                AbortOnDropHandle::new(tokio::spawn(receive)),
                AbortOnDropHandle::new(tokio::spawn(send)),
            ],
        })
    }

    /// Accepts connections from a listener and forwards each, until the future is dropped. An
    /// error of a connection is passed to `report` and does not affect the others.
    ///
    /// # Errors
    /// The listener's errors.
    ///
    /// ```no_run
    /// # async fn example(pod: longshore_client::PodItem) -> Result<(), Box<dyn std::error::Error>> {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// pod.port_forward(80)?.serve(listener, |problem| eprintln!("{problem}")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve(
        &self,
        listener: TcpListener,
        report: impl Fn(String) + Clone + Send + 'static,
    ) -> io::Result<()> {
        loop {
            let (mut local, _) = listener.accept().await?;
            let (forward, report) = (self.clone(), report.clone());
            tokio::spawn(async move {
                let mut remote = match forward.connect().await {
                    Ok(remote) => remote,
                    Err(error) => return report(error.to_string()),
                };
                let copied = tokio::io::copy_bidirectional(&mut local, &mut remote).await;
                if let Some(problem) = remote.error.get() {
                    report(problem.clone());
                } else if let Err(error) = copied {
                    report(error.to_string());
                }
            });
        }
    }
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        match self.error.get() {
            Some(problem) if buffer.filled().len() == before && buffer.remaining() > 0 => {
                let error = io::Error::new(io::ErrorKind::ConnectionRefused, problem.as_str());
                Poll::Ready(Err(error))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
