//! Asks the agent about the ports of the container, in the child: only system calls, no
//! allocation, no locks, no panics.

use std::{ffi::c_int, mem::zeroed, os::fd::RawFd, ptr};

use super::system::{check, errno};

/// Installs the filter, for this process and its descendants, and sends its listener over a
/// socket. A kernel that does not have listeners leaves the container without one.
pub(super) fn listen(socket: RawFd, filter: &[libc::sock_filter]) -> Result<(), c_int> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| libc::E2BIG)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the kernel reads the given number of instructions from a slice that outlives
        // the call.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            ) as c_int
        }
    };
    // A signal must not interrupt a call that the agent has already executed; kernels before
    // 5.19 do not offer that.
    let new = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut listener = install(new | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if listener == -1 && errno() == libc::EINVAL {
        listener = install(new);
    }
    if listener == -1 {
        // SAFETY: closes the socket that only this function uses.
        unsafe { libc::close(socket) };
        return Ok(());
    }
    let result = send(socket, listener);
    // SAFETY: closes descriptors that only this function uses.
    unsafe {
        libc::close(listener);
        libc::close(socket);
    }
    result
}

fn send(socket: RawFd, descriptor: RawFd) -> Result<(), c_int> {
    let mut byte = 0_u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; 4];
    // SAFETY: a message header with pointers to values on the stack, which outlive the call.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() {
            return Err(libc::EINVAL);
        }
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), descriptor);
        check(libc::sendmsg(socket, &raw const message, 0) as c_int)
    }
}
