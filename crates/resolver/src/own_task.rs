//! Which of the tasks a process in a pod is.

use std::net::IpAddr;

use crate::{
    error::Error,
    identity::Identity,
    tasks::{Task, Tasks},
};

impl Identity {
    /// The task that it is: by uid, else by name, else by host name, else by
    /// address; within its namespace, if that is known.
    ///
    /// # Errors
    /// [`Error::NotATask`] when it is none of them, or not clearly one.
    pub fn find<'a>(&self, tasks: &'a Tasks) -> Result<&'a Task, Error> {
        let here: Vec<&Task> = tasks
            .iter()
            .filter(|task| {
                self.namespace
                    .as_ref()
                    .is_none_or(|own| *own == task.pod.namespace)
            })
            .collect();
        let only = |is: &dyn Fn(&Task) -> bool| {
            let mut found = here.iter().copied().filter(|task| is(task));
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
#[path = "own_task_tests.rs"]
mod tests;
