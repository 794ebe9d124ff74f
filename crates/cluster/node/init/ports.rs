//! Answers the system calls by which a container chooses the address of a socket, in a separate
//! process for each container. The address is in the container's memory, which may be a file of a
//! server that never answers, and a connection may wait forever. A container can therefore block
//! only itself. The agent decides, and exchanges only addresses with this process.
//!
//! A call is executed here only if the kernel would permit it to the thread that made it. In all
//! other cases, the kernel executes the call as if it had not been intercepted.

use crate::{
    sockets::{self, Address, Call, Notification},
    system::{self, Error},
};

/// The descriptors of the socket to the agent, and of the listener.
pub(crate) const AGENT: i32 = 0;
pub(crate) const LISTENER: i32 = 1;

/// The maximum number of connections that wait at the same time.
const CONNECTIONS: usize = 64;
/// The interval in milliseconds at which ended connections are counted while the maximum waits.
const RECOUNT: i64 = 20;

/// The first part of a message to the agent: the call, or the result of `bind`.
const BOUND: u32 = 2;
/// The first part of the agent's answer.
const EXECUTE: u32 = 2;
const DONE: u32 = 1;

/// A message to the agent, or its answer; `sandbox/ports/message.rs` has the same layout.
#[repr(C)]
pub(crate) struct Message {
    kind: u32,
    error: i32,
    address: Address,
}

pub(crate) fn serve() -> ! {
    system::die_with_parent();
    system::name(c"longshore-ports");
    // Closing the error pipe tells the agent that the start succeeded.
    for descriptor in LISTENER + 1..=system::ERRORS {
        system::close(descriptor);
    }
    let mut connecting = 0_usize;
    loop {
        while system::reap().is_some() {
            connecting = connecting.saturating_sub(1);
        }
        let is_full = connecting >= CONNECTIONS;
        match sockets::wait(!is_full, if is_full { RECOUNT } else { -1 }) {
            Ok(true) => {}
            Ok(false) => continue,
            // The container or the agent has ended.
            Err(_) => system::exit(0),
        }
        if let Ok(received) = sockets::receive()
            && respond(received)
        {
            connecting += 1;
        }
    }
}

/// Answers a call. Returns true if a child process answers it.
fn respond(received: Notification) -> bool {
    let address = sockets::read_address(&received);
    if !sockets::is_waiting(&received) {
        return false;
    }
    let Some(address) = address.filter(|address| is_permitted(&received, address)) else {
        sockets::let_continue(&received);
        return false;
    };
    let answer = ask(received.call as u32, 0, address);
    if answer.kind != EXECUTE {
        sockets::let_continue(&received);
        return false;
    }
    let Ok(socket) = sockets::copy(&received) else {
        sockets::let_continue(&received);
        return false;
    };
    let is_parent = match received.call {
        Call::Bind => {
            bind(&received, socket, answer);
            false
        }
        Call::Connect => match system::fork() {
            Ok(0) => connect(&received, socket, &answer.address),
            Ok(_) => true,
            Err(error) => {
                sockets::finish(&received, error.number());
                false
            }
        },
    };
    system::close(socket);
    is_parent
}

/// Returns false for an address that this process does not change, or that the thread may not use.
fn is_permitted(received: &Notification, address: &Address) -> bool {
    let Some(port) = address.port() else {
        return false;
    };
    match received.call {
        Call::Connect => true,
        Call::Bind => port >= sockets::first_free_port() || sockets::may_use_any_port(received),
    }
}

/// Binds a socket to the addresses from the agent until the agent ends the attempts.
fn bind(received: &Notification, socket: i32, mut answer: Message) {
    while answer.kind == EXECUTE {
        let error = sockets::bind(socket, &answer.address).map_or_else(Error::number, |()| 0);
        answer = ask(BOUND, error, sockets::name(socket));
    }
    match answer.kind {
        DONE => sockets::finish(received, answer.error.unsigned_abs()),
        _ => sockets::let_continue(received),
    }
}

/// Connects a socket, in a process that waits until the connection is made.
fn connect(received: &Notification, socket: i32, address: &Address) -> ! {
    system::die_with_parent();
    match sockets::connect(socket, address) {
        // The server has ended. Another server on the machine may accept the connection.
        Err(Error::REFUSED) => sockets::let_continue(received),
        result => sockets::finish(received, result.map_or_else(Error::number, |()| 0)),
    }
    system::exit(0)
}

/// Asks the agent, which answers immediately.
fn ask(kind: u32, error: u32, address: Address) -> Message {
    let mut message = Message {
        kind,
        error: error.cast_signed(),
        address,
    };
    match sockets::exchange(&mut message) {
        Ok(()) => message,
        Err(_) => system::exit(0),
    }
}
