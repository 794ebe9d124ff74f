//! Waits until the names of a task's peers resolve.

use std::time::Duration;

use longshore_resolver::{
    address::split,
    names::{self, NamesError},
    render::{self, Job},
};

/// The time that a replaced task waits for the names of tasks other than the first. These tasks
/// have started before, so a name that does not resolve may belong to a task that has ended.
const AGAIN: Duration = Duration::from_secs(30);

/// Waits for the names of all tasks.
pub(super) fn wait(job: &Job, limit: Duration) -> Result<(), NamesError> {
    names::wait(&hosts(job, |_, _| true), limit).map(drop)
}

/// Like [`wait`], but for a replaced task. Unresolved names are not an error, because the pods of
/// tasks that have ended have no names, and a lost task may be replaced later. Only the first task,
/// to which the others usually connect, gets the whole time. DNS does not show if it has ended or
/// waits for a node, and a command that starts without it usually fails, which counts as a retry.
pub(super) fn wait_again(job: &Job, own: (&str, u32), limit: Duration, tell: impl Fn(&str)) {
    let leader = render::leader(job.spec());
    let is_leader = |role: &str, index| leader == Some((role, index));
    let first = hosts(job, is_leader);
    let others = hosts(job, |role, index| !is_leader(role, index));
    let found = std::thread::scope(|scope| {
        let others = scope.spawn(|| names::wait(&others, limit.min(AGAIN)).err());
        let other = leader.filter(|leader| *leader != own);
        if let Some((role, index)) = other
            && names::wait(&first, Duration::ZERO).is_err()
        {
            tell(&waits(role, index, limit));
        }
        let first = names::wait(&first, limit).err();
        [first, others.join().ok().flatten()]
    });
    for error in found.into_iter().flatten() {
        tell(&format!(
            "{error}; this task has run before, so it starts without them"
        ));
    }
}

/// The report of a replaced task before it waits for the first task.
fn waits(role: &str, index: u32, limit: Duration) -> String {
    format!(
        "the name of the first task, {role}/{index}, does not resolve: the task has ended, or its new pod has no address yet; the command starts when the name resolves, or without it after {} s (`peer_timeout`)",
        limit.as_secs()
    )
}

/// The host names of the wanted tasks.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{cell::RefCell, time::Instant};

    use longshore_resolver::ClusterSpec;

    use super::*;

    /// The reports of `worker/1` if its peers have these host names.
    fn reported(hosts: [&str; 3], own: u32) -> Vec<String> {
        let mut spec = ClusterSpec::new();
        for host in hosts {
            spec.push("worker", format!("{host}:1"));
        }
        let job = Job::new(spec);
        let lines = RefCell::new(Vec::new());
        let begin = Instant::now();
        let limit = Duration::from_secs(1);
        wait_again(&job, ("worker", own), limit, |line| {
            lines.borrow_mut().push((begin.elapsed(), line.to_owned()));
        });
        let lines = lines.into_inner();
        let at_once = lines.iter().filter(|(after, _)| *after < limit);
        assert_eq!(
            at_once.count(),
            usize::from(hosts[0] == "gone.invalid" && own != 0)
        );
        lines.into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_task_says_at_once_that_it_waits_for_the_first() {
        let lines = reported(["gone.invalid", "localhost", "localhost"], 1);
        let [at_once, at_last] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(
            at_once.starts_with(
                "the name of the first task, worker/0, does not resolve: the task has ended, or"
            ),
            "{at_once}"
        );
        assert!(at_once.ends_with("after 1 s (`peer_timeout`)"), "{at_once}");
        assert!(
            at_last.starts_with("1 of 1 peer names did not resolve within 1 s: gone.invalid")
                && at_last.ends_with("starts without them"),
            "{at_last}"
        );
    }

    #[test]
    fn it_waits_for_the_first_and_for_the_others_at_the_same_time() {
        let begin = Instant::now();
        let lines = reported(["gone.invalid", "localhost", "lost.invalid"], 1);
        assert!(begin.elapsed() < Duration::from_millis(1900));
        assert_eq!(lines.len(), 3, "{lines:?}");
    }

    #[test]
    fn only_the_wait_for_the_first_is_announced() {
        assert!(reported(["localhost", "localhost", "localhost"], 1).is_empty());
        let lines = reported(["localhost", "localhost", "lost.invalid"], 1);
        assert_eq!(lines.len(), 1, "{lines:?}");
        // A task does not wait for its own name.
        let lines = reported(["gone.invalid", "localhost", "localhost"], 0);
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}
