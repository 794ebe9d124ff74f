//! What happens between `clone` and `execve`, and the small init of a
//! container.
//!
//! The agent lives in a process with many threads, so the child may only make
//! system calls: no allocation, no locks, no panics. Everything it needs is
//! computed before, in [`Program`].
#![allow(unsafe_code)]

use std::{
    ffi::{CString, c_char, c_int},
    io,
    os::fd::{OwnedFd, RawFd},
    ptr,
};

use tokio::io::{Interest, unix::AsyncFd};

/// One step of making the container's view of the files.
#[derive(Debug)]
pub(super) enum Step {
    Private,
    Tmpfs {
        at: CString,
        options: CString,
    },
    Folder {
        at: CString,
    },
    File {
        at: CString,
    },
    Link {
        to: CString,
        at: CString,
    },
    Bind {
        from: CString,
        at: CString,
        optional: bool,
    },
    ReadOnly {
        at: CString,
    },
    Processes {
        at: CString,
    },
    Pivot {
        root: CString,
        old: CString,
    },
    Enter {
        root: CString,
    },
}

/// Which part of the start failed; goes through the error pipe as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Session = 1,
    Descriptors = 2,
    UserMap = 3,
    View = 4,
    Hostname = 5,
    Fork = 6,
    User = 7,
    WorkingFolder = 8,
    Execute = 9,
}

impl Stage {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        [
            Self::Session,
            Self::Descriptors,
            Self::UserMap,
            Self::View,
            Self::Hostname,
            Self::Fork,
            Self::User,
            Self::WorkingFolder,
            Self::Execute,
        ]
        .into_iter()
        .find(|stage| *stage as u32 == number)
    }
}

/// A null-terminated array of C strings that owns them.
pub(super) struct Strings {
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

// SAFETY: the pointers lead into `_owned`, which moves with them and is never
// changed; a CString's buffer does not move when the CString does.
unsafe impl Send for Strings {}

impl Strings {
    pub(super) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Self {
            pointers,
            _owned: owned,
        }
    }
}

/// The user a command runs as.
#[derive(Debug, Clone, Default)]
pub(super) struct User {
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) groups: Vec<u32>,
}

/// All that the child needs, made before it exists.
pub(super) struct Program {
    /// `CLONE_NEW…` flags; 0 for none.
    pub(super) namespaces: c_int,
    /// Contents of `uid_map` and `gid_map`, in a new user namespace.
    pub(super) user_map: Option<(CString, CString)>,
    pub(super) steps: Vec<Step>,
    pub(super) hostname: Option<CString>,
    /// Files to try, in order; empty: wait for TERM and end with 0.
    pub(super) candidates: Vec<CString>,
    pub(super) arguments: Strings,
    pub(super) environment: Strings,
    pub(super) working_folder: CString,
    pub(super) user: Option<User>,
    /// Standard input, output, error.
    pub(super) streams: [RawFd; 3],
    /// Where to say what failed; closed by success.
    pub(super) errors: RawFd,
}

/// The signal that asks a container's init to kill the command's process group
/// and end; used where there is no PID namespace to do it.
pub(super) const KILL_GROUP: c_int = libc::SIGIO;

const ERRORS: RawFd = 3;

fn errno() -> c_int {
    // SAFETY: reads this thread's errno, which stays valid after clone.
    unsafe { *libc::__errno_location() }
}

/// A `fork` by the raw system call, so that no handler of `pthread_atfork` runs
/// and namespaces can be made with it. Returns the pid, 0 in the child, or -1.
///
/// # Safety
/// The child may only make system calls until it executes a program or exits.
unsafe fn fork_into(namespaces: c_int) -> libc::pid_t {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with a null stack this is fork: the child
    // has its own copy of the memory and goes on on the same stack.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) as libc::pid_t }
}

/// Starts the container's init. All signals must be blocked in this thread, so
/// that no handler of the host process runs in the child.
pub(super) fn start(program: &Program) -> Result<libc::pid_t, c_int> {
    // SAFETY: the child runs `init`, which only makes system calls.
    let pid = unsafe { fork_into(program.namespaces) };
    match pid {
        0 => init(program),
        -1 => Err(errno()),
        pid => Ok(pid),
    }
}

/// Runs `steps` in a child in new namespaces and gives 0, or the errno of the
/// first step that failed: what the kernel allows.
pub(super) fn try_out(program: &Program) -> c_int {
    // SAFETY: the child only makes system calls and exits.
    let pid = unsafe { fork_into(program.namespaces) };
    match pid {
        -1 => errno(),
        0 => {
            let result =
                write_user_map(program).and_then(|()| program.steps.iter().try_for_each(run_step));
            exit(result.err().unwrap_or(0).clamp(0, 255))
        }
        pid => {
            let mut status = 0;
            loop {
                // SAFETY: waits for the child made above.
                let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
                if waited == pid {
                    break;
                }
                if errno() != libc::EINTR {
                    return libc::ECHILD;
                }
            }
            if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                libc::EPERM
            }
        }
    }
}

/// Lets the runtime wait for a process's descriptor.
pub(super) fn register(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is a valid descriptor, never replaced, and the AsyncFd
    // closes it only after it has let go of it.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered.map_err(io::Error::from)
}

/// Blocks all signals in this thread.
pub(super) fn block_signals() {
    // SAFETY: a sigset_t is plain memory that sigfillset fills.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends this process without running anything of the host's.
    unsafe { libc::_exit(code) }
}

/// Turns -1 into errno.
fn check(result: c_int) -> Result<(), c_int> {
    if result == -1 { Err(errno()) } else { Ok(()) }
}

fn fail(stage: Stage, index: usize, error: c_int) -> ! {
    let mut record = [0u8; 12];
    record[..4].copy_from_slice(&(stage as u32).to_ne_bytes());
    record[4..8].copy_from_slice(&(index as u32).to_ne_bytes());
    record[8..].copy_from_slice(&error.to_ne_bytes());
    // SAFETY: writes 12 bytes of a local array; fewer than PIPE_BUF, so whole.
    unsafe { libc::write(ERRORS, record.as_ptr().cast(), record.len()) };
    exit(128)
}

/// The first process of the container: makes the view, starts the command,
/// passes signals on, reaps, ends with the command's code.
fn init(program: &Program) -> ! {
    let own_processes = program.namespaces & libc::CLONE_NEWPID != 0;
    let on_parent_death = if own_processes {
        libc::SIGKILL
    } else {
        KILL_GROUP
    };
    // SAFETY: prctl with integers only.
    let bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, on_parent_death, 0, 0, 0) };
    if let Err(error) = move_descriptors(program) {
        exit(if error == 0 { 1 } else { 128 });
    }
    if bound == -1 {
        fail(Stage::Session, 0, errno());
    }
    if agent_is_gone() {
        exit(1);
    }
    // SAFETY: plain system calls.
    unsafe {
        libc::setsid();
        libc::umask(0o022);
        if !own_processes {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
    }
    default_signals();
    if let Err(error) = write_user_map(program) {
        fail(Stage::UserMap, 0, error);
    }
    for (index, step) in program.steps.iter().enumerate() {
        if let Err(error) = run_step(step) {
            fail(Stage::View, index, error);
        }
    }
    if let Some(name) = &program.hostname {
        let bytes = name.as_bytes();
        // SAFETY: pointer and length of a string that lives on.
        if let Err(error) = check(unsafe { libc::sethostname(bytes.as_ptr().cast(), bytes.len()) })
        {
            fail(Stage::Hostname, 0, error);
        }
    }
    let command = if program.candidates.is_empty() {
        0
    } else {
        // SAFETY: the child runs `command`, which only makes system calls.
        match unsafe { fork_into(0) } {
            -1 => fail(Stage::Fork, 0, errno()),
            0 => command(program),
            pid => pid,
        }
    };
    // SAFETY: closes descriptors that nothing here uses any more. The error
    // pipe among them: its end says that the start succeeded.
    unsafe {
        for descriptor in 0..=ERRORS {
            libc::close(descriptor);
        }
        libc::prctl(libc::PR_SET_NAME, c"longshore-init".as_ptr(), 0, 0, 0);
    }
    supervise(command, own_processes)
}

/// Streams to 0, 1, 2, the error pipe to 3, all else closed.
fn move_descriptors(program: &Program) -> Result<(), c_int> {
    let mut high = [0; 4];
    let [input, output, error] = program.streams;
    for (slot, descriptor) in high.iter_mut().zip([input, output, error, program.errors]) {
        // First out of the way: a source may stand where another target is.
        // SAFETY: duplicates an open descriptor.
        *slot = unsafe { libc::fcntl(descriptor, libc::F_DUPFD, 10) };
        check(*slot)?;
    }
    for (target, source) in (0..).zip(high) {
        // SAFETY: duplicates onto the standard numbers of this process alone.
        check(unsafe { libc::dup2(source, target) })?;
    }
    // SAFETY: marks the error pipe so that execve closes it.
    check(unsafe { libc::fcntl(ERRORS, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: closes descriptors of this process, which has no owner of them.
    if unsafe { libc::syscall(libc::SYS_close_range, 4u32, u32::MAX, 0u32) } == -1 {
        for descriptor in 4..65_536 {
            // SAFETY: as above, for kernels without close_range.
            unsafe { libc::close(descriptor) };
        }
    }
    Ok(())
}

/// Whether the agent died before this process asked to die with it: then
/// nobody reads the error pipe.
fn agent_is_gone() -> bool {
    let mut poll = libc::pollfd {
        fd: ERRORS,
        events: 0,
        revents: 0,
    };
    // SAFETY: one pollfd on the stack, no waiting.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & libc::POLLERR != 0
}

fn default_signals() {
    // Zeros are the default action, whatever the kernel's struct looks like.
    let default = [0u64; 8];
    for signal in 1..=64 {
        // SAFETY: a zeroed action longer than the kernel's struct. By the raw
        // call, since libc refuses the signals that it keeps for itself. KILL
        // and STOP are refused, which is fine.
        unsafe {
            let none: *const u64 = ptr::null();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                none,
                8usize,
            );
        }
    }
}

fn write_user_map(program: &Program) -> Result<(), c_int> {
    let Some((users, groups)) = &program.user_map else {
        return Ok(());
    };
    write_file(c"/proc/self/uid_map", users.as_bytes())?;
    // Older kernels have no such file.
    let _ = write_file(c"/proc/self/setgroups", b"deny");
    write_file(c"/proc/self/gid_map", groups.as_bytes())
}

fn write_file(path: &std::ffi::CStr, bytes: &[u8]) -> Result<(), c_int> {
    // SAFETY: opens, writes and closes by system calls, from memory that lives on.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let result = if written == -1 { Err(errno()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

fn mount(
    from: *const c_char,
    at: &CString,
    kind: *const c_char,
    flags: libc::c_ulong,
    options: *const c_char,
) -> Result<(), c_int> {
    // SAFETY: pointers are null or lead to C strings that outlive the call.
    check(unsafe { libc::mount(from, at.as_ptr(), kind, flags, options.cast()) })
}

fn run_step(step: &Step) -> Result<(), c_int> {
    let none = ptr::null();
    match step {
        Step::Private => {
            // SAFETY: constant strings.
            check(unsafe {
                libc::mount(
                    none,
                    c"/".as_ptr(),
                    none,
                    libc::MS_REC | libc::MS_PRIVATE,
                    ptr::null(),
                )
            })
        }
        Step::Tmpfs { at, options } => {
            let tmpfs = c"tmpfs".as_ptr();
            mount(
                tmpfs,
                at,
                tmpfs,
                libc::MS_NODEV | libc::MS_NOSUID,
                options.as_ptr(),
            )
        }
        Step::Folder { at } => {
            // SAFETY: a C string that outlives the call.
            match check(unsafe { libc::mkdir(at.as_ptr(), 0o755) }) {
                Err(libc::EEXIST) => Ok(()),
                result => result,
            }
        }
        Step::File { at } => {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
            // SAFETY: as above; the new descriptor is closed at once.
            let file = unsafe { libc::open(at.as_ptr(), flags, 0o644) };
            check(file)?;
            // SAFETY: closes what was opened.
            unsafe { libc::close(file) };
            Ok(())
        }
        Step::Link { to, at } => {
            // SAFETY: C strings that outlive the call.
            check(unsafe { libc::symlink(to.as_ptr(), at.as_ptr()) })
        }
        Step::Bind { from, at, optional } => {
            let flags = libc::MS_BIND | libc::MS_REC;
            match mount(from.as_ptr(), at, none, flags, none) {
                Err(_) if *optional => Ok(()),
                result => result,
            }
        }
        Step::ReadOnly { at } => mount(none, at, none, read_only_flags(at), none),
        Step::Processes { at } => {
            let proc = c"proc".as_ptr();
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            // Refused to some user namespaces; the machine's /proc is left then.
            let _ = mount(proc, at, proc, flags, none);
            Ok(())
        }
        Step::Pivot { root, old } => {
            // SAFETY: C strings that outlive the calls.
            unsafe {
                let result = libc::syscall(libc::SYS_pivot_root, root.as_ptr(), old.as_ptr());
                check(result as c_int)?;
                check(libc::chdir(c"/".as_ptr()))
            }
        }
        Step::Enter { root } => {
            // The old root ends up mounted over the new one, and is let go of.
            // SAFETY: C strings that outlive the calls.
            unsafe {
                let here = c".".as_ptr();
                check(libc::chdir(root.as_ptr()))?;
                check(libc::syscall(libc::SYS_pivot_root, here, here) as c_int)?;
                check(libc::umount2(here, libc::MNT_DETACH))?;
                check(libc::chdir(c"/".as_ptr()))
            }
        }
    }
}

/// Flags to remount read-only; those that a user namespace may not drop are kept.
fn read_only_flags(at: &CString) -> libc::c_ulong {
    // SAFETY: statvfs fills the zeroed struct.
    let present = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(at.as_ptr(), &raw mut found) == 0 {
            found.f_flag
        } else {
            0
        }
    };
    let pairs = [
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    let mut flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
    for (seen, kept) in pairs {
        if present & seen != 0 {
            flags |= kept;
        }
    }
    flags
}

/// Becomes the container's command.
fn command(program: &Program) -> ! {
    // SAFETY: plain system calls. KILL, so that it dies with its init.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if program.namespaces & libc::CLONE_NEWPID != 0 {
            libc::setsid();
        } else {
            libc::setpgid(0, 0);
        }
    }
    if let Some(user) = &program.user
        && let Err(error) = become_user(user)
    {
        fail(Stage::User, 0, error);
    }
    // SAFETY: a C string that outlives the call.
    if let Err(error) = check(unsafe { libc::chdir(program.working_folder.as_ptr()) }) {
        fail(Stage::WorkingFolder, 0, error);
    }
    // SAFETY: an emptied signal set; no handler is left to run.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    let (arguments, environment) = (&program.arguments.pointers, &program.environment.pointers);
    let mut worst = libc::ENOENT;
    for candidate in &program.candidates {
        // SAFETY: null-terminated arrays of C strings that live on.
        unsafe { libc::execve(candidate.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            // A later folder may have one that may be run.
            libc::EACCES => worst = libc::EACCES,
            error => fail(Stage::Execute, 0, error),
        }
    }
    fail(Stage::Execute, 0, worst)
}

/// By raw system calls: libc's functions would signal threads that this
/// process does not have.
fn become_user(user: &User) -> Result<(), c_int> {
    // SAFETY: integers and a slice that lives on.
    unsafe {
        let (count, list) = (user.groups.len(), user.groups.as_ptr());
        check(libc::syscall(libc::SYS_setgroups, count, list) as c_int)?;
        if let Some(gid) = user.gid {
            check(libc::syscall(libc::SYS_setgid, gid) as c_int)?;
        }
        if let Some(uid) = user.uid {
            check(libc::syscall(libc::SYS_setuid, uid) as c_int)?;
        }
        // Dropped by the change of user.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))
    }
}

/// Reaps, passes signals on, ends with the command's code. `command` 0 means
/// that there is none: TERM or INT end it.
fn supervise(command: libc::pid_t, own_processes: bool) -> ! {
    // SAFETY: a sigset_t is plain memory that sigfillset fills.
    let all = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        all
    };
    loop {
        // SAFETY: waits for a signal; all are blocked, so none is lost, and
        // blocked signals reach a PID namespace's init although it handles none.
        let signal = unsafe { libc::sigwaitinfo(&raw const all, ptr::null_mut()) };
        match signal {
            libc::SIGCHLD => reap(command, own_processes),
            KILL_GROUP if !own_processes => {
                if command > 0 {
                    // SAFETY: the command's own process group.
                    unsafe { libc::kill(-command, libc::SIGKILL) };
                }
                exit(137)
            }
            libc::SIGTERM
            | libc::SIGINT
            | libc::SIGHUP
            | libc::SIGQUIT
            | libc::SIGUSR1
            | libc::SIGUSR2
            | libc::SIGWINCH => {
                if command > 0 {
                    // SAFETY: the command is a child that was not yet waited for.
                    unsafe { libc::kill(command, signal) };
                } else if matches!(signal, libc::SIGTERM | libc::SIGINT) {
                    exit(0)
                }
            }
            _ => {}
        }
    }
}

fn reap(command: libc::pid_t, own_processes: bool) {
    loop {
        let mut status = 0;
        // SAFETY: waits for any child without blocking.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
        if pid <= 0 {
            return;
        }
        if pid == command {
            if !own_processes {
                // SAFETY: what the command left in its process group.
                unsafe { libc::kill(-command, libc::SIGKILL) };
            }
            exit(if libc::WIFSIGNALED(status) {
                128 + libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            });
        }
    }
}
