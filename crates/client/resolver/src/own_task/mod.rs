//! Finds the task that the calling process belongs to.

use std::net::IpAddr;

use crate::{
    error::Error,
    identity::Identity,
    tasks::{Task, Tasks},
};

impl Identity {
    /// Returns the task of this identity. It matches by UID, then by name, then by
    /// host name, then by IP address, and only in the identity's namespace if that
    /// is known.
    ///
    /// # Errors
    /// [`Error::NotATask`] if no task matches, or if the match is ambiguous.
    pub fn find<'a>(&self, tasks: &'a Tasks) -> Result<&'a Task, Error> {
        let candidates: Vec<&Task> = tasks
            .iter()
            .filter(|task| {
                self.namespace
                    .as_ref()
                    .is_none_or(|own| *own == task.pod.namespace)
            })
            .collect();
        let only = |is: &dyn Fn(&Task) -> bool| {
            let mut found = candidates.iter().copied().filter(|task| is(task));
            found.next().filter(|_| found.next().is_none())
        };
        let same = |own: &Option<String>, other: &str| own.as_deref() == Some(other);
        let address = |task: &Task| {
            let mut ips = task.pod.ips.iter().filter_map(|ip| ip.parse().ok());
            ips.any(|ip: IpAddr| self.ips.contains(&ip))
        };
        only(&|task| same(&self.uid, &task.pod.uid))
            .or_else(|| only(&|task| same(&self.name, &task.pod.name)))
            .or_else(|| only(&|task| same(&self.hostname, &task.pod.name)))
            .or_else(|| only(&|task| same(&self.hostname, &task.pod.hostname)))
            .or_else(|| only(&address))
            .ok_or_else(|| Error::NotATask {
                identity: Box::new(self.clone()),
                tasks: tasks.len(),
            })
    }
}

#[cfg(test)]
mod tests;
