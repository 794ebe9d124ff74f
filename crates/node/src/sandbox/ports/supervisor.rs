//! Answers the notifications of a container.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    sync::Arc,
};

use tokio::io::Interest;

use super::{
    PodPorts,
    address::read,
    notification::{self, Answer, Call, Notification},
};
use crate::sandbox::child::register;

/// The number of notifications that are answered before others have a turn.
const AT_A_TIME: usize = 16;

/// Answers the notifications of the listener that the container has sent over `socket`, until
/// all its processes have ended.
///
/// # Errors
/// Kind `WouldBlock`: the container has sent no listener, because the kernel has none. After
/// any other error, the kernel refuses the container's calls.
pub(in crate::sandbox) fn supervise(socket: &OwnedFd, ports: Arc<PodPorts>) -> io::Result<()> {
    let listener = notification::received_descriptor(socket)?;
    let listener = Arc::new(register(listener, Interest::READABLE)?);
    tokio::spawn(async move {
        while let Ok(mut ready) = listener.readable().await {
            let mut answered = 0_usize;
            while notification::events(listener.get_ref()) & libc::POLLIN != 0 {
                answered = answered.wrapping_add(1);
                if answered.is_multiple_of(AT_A_TIME) {
                    tokio::task::yield_now().await;
                }
                match notification::receive(listener.get_ref()) {
                    Ok(received) => respond(&listener, received, &ports),
                    // The process was killed in the meantime.
                    Err(error) => tracing::trace!(%error, "no notification"),
                }
            }
            let over = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
            if notification::events(listener.get_ref()) & over != 0 {
                return;
            }
            ready.clear_ready();
        }
    });
    Ok(())
}

type Listener = tokio::io::unix::AsyncFd<OwnedFd>;

fn respond(listener: &Arc<Listener>, received: Notification, ports: &Arc<PodPorts>) {
    let Some((socket, address)) = changed(listener.get_ref(), received, ports) else {
        let _ = notification::answer(listener.get_ref(), received, Answer::Continue);
        return;
    };
    match received.call {
        Call::Bind => {
            let mut error = notification::execute(Call::Bind, &socket, address);
            if error == 0 {
                ports.bound.lock().insert(address.port());
            } else if error == libc::EINVAL && address.is_ipv6() {
                error = bind_ipv6_only(&socket, address.port(), ports);
            }
            // A socket that has an address, and a socket of another network namespace, cannot
            // have the pod's address.
            let is_elsewhere = matches!(error, libc::EINVAL | libc::EADDRNOTAVAIL);
            let answer = if is_elsewhere {
                Answer::Continue
            } else {
                Answer::Done(error)
            };
            let _ = notification::answer(listener.get_ref(), received, answer);
        }
        // A connection may have to wait.
        Call::Connect => {
            let (listener, connecting) = (listener.clone(), ports.connecting.clone());
            tokio::spawn(async move {
                let permit = connecting.acquire_owned().await;
                tokio::task::spawn_blocking(move || {
                    let error = notification::execute(Call::Connect, &socket, address);
                    // The server has ended: the machine may have another one.
                    let is_refused = error == libc::ECONNREFUSED;
                    let answer = if is_refused {
                        Answer::Continue
                    } else {
                        Answer::Done(error)
                    };
                    let _ = notification::answer(listener.get_ref(), received, answer);
                    drop(permit);
                });
            });
        }
    }
}

/// Binds a socket that takes no IPv4 connections, and so cannot have the pod's address; returns
/// the error number, or 0.
fn bind_ipv6_only(socket: &OwnedFd, port: u16, ports: &PodPorts) -> i32 {
    let address = ports.ipv6_only_listener(port);
    let error = notification::execute(Call::Bind, socket, address);
    if error == 0
        && let Ok(socket) = socket.try_clone()
        // The type does not matter for its address.
        && let Ok(chosen) = TcpListener::from(socket).local_addr()
    {
        ports.ipv6_only.lock().insert(port, chosen.port());
    }
    error
}

/// Returns the socket and the address in place of the one that the process gave; `None` if the
/// call is to be executed as it is.
fn changed(
    listener: &OwnedFd,
    received: Notification,
    ports: &PodPorts,
) -> Option<(OwnedFd, SocketAddr)> {
    let bytes = notification::address(listener, received)?;
    let asked = read(&bytes)?;
    let address = match received.call {
        Call::Bind => ports.listener(asked)?,
        Call::Connect => ports.destination(asked)?,
    };
    match notification::socket(listener, received) {
        Ok(socket) => Some((socket, address)),
        Err(error) => {
            tracing::debug!(%error, "cannot reach a socket of a container");
            None
        }
    }
}
