//! Restarts of all tasks of a run when one fails, without a client and without an operator.
//!
//! The program of each task keeps running while its command ends and starts again, so the pods keep
//! their nodes and volumes. All programs are connected to the first task's program, which decides
//! (`leader`). Only the pod of the task that failed first ends, with the exit code of its command.
//! The Job then counts the failure, and replaces the pod as often as `retries` allows. A task whose
//! pod was lost joins again with its new pod; if it was the first task, the others wait until its
//! new pod listens.
//!
//! A task that has succeeded waits for the others, because it must run again if one of them
//! fails. Connections are mutually authenticated with a key in the run's Secret.

mod connect;
mod handshake;
mod leader;
mod listen;
mod member;
mod messages;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, TcpListener},
};

use longshore_diagnosis::names::Task;
use longshore_resolver::address::split;

use super::{BootstrapError, prepare::Prepared, supervise::Supervisor};
use crate::{pod::PodConfig, restarts::Together};
use leader::Leader;
use member::Member;

/// Runs the command of a task together with the others, until all tasks end. `cannot_run` describes
/// why the command could not be started.
pub(super) fn run(
    prepared: &mut Prepared,
    together: &Together,
    cannot_run: impl Fn(io::Error) -> BootstrapError,
) -> Result<i32, BootstrapError> {
    let config = &prepared.config;
    let first = config.roles.first().and_then(|role| {
        let address = role.tasks.first()?;
        Some((role.name.clone(), split(address).0.to_owned()))
    });
    let Some((role, host)) = first else {
        return Err(BootstrapError::NoCommand);
    };
    let (task, run) = (prepared.task.clone(), config.run.clone());
    let is_first = task.role == role && task.index == 0;
    let mut address = format!("{host}:{}", together.port);
    if is_first {
        let listener = bind(together.port)?;
        // The task's own listening address, because its name may resolve only later.
        if let Ok(own) = listener.local_addr() {
            address = match own.ip().is_unspecified() {
                true => format!("{}:{}", Ipv4Addr::LOCALHOST, own.port()),
                false => own.to_string(),
            };
        }
        listen::listen(listener, leader(config), together.key.clone(), run.clone());
    }
    let mut supervisor = Supervisor::new().map_err(&cannot_run)?;
    let mailbox = supervisor.mailbox();
    connect::connect(address, together.key.clone(), run, mailbox);
    Member::new(prepared, together, is_first).run(&mut supervisor, &cannot_run)
}

/// Binds to the pod's address if it is known, because only the pod can listen there.
fn bind(port: u16) -> Result<TcpListener, BootstrapError> {
    let own = std::env::var("POD_IP").ok();
    let own: Option<IpAddr> = own.and_then(|text| text.parse().ok());
    let address = (own.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), port);
    TcpListener::bind(address).map_err(|source| BootstrapError::Listen {
        address: format!("{}:{port}", address.0),
        source,
    })
}

fn leader(config: &PodConfig) -> Leader {
    let tasks = config.roles.iter().flat_map(|role| {
        let indices = (0..).zip(&role.tasks);
        indices.map(|(index, _)| {
            let task = Task {
                role: role.name.clone(),
                index,
            };
            (task, role.service)
        })
    });
    Leader::new(tasks)
}
