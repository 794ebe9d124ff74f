//! Waits until the names of a task's peers resolve.

use std::time::Duration;

use longshore_resolver::{
    address::split,
    names::{self, NamesError},
    render::{self, Job},
};

use super::messages::tell;

/// How long a task that was replaced waits for the names of tasks other than the first. They have
/// started before, so a name that does not resolve may be that of a task that has ended.
const AGAIN: Duration = Duration::from_secs(30);

/// Waits for the names of all tasks.
pub(super) fn wait(job: &Job, limit: Duration) -> Result<(), NamesError> {
    names::wait(&hosts(job, |_, _| true), limit).map(drop)
}

/// As [`wait`], for a task that was replaced. A name that does not resolve is no error: the pods of
/// tasks that have ended have no names, and a lost task may be replaced later. Only the first task,
/// to which the others usually connect, gets the whole time.
pub(super) fn wait_again(job: &Job, limit: Duration) {
    let leader = render::leader(job.spec());
    let is_leader = |role: &str, index| leader == Some((role, index));
    let first = names::wait(&hosts(job, is_leader), limit);
    let others = hosts(job, |role, index| !is_leader(role, index));
    let others = names::wait(&others, limit.min(AGAIN));
    for error in [first.err(), others.err()].into_iter().flatten() {
        tell(&format!(
            "{error}; this task has run before, so it starts without them"
        ));
    }
}

/// The host names of some tasks.
fn hosts(job: &Job, is_wanted: impl Fn(&str, u32) -> bool) -> Vec<String> {
    let spec = job.spec();
    let mut hosts = Vec::new();
    for role in spec.jobs() {
        for (index, address) in spec.tasks(role) {
            if is_wanted(role, index) {
                hosts.push(split(address).0.to_owned());
            }
        }
    }
    hosts
}
