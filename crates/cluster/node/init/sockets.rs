//! The system calls of `ports`, for a seccomp listener and for another process's memory and
//! sockets.

use core::mem::size_of;

use crate::{
    ports::{AGENT, LISTENER, Message},
    system::{self, Error, call, number, plain, signed},
};

const CONTINUE: u32 = 1;
const RECEIVE: usize = 0xc050_2100;
const SEND: usize = 0xc018_2101;
const IS_VALID: usize = 0x4008_2102;
const INTERRUPTED: u32 = 4;

const IPV4: u16 = 2;
const IPV6: u16 = 10;
/// Sizes of `sockaddr_in`, and of `sockaddr_in6` without its last field.
const IPV4_SIZE: u32 = 8;
const IPV6_SIZE: u32 = 24;

/// The capability to use privileged ports, and the default of the first unprivileged port.
const BIND_SERVICE: u32 = 10;
const FIRST_FREE_PORT: u16 = 1024;

/// A socket address.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Address {
    length: u32,
    bytes: [u8; 128],
}

impl Address {
    const EMPTY: Self = Self {
        length: 0,
        bytes: [0; 128],
    };

    /// Returns the port, or `None` for families other than IPv4 and IPv6.
    pub(crate) fn port(&self) -> Option<u16> {
        let [a, b, high, low, ..] = self.bytes;
        let is_known = match u16::from_ne_bytes([a, b]) {
            IPV4 => self.length >= IPV4_SIZE,
            IPV6 => self.length >= IPV6_SIZE,
            _ => false,
        };
        is_known.then_some(u16::from_be_bytes([high, low]))
    }
}

/// A system call of the container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Bind = 0,
    Connect = 1,
}

/// A system call that waits for its answer.
pub(crate) struct Notification {
    id: u64,
    thread: u32,
    pub(crate) call: Call,
    socket: usize,
    address: u64,
    length: usize,
}

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
struct Received {
    id: u64,
    thread: u32,
    flags: u32,
    number: u32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// `struct pollfd`.
#[repr(C)]
struct Poll {
    descriptor: i32,
    events: u16,
    found: u16,
}

/// Waits for a call, for this many milliseconds or forever if negative. Returns true if there is a
/// call. An error means that the container or the agent has ended.
pub(crate) fn wait(for_calls: bool, milliseconds: i64) -> Result<bool, Error> {
    const INPUT: u16 = 1;
    // POLLERR, POLLHUP and POLLNVAL.
    const END: u16 = 0o70;
    let poll = |descriptor, events| Poll {
        descriptor,
        events,
        found: 0,
    };
    let mut polled = [poll(LISTENER, u16::from(for_calls) * INPUT), poll(AGENT, 0)];
    let time = [0_i64, milliseconds.wrapping_mul(1_000_000)];
    let time = match milliseconds {
        0.. => &raw const time as usize,
        _ => 0,
    };
    let arguments = [&raw mut polled as usize, polled.len(), time, 0, 0, 0];
    // SAFETY: the array and the time live until the call returns.
    if let Err(error) = unsafe { call(number::PPOLL, arguments) } {
        return if error.number() == INTERRUPTED { Ok(false) } else { Err(error) };
    }
    let [calls, agent] = polled.map(|polled| polled.found);
    if agent & END != 0 || calls & INPUT == 0 && calls & END != 0 {
        return Err(Error::INVALID);
    }
    Ok(calls & INPUT != 0)
}

/// Receives the next call.
pub(crate) fn receive() -> Result<Notification, Error> {
    let mut received = Received::default();
    control(RECEIVE, &raw mut received as usize)?;
    let [socket, address, length, ..] = received.arguments;
    Ok(Notification {
        id: received.id,
        thread: received.thread,
        call: match received.number as usize {
            number::BIND => Call::Bind,
            _ => Call::Connect,
        },
        // The kernel uses only the lower 32 bits, too.
        socket: socket as u32 as usize,
        address,
        length: length as usize,
    })
}

/// Executes an operation of the listener. Every caller passes a struct of the operation's size that
/// lives until the call returns.
fn control(operation: usize, value: usize) -> Result<(), Error> {
    // SAFETY: guaranteed by the callers, see above.
    unsafe { call(number::IOCTL, [signed(LISTENER), operation, value, 0, 0, 0]) }.map(drop)
}

/// Returns true if the thread still waits, so that its number cannot belong to another thread.
pub(crate) fn is_waiting(received: &Notification) -> bool {
    let id = received.id;
    control(IS_VALID, &raw const id as usize).is_ok()
}

/// Lets the kernel execute the call.
pub(crate) fn let_continue(received: &Notification) {
    respond(received, 0, CONTINUE);
}

/// Ends the call with the error number of its execution, or 0.
pub(crate) fn finish(received: &Notification, error: u32) {
    respond(received, error.cast_signed().wrapping_neg(), 0);
}

fn respond(received: &Notification, error: i32, flags: u32) {
    let response = Response {
        id: received.id,
        value: 0,
        error,
        flags,
    };
    // Fails only if the thread no longer waits.
    let _ = control(SEND, &raw const response as usize);
}

/// Reads the address from the memory of the thread. May wait forever.
pub(crate) fn read_address(received: &Notification) -> Option<Address> {
    let mut address = Address::EMPTY;
    let length = received.length.min(address.bytes.len());
    let local = [address.bytes.as_mut_ptr() as usize, length];
    let remote = [received.address as usize, length];
    let arguments = [
        received.thread as usize,
        &raw const local as usize,
        1,
        &raw const remote as usize,
        1,
        0,
    ];
    // SAFETY: the local part has the given length. The kernel checks the remote part.
    let read = unsafe { call(number::PROCESS_VM_READV, arguments) };
    address.length = length as u32;
    (read.ok() == Some(length)).then_some(address)
}

/// Returns a copy of the descriptor of the thread's socket.
pub(crate) fn copy(received: &Notification) -> Result<i32, Error> {
    let open = |process: u32| plain(number::PIDFD_OPEN, [process as usize, 0, 0, 0]);
    let process = match open(received.thread) {
        Ok(process) => process,
        Err(error) => {
            // Only the main thread has the number of its process.
            let process = Status::of(received.thread).and_then(|status| status.process());
            open(process.ok_or(error)?)?
        }
    };
    let socket = plain(number::PIDFD_GETFD, [process, received.socket, 0, 0]);
    system::close(process as i32);
    let socket = socket? as i32;
    if is_waiting(received) {
        return Ok(socket);
    }
    system::close(socket);
    Err(Error::NOT_FOUND)
}

pub(crate) fn bind(socket: i32, address: &Address) -> Result<(), Error> {
    choose(number::BIND, socket, address)
}

pub(crate) fn connect(socket: i32, address: &Address) -> Result<(), Error> {
    choose(number::CONNECT, socket, address)
}

fn choose(number: usize, socket: i32, address: &Address) -> Result<(), Error> {
    let bytes = address.bytes.as_ptr() as usize;
    let length = (address.length as usize).min(address.bytes.len());
    // SAFETY: the address has this length and lives until the call returns.
    unsafe { call(number, [signed(socket), bytes, length, 0, 0, 0]) }.map(drop)
}

/// Returns the address of a socket.
pub(crate) fn name(socket: i32) -> Address {
    let mut address = Address::EMPTY;
    let mut length = address.bytes.len() as u32;
    let bytes = address.bytes.as_mut_ptr() as usize;
    let arguments = [signed(socket), bytes, &raw mut length as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most `length` bytes, and the new length.
    if unsafe { call(number::GETSOCKNAME, arguments) }.is_ok() {
        address.length = length.min(address.bytes.len() as u32);
    }
    address
}

/// Sends a message to the agent, and replaces it with the answer.
pub(crate) fn exchange(message: &mut Message) -> Result<(), Error> {
    transfer(number::WRITE, message)?;
    transfer(number::READ, message)
}

fn transfer(number: usize, message: &mut Message) -> Result<(), Error> {
    let start = &raw mut *message as usize;
    let mut done = 0;
    while done < size_of::<Message>() {
        let arguments = [signed(AGENT), start + done, size_of::<Message>() - done, 0, 0, 0];
        // SAFETY: the rest of a message. All its bytes are initialized and may have any value.
        match unsafe { call(number, arguments) } {
            Ok(0) => return Err(Error::INVALID),
            Ok(count) => done += count,
            Err(error) if error.number() == INTERRUPTED => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the first port that needs no capability.
pub(crate) fn first_free_port() -> u16 {
    let mut text = [0; 16];
    let path = b"/proc/sys/net/ipv4/ip_unprivileged_port_start\0";
    let length = system::read_file(AGENT, path, &mut text);
    let text = length.and_then(|length| text.get(..length));
    let number = text.and_then(|text| parse(text.trim_ascii(), 10));
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.unwrap_or(FIRST_FREE_PORT)
}

/// Returns true if the thread has the capability to use privileged ports on this machine, instead
/// of only in its own user namespace.
pub(crate) fn may_use_any_port(received: &Notification) -> bool {
    let status = Status::of(received.thread);
    let capabilities = status.and_then(|status| status.number(b"CapEff:", 16));
    let has_capability = capabilities.is_some_and(|all| all & (1 << BIND_SERVICE) != 0);
    let mut path = [0; 32];
    has_capability
        && user_namespace(b"/proc/self/ns/user\0").is_some_and(|own| {
            path_of(received.thread, b"/ns/user", &mut path);
            user_namespace(&path) == Some(own)
        })
}

/// Returns the target of a link. `path` has a terminating zero.
fn user_namespace(path: &[u8]) -> Option<[u8; 32]> {
    let mut target = [0; 32];
    let (path, to) = (path.as_ptr() as usize, target.as_mut_ptr() as usize);
    let arguments = [signed(AGENT), path, to, target.len(), 0, 0];
    // SAFETY: an absolute path with a terminating zero, and memory of the given length.
    unsafe { call(number::READLINKAT, arguments) }.ok()?;
    Some(target)
}

/// The beginning of `/proc/THREAD/status`.
struct Status {
    text: [u8; 4096],
    length: usize,
}

impl Status {
    fn of(thread: u32) -> Option<Self> {
        let mut path = [0; 32];
        path_of(thread, b"/status", &mut path);
        let mut text = [0; 4096];
        let length = system::read_file(AGENT, &path, &mut text)?;
        Some(Self { text, length })
    }

    fn process(&self) -> Option<u32> {
        self.number(b"Tgid:", 10)?.try_into().ok()
    }

    fn number(&self, name: &[u8], base: u64) -> Option<u64> {
        let mut lines = self.text.get(..self.length)?.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        parse(value.trim_ascii(), base)
    }
}

/// Writes `/proc/THREAD` and `rest`, which must leave space for a terminating zero.
fn path_of(thread: u32, rest: &[u8], path: &mut [u8; 32]) {
    let mut digits = [0; 10];
    let mut count = 0;
    let mut left = thread;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        count += 1;
        if left == 0 {
            break;
        }
    }
    let digits = digits.iter().skip(10 - count);
    let bytes = b"/proc/".iter().chain(digits).chain(rest);
    for (to, byte) in path.iter_mut().zip(bytes) {
        *to = *byte;
    }
}

fn parse(text: &[u8], base: u64) -> Option<u64> {
    let mut number = 0_u64;
    for byte in text {
        let digit = (*byte as char).to_digit(base as u32)?;
        number = number.checked_mul(base)?.checked_add(u64::from(digit))?;
    }
    (!text.is_empty()).then_some(number)
}
