//! Answers the system calls by which a container chooses the address of a socket, in a process
//! of its own for each container. The address is in the container's memory, which may be a file
//! of a server that never answers, and a connection may wait for ever: such a container holds
//! up itself only. The agent decides, and gets and gives nothing but addresses.
//!
//! A call is executed here only if the kernel would permit it to the thread that made it. In
//! every other case, the kernel executes it as if it had never been stopped.

use crate::{
    sockets::{self, Address, Call, Notification},
    system::{self, Error},
};

/// The descriptors of the socket to the agent, and of the listener.
pub(crate) const AGENT: i32 = 0;
pub(crate) const LISTENER: i32 = 1;

/// The number of connections that may wait at a time.
const CONNECTIONS: usize = 64;
/// How often ended connections are counted while that many wait, in milliseconds.
const RECOUNT: i64 = 20;

/// The first part of a message to the agent: the call, or the result of `bind`.
const BOUND: u32 = 2;
/// The first part of an answer of the agent.
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
    // The end of the error pipe among them says that the start succeeded.
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

/// Answers a call; returns true if a child does.
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

/// Returns false for an address that this process does not change, or that the thread may not
/// have.
fn is_permitted(received: &Notification, address: &Address) -> bool {
    let Some(port) = address.port() else {
        return false;
    };
    match received.call {
        Call::Connect => true,
        Call::Bind => port >= sockets::first_free_port() || sockets::may_use_any_port(received),
    }
}

/// Binds a socket to one address after the other, as the agent says.
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

/// Connects a socket, in a process that may wait as long as the connection does.
fn connect(received: &Notification, socket: i32, address: &Address) -> ! {
    system::die_with_parent();
    match sockets::connect(socket, address) {
        // The server has ended: the machine may have another one.
        Err(Error::REFUSED) => sockets::let_continue(received),
        result => sockets::finish(received, result.map_or_else(Error::number, |()| 0)),
    }
    system::exit(0)
}

/// Asks the agent, which answers at once.
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
