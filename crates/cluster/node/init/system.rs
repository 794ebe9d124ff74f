//! The system calls that the init uses.

use core::{ffi::CStr, ffi::c_char, ptr};

pub(crate) use crate::numbers as number;

/// The descriptor of the pipe for errors.
pub(crate) const ERRORS: i32 = 3;

pub(crate) const HANGUP: i32 = 1;
pub(crate) const INTERRUPT: i32 = 2;
pub(crate) const QUIT: i32 = 3;
pub(crate) const KILL: i32 = 9;
pub(crate) const USER_1: i32 = 10;
pub(crate) const USER_2: i32 = 12;
pub(crate) const TERMINATE: i32 = 15;
pub(crate) const CHILD: i32 = 17;
pub(crate) const WINDOW: i32 = 28;
/// SIGIO. The agent sends it to request that everything is killed, and the kernel when the agent
/// ends.
pub(crate) const KILL_ALL: i32 = 29;

/// The kernel's error number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Error(i32);

impl Error {
    pub(crate) const NOT_FOUND: Self = Self(2);
    pub(crate) const BAD_DESCRIPTOR: Self = Self(9);
    pub(crate) const NO_ACCESS: Self = Self(13);
    pub(crate) const NO_FOLDER: Self = Self(20);
    pub(crate) const INVALID: Self = Self(22);
    pub(crate) const REFUSED: Self = Self(111);

    pub(crate) fn number(self) -> u32 {
        self.0.cast_unsigned()
    }
}

/// # Safety
/// The system call must be sound with these arguments: pointers point to memory that lives until
/// the call returns, or are null where the call permits it.
pub(crate) unsafe fn call(number: usize, arguments: [usize; 6]) -> Result<usize, Error> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: guaranteed by the caller. The registers follow the kernel's ABI.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    match result {
        -4095..=-1 => Err(Error(-(result as i32))),
        result => Ok(result.cast_unsigned()),
    }
}

/// Executes a system call that does not access memory of this program.
pub(crate) fn plain(number: usize, arguments: [usize; 4]) -> Result<usize, Error> {
    let [a, b, c, d] = arguments;
    // SAFETY: every caller passes only numbers, or null.
    unsafe { call(number, [a, b, c, d, 0, 0]) }
}

pub(crate) fn signed(number: i32) -> usize {
    (number as isize).cast_unsigned()
}

pub(crate) fn exit(code: i32) -> ! {
    loop {
        let _ = plain(number::EXIT_GROUP, [signed(code), 0, 0, 0]);
    }
}

/// Returns the child's process ID, and 0 in the child.
pub(crate) fn fork() -> Result<i32, Error> {
    // Without CLONE_VM and with a null stack, this is a fork.
    Ok(plain(number::CLONE, [CHILD as usize, 0, 0, 0])? as i32)
}

pub(crate) fn execute(
    file: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> Error {
    let pointers = [
        file as usize,
        arguments as usize,
        environment as usize,
        0,
        0,
        0,
    ];
    // SAFETY: C strings and arrays of C strings from the kernel.
    match unsafe { call(number::EXECVE, pointers) } {
        Err(error) => error,
        Ok(_) => Error::INVALID,
    }
}

/// Creates a folder with an absolute path, and its missing parents.
pub(crate) fn make_folders(path: *const c_char) {
    const SLASH: c_char = b'/' as c_char;
    let text = path.cast_mut();
    let mut length = 1;
    loop {
        // SAFETY: a C string from the kernel, of at least one character, in writable memory. The
        // loop ends at the terminator.
        let end = unsafe { text.add(length) };
        // SAFETY: as above.
        match unsafe { *end } {
            0 => return make_folder(path),
            SLASH => {
                // SAFETY: as above. Only this function uses the string during this time.
                unsafe { *end = 0 };
                make_folder(path);
                // SAFETY: as above.
                unsafe { *end = SLASH };
            }
            _ => {}
        }
        length += 1;
    }
}

fn make_folder(path: *const c_char) {
    const CURRENT_FOLDER: i32 = -100;
    let arguments = [signed(CURRENT_FOLDER), path as usize, 0o755, 0, 0, 0];
    // SAFETY: a C string from the kernel.
    let _ = unsafe { call(number::MKDIRAT, arguments) };
}

pub(crate) fn enter_folder(path: *const c_char) -> Result<(), Error> {
    // SAFETY: a C string from the kernel.
    unsafe { call(number::CHDIR, [path as usize, 0, 0, 0, 0, 0]) }.map(drop)
}

pub(crate) fn write(descriptor: i32, bytes: &[u8]) {
    let arguments = [
        signed(descriptor),
        bytes.as_ptr() as usize,
        bytes.len(),
        0,
        0,
        0,
    ];
    // SAFETY: reads the slice. A failure cannot be reported.
    let _ = unsafe { call(number::WRITE, arguments) };
}

/// Joins the cgroups whose files the agent passes as descriptors from 6, and closes the files. A
/// failure does not prevent the start, because the agent checks the result.
pub(crate) fn join_cgroups() {
    const FIRST: i32 = 6;
    const CURRENT_PROCESS: &[u8] = b"0";
    for descriptor in FIRST.. {
        let (bytes, length) = (CURRENT_PROCESS.as_ptr() as usize, CURRENT_PROCESS.len());
        // SAFETY: reads the slice.
        let joined = unsafe { call(number::WRITE, [signed(descriptor), bytes, length, 0, 0, 0]) };
        if joined == Err(Error::BAD_DESCRIPTOR) {
            return;
        }
        close(descriptor);
    }
}

pub(crate) fn close(descriptor: i32) {
    let _ = plain(number::CLOSE, [signed(descriptor), 0, 0, 0]);
}

pub(crate) fn close_by_execution(descriptor: i32) {
    const F_SETFD: usize = 2;
    const FD_CLOEXEC: usize = 1;
    let _ = plain(number::FCNTL, [signed(descriptor), F_SETFD, FD_CLOEXEC, 0]);
}

fn prctl(option: usize, value: usize) -> Result<usize, Error> {
    plain(number::PRCTL, [option, value, 0, 0])
}

pub(crate) fn die_with_parent() {
    const PR_SET_PDEATHSIG: usize = 1;
    let _ = prctl(PR_SET_PDEATHSIG, KILL as usize);
}

/// Sets the name in process lists.
pub(crate) fn name(name: &'static CStr) {
    const PR_SET_NAME: usize = 15;
    let arguments = [PR_SET_NAME, name.as_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: a static C string. An error has no effect.
    let _ = unsafe { call(number::PRCTL, arguments) };
}

/// Removes all other capabilities from the bounding set of this process.
pub(crate) fn keep_capabilities(kept: u64) -> Result<(), Error> {
    const PR_CAPBSET_READ: usize = 23;
    const PR_CAPBSET_DROP: usize = 24;
    for capability in 0..64 {
        // An error means that the kernel has no further capabilities.
        match prctl(PR_CAPBSET_READ, capability) {
            Ok(1) if kept & (1 << capability) == 0 => {
                prctl(PR_CAPBSET_DROP, capability)?;
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

pub(crate) fn begin_session() {
    let _ = plain(number::SETSID, [0; 4]);
}

pub(crate) fn begin_group() {
    let _ = plain(number::SETPGID, [0; 4]);
}

/// Makes standard input the controlling terminal of the session.
pub(crate) fn take_terminal() -> Result<(), Error> {
    const TIOCSCTTY: usize = 0x540e;
    plain(number::IOCTL, [0, TIOCSCTTY, 0, 0]).map(drop)
}

pub(crate) fn become_group(group: u64) -> Result<(), Error> {
    plain(number::SETGID, [group as usize, 0, 0, 0]).map(drop)
}

pub(crate) fn become_user(user: u64) -> Result<(), Error> {
    plain(number::SETUID, [user as usize, 0, 0, 0]).map(drop)
}

pub(crate) fn unblock_signals() {
    const SIG_SETMASK: usize = 2;
    let none = 0u64;
    let arguments = [SIG_SETMASK, (&raw const none) as usize, 0, 8, 0, 0];
    // SAFETY: reads the 8 bytes of the set, which lives until the call returns.
    let _ = unsafe { call(number::SIGPROCMASK, arguments) };
}

/// Waits for any signal. All signals are blocked.
pub(crate) fn wait_for_signal() -> i32 {
    let all = u64::MAX;
    let arguments = [(&raw const all) as usize, 0, 0, 8, 0, 0];
    // SAFETY: reads the 8 bytes of the set, which lives until the call returns.
    unsafe { call(number::SIGTIMEDWAIT, arguments) }.map_or(0, |signal| signal as i32)
}

pub(crate) fn kill(pid: i32, signal: i32) {
    let _ = plain(number::KILL, [signed(pid), signal as usize, 0, 0]);
}

pub(crate) fn own_id() -> i32 {
    plain(number::GETPID, [0; 4]).map_or(0, |id| id as i32)
}

/// Returns a child that has ended, with its status, or `None` if no child has ended.
pub(crate) fn reap() -> Option<(i32, i32)> {
    const WNOHANG: usize = 1;
    const WALL: usize = 0x4000_0000;
    let mut status = 0i32;
    let at = (&raw mut status) as usize;
    // SAFETY: the status lives until the call returns.
    match unsafe { call(number::WAIT4, [signed(-1), at, WNOHANG | WALL, 0, 0, 0]) } {
        Ok(pid) if pid > 0 => Some((pid as i32, status)),
        _ => None,
    }
}

/// Returns true if this process has a child, ended or not.
pub(crate) fn has_children() -> bool {
    wait_without_reaping(true)
}

/// Waits until a child has ended.
pub(crate) fn wait_for_child() {
    wait_without_reaping(false);
}

fn wait_without_reaping(only_look: bool) -> bool {
    const P_ALL: usize = 0;
    const WNOHANG: usize = 1;
    const WEXITED: usize = 4;
    const WNOWAIT: usize = 0x0100_0000;
    const WALL: usize = 0x4000_0000;
    let look = if only_look { WNOHANG } else { 0 };
    let none = ptr::null::<u8>() as usize;
    let arguments = [P_ALL, 0, none, WEXITED | WNOWAIT | WALL | look, 0, 0];
    // SAFETY: the pointers are null, which the call permits.
    unsafe { call(number::WAITID, arguments) }.is_ok()
}

const CURRENT_FOLDER: i32 = -100;
const O_CLOEXEC: usize = 0o2_000_000;
#[cfg(target_arch = "x86_64")]
const O_DIRECTORY: usize = 0o200_000;
#[cfg(target_arch = "aarch64")]
const O_DIRECTORY: usize = 0o40_000;

pub(crate) fn open_folder(path: &CStr) -> Result<i32, Error> {
    open(CURRENT_FOLDER, path.as_ptr() as usize, O_DIRECTORY)
}

fn open(folder: i32, path: usize, flags: usize) -> Result<i32, Error> {
    let arguments = [signed(folder), path, flags | O_CLOEXEC, 0, 0, 0];
    // SAFETY: every caller passes a pointer to bytes with a terminating zero, which live until the
    // call returns.
    unsafe { call(number::OPENAT, arguments) }.map(|descriptor| descriptor as i32)
}

/// Reads entries of a folder. Returns the number of bytes, which is 0 at the end.
pub(crate) fn entries(folder: i32, buffer: &mut [u8]) -> usize {
    let arguments = [
        signed(folder),
        buffer.as_mut_ptr() as usize,
        buffer.len(),
        0,
        0,
        0,
    ];
    // SAFETY: writes into the slice, at most its length.
    unsafe { call(number::GETDENTS64, arguments) }.unwrap_or(0)
}

/// Reads the beginning of a file. `path` has a terminating zero.
pub(crate) fn read_file(folder: i32, path: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let file = open(folder, path.as_ptr() as usize, 0).ok()?;
    let arguments = [
        signed(file),
        buffer.as_mut_ptr() as usize,
        buffer.len(),
        0,
        0,
        0,
    ];
    // SAFETY: writes into the slice, at most its length.
    let read = unsafe { call(number::READ, arguments) };
    close(file);
    read.ok()
}
