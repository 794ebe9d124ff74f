//! Numbers of the system calls.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    pub(crate) const READ: usize = 0;
    pub(crate) const WRITE: usize = 1;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const SIGPROCMASK: usize = 14;
    pub(crate) const IOCTL: usize = 16;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const CONNECT: usize = 42;
    pub(crate) const BIND: usize = 49;
    pub(crate) const GETSOCKNAME: usize = 51;
    pub(crate) const CLONE: usize = 56;
    pub(crate) const EXECVE: usize = 59;
    pub(crate) const WAIT4: usize = 61;
    pub(crate) const KILL: usize = 62;
    pub(crate) const FCNTL: usize = 72;
    pub(crate) const CHDIR: usize = 80;
    pub(crate) const SETUID: usize = 105;
    pub(crate) const SETGID: usize = 106;
    pub(crate) const SETPGID: usize = 109;
    pub(crate) const SETSID: usize = 112;
    pub(crate) const SIGTIMEDWAIT: usize = 128;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const GETDENTS64: usize = 217;
    pub(crate) const EXIT_GROUP: usize = 231;
    pub(crate) const WAITID: usize = 247;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const MKDIRAT: usize = 258;
    pub(crate) const READLINKAT: usize = 267;
    pub(crate) const PPOLL: usize = 271;
    pub(crate) const PROCESS_VM_READV: usize = 310;
    pub(crate) const PIDFD_OPEN: usize = 434;
    pub(crate) const PIDFD_GETFD: usize = 438;
}
#[cfg(target_arch = "aarch64")]
mod aarch64 {
    pub(crate) const FCNTL: usize = 25;
    pub(crate) const IOCTL: usize = 29;
    pub(crate) const MKDIRAT: usize = 34;
    pub(crate) const CHDIR: usize = 49;
    pub(crate) const OPENAT: usize = 56;
    pub(crate) const CLOSE: usize = 57;
    pub(crate) const GETDENTS64: usize = 61;
    pub(crate) const READ: usize = 63;
    pub(crate) const WRITE: usize = 64;
    pub(crate) const PPOLL: usize = 73;
    pub(crate) const READLINKAT: usize = 78;
    pub(crate) const EXIT_GROUP: usize = 94;
    pub(crate) const WAITID: usize = 95;
    pub(crate) const KILL: usize = 129;
    pub(crate) const SIGPROCMASK: usize = 135;
    pub(crate) const SIGTIMEDWAIT: usize = 137;
    pub(crate) const SETGID: usize = 144;
    pub(crate) const SETUID: usize = 146;
    pub(crate) const SETPGID: usize = 154;
    pub(crate) const SETSID: usize = 157;
    pub(crate) const PRCTL: usize = 167;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const BIND: usize = 200;
    pub(crate) const CONNECT: usize = 203;
    pub(crate) const GETSOCKNAME: usize = 204;
    pub(crate) const CLONE: usize = 220;
    pub(crate) const EXECVE: usize = 221;
    pub(crate) const WAIT4: usize = 260;
    pub(crate) const PROCESS_VM_READV: usize = 270;
    pub(crate) const PIDFD_OPEN: usize = 434;
    pub(crate) const PIDFD_GETFD: usize = 438;
}
