//! Answers the calls of a container, through a process that accesses the container for the agent.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::UnixStream,
};

use super::{
    PodPorts,
    listener::{is_over, received_descriptor},
    message::{Answer, Message, SIZE},
};
use crate::sandbox::{
    child::register,
    process::{Process, Supervision},
};

/// The delay before the process is started again if it ended before the container.
const RESTART: Duration = Duration::from_millis(100);

/// Starts processes that answer calls.
pub(in crate::sandbox) trait StartAnswering: Send + Sync + 'static {
    /// Starts a process with the far end of a socket and with the listener. Returns `None` if the
    /// agent ends.
    fn start(
        &self,
        socket: OwnedFd,
        listener: OwnedFd,
    ) -> impl Future<Output = Option<io::Result<Process>>> + Send;
}

/// Answers the calls of the listener that the container has sent over `socket`, until all its
/// processes have ended. The process that answers starts with the first call.
///
/// # Errors
/// Kind `WouldBlock`: the container has sent no listener, because the kernel has none. After any
/// other error, the kernel denies the container's calls.
pub(in crate::sandbox) fn supervise(
    socket: &OwnedFd,
    ports: Arc<PodPorts>,
    start: impl StartAnswering,
) -> io::Result<Supervision> {
    let listener = received_descriptor(socket)?;
    let first = register(listener.try_clone()?, Interest::READABLE)?;
    let task = tokio::spawn(async move {
        // Waits for the first call or for the end.
        let _ = first.readable().await;
        drop(first);
        while !is_over(&listener) {
            match answer(&listener, &ports, &start).await {
                None => return,
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    tracing::warn!(%error, "the calls of a container about addresses must wait");
                }
            }
            if !is_over(&listener) {
                tokio::time::sleep(RESTART).await;
            }
        }
    });
    Ok(Supervision::of(&task))
}

/// Answers calls until the process that asks has ended.
async fn answer(
    listener: &OwnedFd,
    ports: &PodPorts,
    start: &impl StartAnswering,
) -> Option<io::Result<()>> {
    let answering = async || {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        let listener = listener.as_fd().try_clone_to_owned()?;
        let Some(process) = start.start(far.into(), listener).await else {
            return Ok(None);
        };
        Ok::<_, io::Error>(Some((process?, UnixStream::from_std(near)?)))
    };
    let (_process, mut socket) = match answering().await {
        Ok(started) => started?,
        Err(error) => return Some(Err(error)),
    };
    let mut binding = None;
    let mut bytes = [0; SIZE];
    while socket.read_exact(&mut bytes).await.is_ok() {
        let answer = match Message::decode(&bytes) {
            Some(message) => ports.answer(message, &mut binding),
            None => Answer::Continue,
        };
        if socket.write_all(&answer.encode()).await.is_err() {
            break;
        }
    }
    Some(Ok(()))
}

/// A call of `bind` that is being executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Binding {
    address: SocketAddr,
    /// True if the socket accepts no IPv4 connections.
    is_ipv6_only: bool,
}

impl PodPorts {
    /// Decides how to answer a container's call, or the result of an executed call.
    pub(super) fn answer(&self, message: Message, binding: &mut Option<Binding>) -> Answer {
        match message {
            Message::Bind(asked) => {
                let address = self.listener(asked);
                *binding = address.map(|address| Binding {
                    address,
                    is_ipv6_only: false,
                });
                address.map_or(Answer::Continue, Answer::Execute)
            }
            Message::Connect(asked) => self
                .destination(asked)
                .map_or(Answer::Continue, Answer::Execute),
            Message::Bound(error, name) => match binding.take() {
                Some(tried) => self.bound(tried, error, name, binding),
                None => Answer::Continue,
            },
        }
    }

    fn bound(
        &self,
        tried: Binding,
        error: i32,
        name: Option<SocketAddr>,
        next: &mut Option<Binding>,
    ) -> Answer {
        let port = tried.address.port();
        match error {
            0 if !tried.is_ipv6_only => drop(self.bound.lock().insert(port)),
            0 => {
                if let Some(chosen) = name {
                    self.ipv6_only.lock().insert(port, chosen.port());
                }
            }
            // A socket that accepts no IPv4 connections cannot have the pod's address.
            libc::EINVAL if tried.address.is_ipv6() && !tried.is_ipv6_only => {
                *next = Some(Binding {
                    is_ipv6_only: true,
                    ..tried
                });
                return Answer::Execute(self.ipv6_only_listener(port));
            }
            // A socket that has an address, or a socket of another network namespace, cannot have
            // the pod's address.
            libc::EINVAL | libc::EADDRNOTAVAIL => return Answer::Continue,
            _ => {}
        }
        Answer::Done(error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::Ipv4Addr;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn answers_follow_from_results() {
        let ports = PodPorts::new(Some(Ipv4Addr::new(127, 16, 0, 9)), None);
        let mut binding = None;
        let mut answer = |message| ports.answer(message, &mut binding);
        let all = Message::Bind(address("0.0.0.0:80"));
        let local = Message::Connect(address("127.0.0.1:80"));
        let own = Answer::Execute(address("127.16.0.9:80"));
        assert_eq!(answer(local), Answer::Continue);
        assert_eq!(answer(all), own);
        let in_use = Message::Bound(libc::EADDRINUSE, None);
        assert_eq!(answer(in_use), Answer::Done(libc::EADDRINUSE));
        assert_eq!(answer(local), Answer::Continue);
        assert_eq!(answer(all), own);
        let elsewhere = Message::Bound(libc::EADDRNOTAVAIL, None);
        assert_eq!(answer(elsewhere), Answer::Continue);
        assert_eq!(answer(all), own);
        assert_eq!(answer(Message::Bound(0, None)), Answer::Done(0));
        assert_eq!(answer(local), own);
        // A result without a call.
        assert_eq!(answer(Message::Bound(0, None)), Answer::Continue);

        let six = Message::Bind(address("[::]:90"));
        assert_eq!(
            answer(six),
            Answer::Execute(address("[::ffff:127.16.0.9]:90"))
        );
        let refused = Message::Bound(libc::EINVAL, None);
        assert_eq!(answer(refused), Answer::Execute(address("[::1]:0")));
        let chosen = Message::Bound(0, Some(address("[::1]:45678")));
        assert_eq!(answer(chosen), Answer::Done(0));
        let local = Message::Connect(address("[::1]:90"));
        assert_eq!(answer(local), Answer::Execute(address("[::1]:45678")));
        // The socket has an address already.
        assert_eq!(
            answer(six),
            Answer::Execute(address("[::ffff:127.16.0.9]:90"))
        );
        assert_eq!(answer(refused), Answer::Execute(address("[::1]:45678")));
        assert_eq!(answer(refused), Answer::Continue);
    }
}
