//! The one thread that starts containers' processes.
//!
//! One thread for all, and for as long as the agent runs: the kernel kills a
//! process "with its parent" when the parent's *thread* ends.

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::mpsc,
    thread::JoinHandle,
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::{net::unix::pipe::Receiver, sync::oneshot};

use super::{
    child::{self, Program, Step, Strings, User},
    features::Features,
    process::{Process, StartError},
    stream::{Ends, Wiring},
    view::Operation,
};

/// A command to run in a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    /// Program and arguments; empty: wait for TERM.
    pub(crate) arguments: Vec<OsString>,
    /// The whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub(crate) working_folder: PathBuf,
    /// Its host name.
    pub(crate) hostname: String,
    /// How its view of the files is made; ignored without mount namespaces.
    pub(crate) operations: Vec<Operation>,
    /// The user to run as; only root can.
    pub(crate) user: Option<(Option<u32>, Option<u32>)>,
    /// Its streams.
    pub(crate) wiring: Wiring,
}

/// A process that was started, and what it writes.
pub(crate) struct Started {
    /// The container's init.
    pub(crate) process: Process,
    /// Our ends of its streams.
    pub(crate) ends: Ends,
}

struct Request {
    program: Program,
    answer: oneshot::Sender<Result<Child, StartError>>,
    // Kept open until the child has its own.
    _ends: Vec<OwnedFd>,
}

/// A child on its way from the thread to who asked for it. If that one is gone,
/// so is the child.
struct Child {
    pid: Pid,
    descriptor: Option<OwnedFd>,
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.descriptor.is_some() {
            kill_and_reap(self.pid);
        }
    }
}

fn kill_and_reap(pid: Pid) {
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}

/// Starts processes; dropping it kills all of them.
pub(crate) struct Spawner {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    features: Features,
}

impl Spawner {
    /// Starts the thread and finds out what the kernel allows. `scratch` is an
    /// existing folder to try mounts on (nothing of it is left).
    pub(crate) async fn start(scratch: &Path) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel::<Request>();
        let (found, features) = oneshot::channel();
        let scratch = scratch.to_owned();
        let thread = std::thread::Builder::new()
            .name("longshore-spawn".to_owned())
            .spawn(move || {
                child::block_signals();
                let _ = found.send(Features::detect(&scratch));
                while let Ok(request) = queue.recv() {
                    let _ = request.answer.send(start_child(&request.program));
                }
            })?;
        let features = features
            .await
            .map_err(|_| io::Error::other("the spawn thread ended"))?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
            features,
        })
    }

    /// The same without namespaces.
    #[cfg(test)]
    pub(crate) fn without_namespaces(mut self) -> Self {
        self.features = Features::none();
        self
    }

    /// What the kernel allows.
    pub(crate) fn features(&self) -> &Features {
        &self.features
    }

    /// Starts `command` in a container of its own, and waits until it runs or
    /// failed to.
    pub(crate) async fn run(&self, command: &Command) -> Result<Started, StartError> {
        self.start_in(None, command).await
    }

    /// Starts `command` in the container of `host`; its view of the files and
    /// its host name are that container's.
    pub(crate) async fn run_in(
        &self,
        host: &Process,
        command: &Command,
    ) -> Result<Started, StartError> {
        self.start_in(Some(host), command).await
    }

    async fn start_in(
        &self,
        host: Option<&Process>,
        command: &Command,
    ) -> Result<Started, StartError> {
        let system = StartError::System;
        let owner = user(command).and_then(|user| user.uid);
        let (ends, far) = command.wiring.lay(owner).map_err(system)?;
        let (report, report_end) = io::pipe().map_err(system)?;
        let host = host.map(|host| host.descriptor().try_clone());
        let host = host.transpose().map_err(system)?;
        let report_end = OwnedFd::from(report_end);
        let mut program = compile(command, &self.features, &far, &report_end)?;
        let own_processes = host.is_none() && self.features.has_mounts();
        if let Some(host) = &host {
            program.enter = Some((host.as_raw_fd(), self.features.namespaces));
            program.namespaces = 0;
            program.user_map = None;
            program.steps = Vec::new();
            program.hostname = None;
        }
        let (answer, child) = oneshot::channel();
        let stopped = || StartError::System(io::Error::other("the node agent is stopping"));
        self.requests
            .as_ref()
            .ok_or_else(stopped)?
            .send(Request {
                program,
                answer,
                _ends: far.into_iter().chain([report_end]).chain(host).collect(),
            })
            .map_err(|_| stopped())?;
        let mut child = child.await.map_err(|_| stopped())??;
        let descriptor = child.descriptor.take().ok_or_else(stopped)?;
        let process =
            Process::new(child.pid, descriptor, own_processes).map_err(StartError::System)?;
        let mut report = Receiver::from_owned_fd(report.into()).map_err(system)?;
        super::process::read_report(&mut report, command).await?;
        Ok(Started { process, ends })
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // Ends at once: it only waits for requests.
            let _ = thread.join();
        }
    }
}

fn start_child(program: &Program) -> Result<Child, StartError> {
    let error = |code: i32| StartError::System(io::Error::from_raw_os_error(code));
    let number = child::start(program).map_err(error)?;
    let pid = Pid::from_raw(number).ok_or_else(|| error(libc::ESRCH))?;
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => Ok(Child {
            pid,
            descriptor: Some(descriptor),
        }),
        Err(refused) => {
            kill_and_reap(pid);
            Err(StartError::System(refused.into()))
        }
    }
}

/// Everything as C strings, so that the child need not allocate.
fn compile(
    command: &Command,
    features: &Features,
    streams: &[OwnedFd; 3],
    report: &OwnedFd,
) -> Result<Program, StartError> {
    let nul = |error: io::Error| StartError::System(error);
    let strings = |texts: &mut dyn Iterator<Item = OsString>| {
        texts
            .map(|text| c_string(&text))
            .collect::<io::Result<Vec<_>>>()
            .map_err(nul)
    };
    let arguments = strings(&mut command.arguments.iter().cloned())?;
    let environment = strings(&mut command.environment.iter().map(|(name, value)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        text
    }))?;
    let candidates = candidates(command).into_iter().map(PathBuf::into_os_string);
    Ok(Program {
        namespaces: features.namespaces,
        enter: None,
        user_map: features.has_user_namespace().then(identity_map),
        steps: if features.has_mounts() {
            steps(&command.operations)?
        } else {
            Vec::new()
        },
        hostname: (features.has_mounts() && !command.hostname.is_empty())
            .then(|| c_string(OsStr::new(&command.hostname)))
            .transpose()
            .map_err(nul)?,
        candidates: strings(&mut candidates.into_iter())?,
        arguments: Strings::new(arguments),
        environment: Strings::new(environment),
        working_folder: c_string(command.working_folder.as_os_str()).map_err(nul)?,
        user: user(command),
        streams: [0, 1, 2].map(|number: usize| streams[number].as_raw_fd()),
        terminal: command.wiring == Wiring::Terminal,
        errors: report.as_raw_fd(),
    })
}

/// The user to change to; only root can.
fn user(command: &Command) -> Option<User> {
    command
        .user
        .filter(|_| rustix::process::geteuid().is_root())
        .map(|(uid, gid)| User {
            uid,
            gid,
            groups: gid.into_iter().collect(),
        })
}

/// The files that a command's name may mean, by the PATH of its environment.
fn candidates(command: &Command) -> Vec<PathBuf> {
    let Some(program) = command.arguments.first() else {
        return Vec::new();
    };
    if program.as_bytes().contains(&b'/') {
        return vec![PathBuf::from(program)];
    }
    let path = command
        .environment
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |(_, value)| {
        value
    });
    // A name without candidates still has to fail as "not found".
    let found: Vec<_> = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .collect();
    if found.is_empty() {
        vec![Path::new("/usr/bin").join(program)]
    } else {
        found
    }
}

fn steps(operations: &[Operation]) -> Result<Vec<Step>, StartError> {
    let text = |path: &Path| c_string(path.as_os_str());
    let step = |operation: &Operation| {
        Ok(match operation {
            Operation::Private => Step::Private,
            Operation::Tmpfs { at, mode } => Step::Tmpfs {
                at: text(at)?,
                options: CString::new(format!("mode={mode:o}"))?,
            },
            Operation::Folder { at } => Step::Folder { at: text(at)? },
            Operation::File { at } => Step::File { at: text(at)? },
            Operation::Link { to, at } => Step::Link {
                to: text(to)?,
                at: text(at)?,
            },
            Operation::Bind { from, at, optional } => Step::Bind {
                from: text(from)?,
                at: text(at)?,
                optional: *optional,
            },
            Operation::ReadOnly { at } => Step::ReadOnly { at: text(at)? },
            Operation::Processes { at } => Step::Processes { at: text(at)? },
            Operation::Pivot { root, old } => Step::Pivot {
                root: text(root)?,
                old: text(old)?,
            },
            Operation::Enter { root } => Step::Enter { root: text(root)? },
        })
    };
    operations
        .iter()
        .map(step)
        .collect::<io::Result<_>>()
        .map_err(StartError::System)
}

/// The text as a C string; an error if it has a zero byte.
pub(super) fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Maps this process's user and group to themselves.
pub(super) fn identity_map() -> (CString, CString) {
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let line = |id: u32| CString::new(format!("{id} {id} 1")).unwrap_or_default();
    (line(user), line(group))
}
