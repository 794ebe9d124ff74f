//! Starts containers' processes.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    path::Path,
    sync::Arc,
};

use tokio::{net::unix::pipe::Receiver, sync::oneshot};

use super::{
    answering::Answering,
    child::{Limits, Listener, Program, Strings, c_string},
    command::Command,
    features::Features,
    filter,
    init::{self, Duties},
    ports::supervise,
    process::Process,
    start_error::{StartError, read_report},
    steps::steps,
    stream::{Ends, Wiring},
    workers::{Request, Workers, cgroup_files},
};

/// A started process and the agent's ends of its streams.
pub(crate) struct Started {
    /// The container's init.
    pub(crate) process: Process,
    /// The agent's ends of the process's streams.
    pub(crate) ends: Ends,
}

/// The container of a command.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// A new container.
    New,
    /// A new container that starts with the mounts of this one.
    WithMounts(&'a Process),
    /// This existing container.
    In(&'a Process),
}

impl<'a> Place<'a> {
    fn process(self) -> Option<&'a Process> {
        match self {
            Self::New => None,
            Self::WithMounts(process) | Self::In(process) => Some(process),
        }
    }
}

/// Starts processes. Dropping it kills all of them.
pub(crate) struct Spawner {
    workers: Option<Arc<Workers>>,
    features: Features,
    init: Arc<OwnedFd>,
}

impl Spawner {
    /// Detects the features of the kernel. `scratch` is an existing directory for trial mounts,
    /// which leave nothing behind.
    pub(crate) async fn start(scratch: &Path) -> io::Result<Self> {
        let init = init::file(scratch)?;
        let features = Features::of_this_process(scratch).await?;
        Ok(Self {
            workers: Some(Arc::new(Workers::new())),
            features,
            init: Arc::new(init),
        })
    }

    /// Disables namespaces.
    #[cfg(test)]
    pub(crate) fn without_namespaces(mut self) -> Self {
        self.features = Features::none();
        self
    }

    /// Returns the features that the kernel allows.
    pub(crate) fn features(&self) -> &Features {
        &self.features
    }

    /// Starts `command` in its own container, and waits until it runs or has
    /// failed to start.
    pub(crate) async fn run(&self, command: &Command) -> Result<Started, StartError> {
        self.start_at(Place::New, command).await
    }

    /// Like [`Spawner::run`], with the mounts of the container of `holder` instead of the
    /// machine's.
    pub(crate) async fn run_with_mounts(
        &self,
        holder: &Process,
        command: &Command,
    ) -> Result<Started, StartError> {
        self.start_at(Place::WithMounts(holder), command).await
    }

    /// Starts `command` in the container of `host`, with that container's file
    /// system view and host name.
    pub(crate) async fn run_in(
        &self,
        host: &Process,
        command: &Command,
    ) -> Result<Started, StartError> {
        self.start_at(Place::In(host), command).await
    }

    async fn start_at(&self, place: Place<'_>, command: &Command) -> Result<Started, StartError> {
        let system = StartError::System;
        let entering = match place.process() {
            Some(process) => Some(process.enter().await.map_err(system)?),
            None => None,
        };
        let user = command.privileges.user;
        let owner = user.filter(|_| !self.features.has_user_namespace());
        let (ends, far) = command.wiring.open(owner).map_err(system)?;
        let (report, report_end) = io::pipe().map_err(system)?;
        let other = place.process().map(|other| other.descriptor().try_clone());
        let other = other.transpose().map_err(system)?;
        let report_end = OwnedFd::from(report_end);
        let number = other.as_ref().map(AsRawFd::as_raw_fd);
        let (enter, mounts_of) = match place {
            Place::In(_) => (number, None),
            Place::New | Place::WithMounts(_) => (None, number),
        };
        let own_processes = enter.is_none() && self.features.has_mounts();
        let mut program = self.compile(command, enter, &far, &report_end)?;
        program.mounts_of = mounts_of;
        let cgroups = cgroup_files(command.cgroup.as_deref());
        program.cgroups = cgroups.iter().map(AsRawFd::as_raw_fd).collect();
        let ports = command.ports.clone().filter(|_| self.features.has_mounts());
        let sockets = ports.map(|ports| Ok((ports, UnixStream::pair()?)));
        let sockets = sockets.transpose().map_err(system)?;
        let (listener, far_listener) = match sockets {
            Some((ports, (near, far))) => (Some((ports, near)), Some(OwnedFd::from(far))),
            None => (None, None),
        };
        program.listen = far_listener.as_ref().map(|socket| Listener {
            socket: socket.as_raw_fd(),
            filter: filter::port_calls(),
        });
        let (answer, child) = oneshot::channel();
        let stopped = || StartError::System(io::Error::other("the node agent is stopping"));
        let request = Request {
            program,
            answer,
            entering,
            streams: far,
            _others: [report_end]
                .into_iter()
                .chain(other)
                .chain(far_listener)
                .chain(cgroups)
                .collect(),
        };
        let workers = self.workers.as_ref().ok_or_else(stopped)?;
        workers.send(request).map_err(system)?;
        let mut child = workers.answered(child).await.ok_or_else(stopped)??;
        let descriptor = child.descriptor.take().ok_or_else(stopped)?;
        let mut process =
            Process::new(child.pid, descriptor, own_processes).map_err(StartError::System)?;
        let mut report = Receiver::from_owned_fd(report.into()).map_err(system)?;
        read_report(&mut report, command).await?;
        if let Some((ports, near)) = listener {
            let answering = Answering {
                workers: Arc::downgrade(workers),
                init: self.init.clone(),
                cgroup: command.cgroup.clone(),
            };
            match supervise(&near.into(), ports, answering) {
                Ok(supervision) if own_processes => process.supervise(supervision),
                Ok(supervision) => supervision.until_over(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tracing::debug!("this kernel offers containers no ports of their own");
                }
                // Dropping the process ends it, because its system calls would fail.
                Err(error) => return Err(StartError::System(error)),
            }
        }
        Ok(Started { process, ends })
    }

    /// Converts everything to C strings, so that the child does not allocate. `enter` is the init
    /// of an existing container to run in.
    fn compile(
        &self,
        command: &Command,
        enter: Option<RawFd>,
        streams: &[OwnedFd; 3],
        report: &OwnedFd,
    ) -> Result<Program, StartError> {
        let system = StartError::System;
        let features = &self.features;
        let privileges = &command.privileges;
        let in_user_namespace = features.has_user_namespace();
        let mut program = Program {
            namespaces: 0,
            enter: enter.map(|host| (host, features.namespaces)),
            mounts_of: None,
            cgroups: Vec::new(),
            user_map: None,
            steps: Vec::new(),
            hostname: None,
            limits: Limits {
                groups: privileges.groups.clone().filter(|_| !in_user_namespace),
                no_new_privileges: privileges.no_new_privileges,
                system_calls: if privileges.filters_system_calls {
                    filter::instructions(privileges.capabilities)
                } else {
                    Vec::new()
                },
                capabilities: privileges.capabilities.filter(|_| in_user_namespace),
            },
            listen: None,
            init: self.init.as_raw_fd(),
            arguments: Strings::new(Vec::new()),
            environment: Strings::new(init::environment(command).map_err(system)?),
            streams: [0, 1, 2].map(|number: usize| streams[number].as_raw_fd()),
            errors: report.as_raw_fd(),
        };
        if enter.is_none() {
            program.namespaces = features.namespaces;
            program.user_map = in_user_namespace.then(|| privileges.user_map());
            if features.has_mounts() {
                program.steps = steps(&command.operations)?;
                let name = Some(&command.hostname).filter(|name| !name.is_empty());
                let name = name.map(|name| c_string(OsStr::new(name)));
                program.hostname = name.transpose().map_err(system)?;
            }
        }
        let duties = Duties {
            own_processes: program.has_own_processes(),
            kills_leftovers: program.kills_leftovers(),
            session: program.has_session(),
            terminal: command.wiring == Wiring::Terminal,
            privileges: !in_user_namespace,
        };
        program.arguments = Strings::new(init::arguments(command, duties).map_err(system)?);
        Ok(program)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // If another owner is starting a process, it is the last owner and ends the threads.
        if let Some(workers) = self.workers.take().and_then(Arc::into_inner) {
            workers.end();
        }
    }
}
