//! Listens at the addresses of Services and forwards to their endpoints.

mod choose;
mod connections;
mod tcp;
mod udp;

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    io,
    sync::Arc,
};

use tokio::{sync::watch, task::JoinHandle};

pub(crate) use self::connections::{Connections, Share};
use crate::{
    objects::Protocol,
    table::{Key, Listener, Target},
};

/// A listener that could not be opened.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) listener: Listener,
    pub(crate) error: io::Error,
}

/// An open listener; dropping it closes the listener, but not its connections.
#[derive(Debug)]
pub(crate) struct Open {
    target: watch::Sender<Target>,
    task: JoinHandle<()>,
}

impl Open {
    pub(crate) fn new(listener: Listener, target: Target, connections: Share) -> io::Result<Self> {
        let (target, receiver) = watch::channel(target);
        let task = match listener.protocol {
            Protocol::Udp => {
                let socket = udp::bind(listener.address)?;
                tokio::spawn(udp::serve(socket, receiver, connections))
            }
            Protocol::Tcp | Protocol::Other => {
                let socket = tcp::bind(listener.address)?;
                tokio::spawn(tcp::serve(socket, receiver, connections))
            }
        };
        Ok(Self { target, task })
    }

    /// Changes where new connections go.
    pub(crate) fn set_target(&self, target: Target) {
        self.target.send_if_modified(|before| {
            let differs = *before != target;
            *before = target;
            differs
        });
    }

    /// Closes the listener; its port is free when the future completes.
    pub(crate) async fn close(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The listeners of all Services.
#[derive(Debug)]
pub(crate) struct Forwarder {
    open: HashMap<Key, BTreeMap<Listener, Open>>,
    connections: Arc<Connections>,
}

impl Forwarder {
    pub(crate) fn new() -> Self {
        Self {
            open: HashMap::new(),
            connections: Arc::default(),
        }
    }

    /// Opens, changes and closes the listeners of a Service so that they match `wanted`. Returns
    /// the listeners that cannot be opened.
    pub(crate) async fn apply(
        &mut self,
        service: &Key,
        wanted: BTreeMap<Listener, Target>,
    ) -> Vec<Failed> {
        let mut open = self.open.remove(service).unwrap_or_default();
        let gone: Vec<Listener> = open
            .keys()
            .filter(|listener| !wanted.contains_key(listener))
            .copied()
            .collect();
        for listener in gone {
            if let Some(listener) = open.remove(&listener) {
                listener.close().await;
            }
        }
        let mut failed = Vec::new();
        let share = self.connections.share(&service.namespace);
        for (listener, target) in wanted {
            if let Some(known) = open.get(&listener) {
                known.set_target(target);
                continue;
            }
            match Open::new(listener, target, share.clone()) {
                Ok(new) => {
                    open.insert(listener, new);
                }
                Err(error) => failed.push(Failed { listener, error }),
            }
        }
        match self.open.entry(service.clone()) {
            Entry::Vacant(vacant) if !open.is_empty() => {
                vacant.insert(open);
            }
            Entry::Vacant(_) | Entry::Occupied(_) => {}
        }
        failed
    }
}

#[cfg(test)]
mod tests;
