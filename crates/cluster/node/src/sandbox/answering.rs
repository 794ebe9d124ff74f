//! Starts the process that answers a container's calls about addresses (`init/ports.rs`).

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::{Arc, Weak},
};

use tokio::sync::oneshot;

use super::{
    child::Program,
    ports::StartAnswering,
    process::Process,
    start_error::StartError,
    workers::{Child, Request, Workers, cgroup_files},
};
use crate::cgroups::Group;

/// Starts the process that answers the calls of a container, in the container's cgroup.
pub(super) struct Answering {
    pub(super) workers: Weak<Workers>,
    pub(super) init: Arc<OwnedFd>,
    pub(super) cgroup: Option<Arc<Group>>,
}

impl StartAnswering for Answering {
    async fn start(&self, socket: OwnedFd, listener: OwnedFd) -> Option<io::Result<Process>> {
        let workers = self.workers.upgrade()?;
        let requested = self.request(&workers, socket, listener);
        drop(workers);
        let child = match requested {
            Ok(child) => child.await.ok()?,
            Err(error) => return Some(Err(error)),
        };
        let process = child.map_err(io::Error::other).and_then(|mut child| {
            let descriptor = child.descriptor.take();
            let descriptor = descriptor.ok_or(io::ErrorKind::NotFound)?;
            Process::new(child.pid, descriptor, true)
        });
        Some(process)
    }
}

impl Answering {
    fn request(
        &self,
        workers: &Workers,
        socket: OwnedFd,
        listener: OwnedFd,
    ) -> io::Result<oneshot::Receiver<Result<Child, StartError>>> {
        // The socket is also used for errors, because the agent only sees that the process ends.
        let errors = socket.try_clone()?;
        let cgroups = cgroup_files(self.cgroup.as_deref());
        let program = Program::of_init(
            self.init.as_raw_fd(),
            vec![CString::from(c"longshore-ports")],
            [socket.as_raw_fd(), listener.as_raw_fd(), errors.as_raw_fd()],
            &cgroups,
        );
        let (answer, child) = oneshot::channel();
        workers.send(Request {
            program,
            answer,
            entering: None,
            streams: [socket, listener, errors],
            _others: cgroups,
        })?;
        Ok(child)
    }
}
