//! The system calls on a container's seccomp listener that the agent makes itself. None of them
//! waits.
#![allow(unsafe_code)]

use std::{
    io,
    mem::zeroed,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// Returns true if all processes of a listener have ended.
pub(super) fn is_over(listener: &OwnedFd) -> bool {
    let mut poll = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: one pollfd on the stack, no waiting.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Receives a descriptor that was already sent over a socket. Does not wait.
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
        let is_descriptor = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len >= libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        if !is_descriptor {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let number = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        Ok(OwnedFd::from_raw_fd(number))
    }
}
