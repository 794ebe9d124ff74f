//! The system calls of a seccomp listener, and those on the sockets of another process.
#![allow(unsafe_code)]

use std::{
    fs, io,
    mem::{MaybeUninit, zeroed},
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// The largest socket address in bytes (`sockaddr_storage`).
const LARGEST: usize = 128;

/// What a process asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Bind,
    Connect,
}

/// A system call of a container that waits for the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    id: u64,
    thread: i32,
    pub(super) call: Call,
    socket: RawFd,
    address: u64,
    length: usize,
}

/// The answer to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The kernel executes the call.
    Continue,
    /// The call was executed, with this error number, or 0.
    Done(i32),
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Returns the events of a listener: `POLLIN` for a notification, `POLLHUP` if all its
/// processes have ended.
pub(super) fn events(listener: &OwnedFd) -> libc::c_short {
    let mut poll = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd on the stack, no waiting.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    if ready > 0 { poll.revents } else { 0 }
}

/// Receives the next notification of a listener that has one.
pub(super) fn receive(listener: &OwnedFd) -> io::Result<Notification> {
    // SAFETY: the kernel requires a zeroed struct of plain integers, and fills it.
    let received = unsafe {
        let mut received: libc::seccomp_notif = zeroed();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        checked(libc::ioctl(
            listener.as_raw_fd(),
            request,
            &raw mut received,
        ))?;
        received
    };
    let data = received.data;
    let call = match libc::c_long::from(data.nr) {
        libc::SYS_bind => Call::Bind,
        _ => Call::Connect,
    };
    Ok(Notification {
        id: received.id,
        thread: received.pid.cast_signed(),
        call,
        // The kernel takes the lower 32 bits, too.
        socket: data.args[0] as RawFd,
        address: data.args[1],
        length: usize::try_from(data.args[2]).unwrap_or(usize::MAX),
    })
}

/// Answers a notification. An error means that the process no longer waits.
pub(super) fn answer(
    listener: &OwnedFd,
    notification: Notification,
    answer: Answer,
) -> io::Result<()> {
    // SAFETY: a zeroed struct of plain integers is valid; the kernel reads it.
    unsafe {
        let mut response: libc::seccomp_notif_resp = zeroed();
        response.id = notification.id;
        match answer {
            Answer::Continue => {
                response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            }
            Answer::Done(error) => response.error = -error,
        }
        let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
        checked(libc::ioctl(
            listener.as_raw_fd(),
            request,
            &raw mut response,
        ))
        .map(drop)
    }
}

/// Whether the process still waits, so that its thread number is not another process's.
fn is_waiting(listener: &OwnedFd, notification: Notification) -> bool {
    let id = notification.id;
    // SAFETY: the kernel reads the number.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const id,
        )
    };
    result == 0
}

/// Reads the socket address of a call from the memory of the process.
pub(super) fn address(listener: &OwnedFd, notification: Notification) -> Option<Vec<u8>> {
    let length = notification.length.min(LARGEST);
    let mut bytes = vec![0_u8; length];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: length,
    };
    let remote = libc::iovec {
        iov_base: notification.address as *mut libc::c_void,
        iov_len: length,
    };
    // SAFETY: the local part is a vector of that length; the kernel checks the remote one.
    let read = unsafe {
        libc::process_vm_readv(
            notification.thread,
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    let is_whole = usize::try_from(read).is_ok_and(|read| read == length);
    (is_whole && is_waiting(listener, notification)).then_some(bytes)
}

/// Returns a copy of the descriptor of the process's socket.
pub(super) fn socket(listener: &OwnedFd, notification: Notification) -> io::Result<OwnedFd> {
    let process = process(notification.thread)?;
    let flags = 0;
    // SAFETY: the kernel returns a new descriptor, which nothing else owns.
    let socket = unsafe {
        let number = libc::syscall(
            libc::SYS_pidfd_getfd,
            process.as_raw_fd(),
            notification.socket,
            flags,
        );
        OwnedFd::from_raw_fd(checked(number as libc::c_int)?)
    };
    match is_waiting(listener, notification) {
        true => Ok(socket),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Opens the process of a thread.
fn process(thread: i32) -> io::Result<OwnedFd> {
    let open = |number: i32| {
        // SAFETY: the kernel returns a new descriptor, which nothing else owns.
        unsafe {
            let number = libc::syscall(libc::SYS_pidfd_open, number, 0);
            checked(number as libc::c_int).map(|number| OwnedFd::from_raw_fd(number))
        }
    };
    open(thread).or_else(|error| {
        // Only the first thread has the number of its process.
        let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
        let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
        let group = group.and_then(|number| number.trim().parse().ok());
        group.map_or(Err(error), open)
    })
}

/// Executes `bind` or `connect` on a socket; returns the error number, or 0.
pub(super) fn execute(call: Call, socket: &OwnedFd, address: SocketAddr) -> i32 {
    let (storage, length) = encode(address);
    let pointer = (&raw const storage).cast::<libc::sockaddr>();
    // SAFETY: an address of the given length on the stack.
    let result = unsafe {
        match call {
            Call::Bind => libc::bind(socket.as_raw_fd(), pointer, length),
            Call::Connect => libc::connect(socket.as_raw_fd(), pointer, length),
        }
    };
    match checked(result) {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

fn encode(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let pointer = storage.as_mut_ptr();
    // SAFETY: the storage is large and aligned enough for every kind of address, and zeros are
    // valid for all of them.
    let length = unsafe {
        match address.ip() {
            IpAddr::V4(ip) => {
                let inner = pointer.cast::<libc::sockaddr_in>();
                (*inner).sin_family = libc::AF_INET as libc::sa_family_t;
                (*inner).sin_port = address.port().to_be();
                (*inner).sin_addr.s_addr = u32::from(ip).to_be();
                size_of::<libc::sockaddr_in>()
            }
            IpAddr::V6(ip) => {
                let inner = pointer.cast::<libc::sockaddr_in6>();
                (*inner).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*inner).sin6_port = address.port().to_be();
                (*inner).sin6_addr.s6_addr = ip.octets();
                size_of::<libc::sockaddr_in6>()
            }
        }
    };
    // SAFETY: it was zeroed.
    (unsafe { storage.assume_init() }, length as libc::socklen_t)
}

/// Receives a descriptor that was sent over a socket before; does not wait.
pub(super) fn received_descriptor(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut byte = 0_u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; 4];
    // SAFETY: a message header with pointers to values on the stack, which outlive the call.
    // The kernel returns a new descriptor, which nothing else owns.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        let received = libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags);
        if received < 1 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let number = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        Ok(OwnedFd::from_raw_fd(number))
    }
}
