//! Ports of pods, reached through the API server.

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

/// Bytes that wait for whoever is slower, each way.
const BUFFER: usize = 64 * 1024;
/// The channels of the one port of a connection.
const DATA: u8 = 0;
const ERROR: u8 = 1;

/// A port of a pod: see [`View::port_forward`].
#[derive(Debug, Clone)]
pub struct PortForward {
    transport: Transport,
    path: String,
    port: u16,
}

/// A connection to a port of a pod. When the pod refuses it, the error of reading says why.
///
/// The protocol has no half-closed connections: the pod does not see that
/// nothing more is written until this is dropped.
#[derive(Debug)]
pub struct PortStream {
    inner: DuplexStream,
    /// Why it has ended, if not as it should.
    refused: Arc<OnceLock<String>>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl View<Pod> {
    /// A port of a pod, to connect to. Nothing is sent yet. The view must have a
    /// namespace.
    ///
    /// # Errors
    /// As [`View::fetch`], of its name and namespace alone.
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
    /// // The same port on this machine, for other programs.
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let here = listener.local_addr()?;
    /// tokio::spawn(async move { port.serve(listener, |problem| eprintln!("{problem}")).await });
    /// TcpStream::connect(here).await?;
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
    /// As [`View::port_forward`], of this pod.
    ///
    /// # Errors
    /// As [`View::port_forward`].
    pub fn port_forward(&self, port: u16) -> Result<PortForward> {
        self.view().port_forward(self.name(), port)
    }
}

impl PortForward {
    /// Connects to the port.
    ///
    /// # Errors
    /// As the server refuses: no such pod, or it does not run. That no
    /// process listens there is an error of the first read.
    pub async fn connect(&self) -> Result<PortStream> {
        let call = Call::new(Method::GET, self.path.as_str()).with("ports", self.port.to_string());
        let connection = self.transport.upgrade(&call).await?;
        let (mut sink, mut stream) = connection.into_stream().split();
        let (inner, outer) = tokio::io::duplex(BUFFER);
        let (mut read, mut write) = tokio::io::split(outer);
        let refused = Arc::new(OnceLock::new());
        let refusal = refused.clone();
        let receive = async move {
            // The first message of each channel repeats the port.
            let mut begun = [false; 2];
            while let Some(Ok(message)) = stream.next().await {
                let Message::Binary(mut data) = message else {
                    continue;
                };
                let Some(&channel @ (DATA | ERROR)) = data.first() else {
                    continue;
                };
                data.advance(1);
                if !std::mem::replace(&mut begun[usize::from(channel)], true) {
                    continue;
                }
                if channel == ERROR {
                    let _ = refusal.set(String::from_utf8_lossy(&data).trim().to_owned());
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
            refused,
            _tasks: [
                AbortOnDropHandle::new(tokio::spawn(receive)),
                AbortOnDropHandle::new(tokio::spawn(send)),
            ],
        })
    }

    /// Takes connections from a listener and forwards each, for ever. The
    /// error of one is passed to `report`, and does not end the others.
    ///
    /// # Errors
    /// When the listener fails.
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
                let moved = tokio::io::copy_bidirectional(&mut local, &mut remote).await;
                if let Some(problem) = remote.refused.get() {
                    report(problem.clone());
                } else if let Err(error) = moved {
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
        match self.refused.get() {
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
