//! The decisions of the first task of a run whose tasks restart together. Pure.
//!
//! An attempt starts when all tasks are connected and no command runs. It ends when all commands
//! have succeeded, when the first command has failed, or when a task is lost. After a failure, only
//! the pod of that task ends: its Job counts it and replaces it. The others keep their pods.

use std::collections::BTreeMap;

use longshore_diagnosis::names::Task;

use super::messages::{Order, Report};

/// A connection of a task.
pub(super) type Connection = u64;

/// The state of a task, as known to the first task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The task is not connected.
    Away,
    /// The task waits for the next attempt.
    Ready,
    Running,
    Succeeded,
    /// The task has not yet reported that its command was ended.
    Stopping,
    /// The task failed first, and its pod ends.
    Failed,
}

#[derive(Debug)]
struct Member {
    service: bool,
    connection: Option<Connection>,
    state: State,
    replaced: u32,
}

/// The first task's view of the run.
#[derive(Debug)]
pub(super) struct Leader {
    members: BTreeMap<Task, Member>,
    /// The number of the last attempt, or 0.
    attempt: u32,
    is_running: bool,
    is_done: bool,
}

/// Orders with their connections, in the order in which they are sent.
pub(super) type Orders = Vec<(Connection, Order)>;

impl Leader {
    /// The state before any task has joined. `tasks` contains for each task true if it belongs to a
    /// service role.
    pub(super) fn new(tasks: impl IntoIterator<Item = (Task, bool)>) -> Self {
        let member = |(task, service)| {
            let member = Member {
                service,
                connection: None,
                state: State::Away,
                replaced: 0,
            };
            (task, member)
        };
        Self {
            members: tasks.into_iter().map(member).collect(),
            attempt: 0,
            is_running: false,
            is_done: false,
        }
    }

    /// A task has joined over a new connection. `None` if the run does not have this task.
    pub(super) fn joined(&mut self, connection: Connection, report: &Report) -> Option<Orders> {
        let (task, Report::Join { replaced, last, .. }) = (report.joining()?, report) else {
            return None;
        };
        let member = self.members.get_mut(&task)?;
        member.connection = Some(connection);
        member.state = State::Ready;
        member.replaced = member.replaced.max(*replaced);
        self.attempt = self.attempt.max(*last);
        if self.is_done {
            return Some(vec![(connection, Order::Done)]);
        }
        let mut orders = Vec::new();
        if self.is_running {
            orders = self.restart(&format!("{task} was started again"));
        }
        orders.extend(self.start());
        Some(orders)
    }

    /// A task has sent a report.
    pub(super) fn reported(&mut self, connection: Connection, report: &Report) -> Orders {
        let attempt = self.attempt;
        let is_running = self.is_running;
        let Some((task, member)) = self.member(connection) else {
            return Orders::new();
        };
        match report {
            Report::Ended { attempt: of, code } if *of == attempt && is_running => {
                let task = task.clone();
                if *code == 0 {
                    member.state = State::Succeeded;
                    return self.finish();
                }
                member.state = State::Failed;
                let mut orders = self.restart(&format!("{task} ended with exit code {code}"));
                orders.push((connection, Order::Fail));
                orders
            }
            Report::Stopped if member.state == State::Stopping => {
                member.state = State::Ready;
                self.start()
            }
            // A command that fails while all are being ended does not count as a further failure.
            _ => Orders::new(),
        }
    }

    /// A connection was lost.
    pub(super) fn lost(&mut self, connection: Connection) -> Orders {
        let Some((task, member)) = self.member(connection) else {
            return Orders::new();
        };
        let task = task.clone();
        member.connection = None;
        member.state = State::Away;
        match self.is_running && !self.is_done {
            true => self.restart(&format!("the connection to {task} was lost")),
            false => Orders::new(),
        }
    }

    fn member(&mut self, connection: Connection) -> Option<(&Task, &mut Member)> {
        let mut members = self.members.iter_mut();
        members.find(|(_, member)| member.connection == Some(connection))
    }

    /// Ends all commands.
    fn restart(&mut self, reason: &str) -> Orders {
        self.is_running = false;
        let mut orders = Orders::new();
        for member in self.members.values_mut() {
            let runs = matches!(member.state, State::Running | State::Succeeded);
            if let Some(connection) = member.connection.filter(|_| runs) {
                member.state = State::Stopping;
                let reason = reason.to_owned();
                orders.push((connection, Order::Stop { reason }));
            }
        }
        orders
    }

    /// Starts an attempt if all tasks are ready. Its number is higher than all earlier ones: if the
    /// pod of the first task was replaced, it learns the last number from the others, or uses at
    /// least the number of replaced pods.
    fn start(&mut self) -> Orders {
        let mut members = self.members.values();
        if self.is_running || !members.all(|member| member.state == State::Ready) {
            return Orders::new();
        }
        let replaced = self.members.values().map(|member| member.replaced);
        let replaced = replaced.fold(0, u32::saturating_add);
        self.attempt = self.attempt.max(replaced).saturating_add(1);
        self.is_running = true;
        let attempt = self.attempt;
        for member in self.members.values_mut() {
            member.state = State::Running;
        }
        self.to_all(&Order::Start { attempt })
    }

    /// Ends the run if all tasks have succeeded, except tasks of service roles.
    fn finish(&mut self) -> Orders {
        let mut own = self.members.values().filter(|member| !member.service);
        self.is_done = own.all(|member| member.state == State::Succeeded);
        match self.is_done {
            true => self.to_all(&Order::Done),
            false => Orders::new(),
        }
    }

    /// An order to all connected tasks.
    pub(super) fn to_all(&self, order: &Order) -> Orders {
        let connections = self.members.values().filter_map(|member| member.connection);
        connections.map(|to| (to, order.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TASKS: [(&str, u32, bool); 3] =
        [("ps", 0, true), ("worker", 0, false), ("worker", 1, false)];

    fn leader() -> Leader {
        Leader::new(TASKS.map(|(role, index, service)| {
            let role = role.to_owned();
            (Task { role, index }, service)
        }))
    }

    fn join(task: usize, replaced: u32, last: u32) -> Report {
        let (role, index, _) = TASKS[task];
        Report::Join {
            role: role.to_owned(),
            index,
            replaced,
            last,
        }
    }

    /// A run in its first attempt, with the connections 0, 1 and 2.
    fn running() -> Leader {
        let mut leader = leader();
        assert_eq!(leader.joined(0, &join(0, 0, 0)).unwrap(), []);
        assert_eq!(leader.joined(1, &join(1, 0, 0)).unwrap(), []);
        let orders = leader.joined(2, &join(2, 0, 0)).unwrap();
        assert_eq!(orders, all(&[0, 1, 2], 1));
        leader
    }

    fn all(connections: &[u64], attempt: u32) -> Orders {
        let order = Order::Start { attempt };
        connections.iter().map(|&to| (to, order.clone())).collect()
    }

    fn ended(attempt: u32, code: i32) -> Report {
        Report::Ended { attempt, code }
    }

    fn stop(reason: &str) -> Order {
        let reason = reason.to_owned();
        Order::Stop { reason }
    }

    #[test]
    fn the_first_failure_ends_its_pod_and_all_start_again_with_the_next_one() {
        let mut leader = running();
        let orders = leader.reported(2, &ended(1, 137));
        let because = stop("worker/1 ended with exit code 137");
        assert_eq!(
            orders,
            [(0, because.clone()), (1, because), (2, Order::Fail)]
        );
        // This failure is a consequence, and does not end another pod.
        assert_eq!(leader.reported(1, &ended(1, 1)), []);
        assert_eq!(leader.lost(2), []);
        assert_eq!(leader.reported(0, &Report::Stopped), []);
        assert_eq!(leader.reported(1, &Report::Stopped), []);
        // The new pod of the task.
        assert_eq!(
            leader.joined(3, &join(2, 1, 0)).unwrap(),
            all(&[0, 1, 3], 2)
        );
    }

    #[test]
    fn a_new_pod_waits_until_the_others_have_ended_their_commands() {
        let mut leader = running();
        let because = stop("the connection to worker/1 was lost");
        assert_eq!(leader.lost(2), [(0, because.clone()), (1, because)]);
        assert_eq!(leader.joined(3, &join(2, 1, 0)).unwrap(), []);
        assert_eq!(leader.reported(0, &Report::Stopped), []);
        assert_eq!(leader.reported(1, &Report::Stopped), all(&[0, 1, 3], 2));
    }

    #[test]
    fn a_task_that_is_back_before_its_loss_is_known_restarts_all() {
        let mut leader = running();
        let because = stop("worker/0 was started again");
        let orders = leader.joined(9, &join(1, 1, 0)).unwrap();
        assert_eq!(orders, [(0, because.clone()), (2, because)]);
        // The old connection does not belong to a task any more.
        assert_eq!(leader.lost(1), []);
    }

    #[test]
    fn the_run_is_done_when_all_but_services_have_succeeded() {
        let mut leader = running();
        assert_eq!(leader.reported(1, &ended(1, 0)), []);
        let orders = leader.reported(2, &ended(1, 0));
        let done = [0, 1, 2].map(|to| (to, Order::Done));
        assert_eq!(orders, done);
        assert_eq!(leader.lost(1), []);
        // The pod ended before it received the order.
        let orders = leader.joined(7, &join(1, 1, 1)).unwrap();
        assert_eq!(orders, [(7, Order::Done)]);
    }

    #[test]
    fn a_task_that_has_succeeded_runs_again() {
        let mut leader = running();
        leader.reported(1, &ended(1, 0));
        let orders = leader.reported(0, &ended(1, 3));
        let because = stop("ps/0 ended with exit code 3");
        assert_eq!(
            orders,
            [(1, because.clone()), (2, because), (0, Order::Fail)]
        );
    }

    #[test]
    fn the_number_of_an_attempt_is_never_repeated() {
        // The pod of the first task was replaced, but the others know the last attempt.
        let mut next = leader();
        next.joined(0, &join(0, 1, 0)).unwrap();
        next.joined(1, &join(1, 0, 4)).unwrap();
        assert_eq!(next.joined(2, &join(2, 0, 4)).unwrap(), all(&[0, 1, 2], 5));
        // All pods were replaced at the same time.
        let mut next = leader();
        next.joined(0, &join(0, 1, 0)).unwrap();
        next.joined(1, &join(1, 2, 0)).unwrap();
        assert_eq!(next.joined(2, &join(2, 1, 0)).unwrap(), all(&[0, 1, 2], 5));
    }

    #[test]
    fn what_does_not_belong_to_the_attempt_is_ignored() {
        let mut leader = running();
        assert_eq!(leader.reported(1, &ended(7, 1)), []);
        assert_eq!(leader.reported(8, &ended(1, 1)), []);
        assert_eq!(leader.reported(1, &Report::Stopped), []);
        let stranger = Report::Join {
            role: "worker".to_owned(),
            index: 2,
            replaced: 0,
            last: 0,
        };
        assert_eq!(leader.joined(9, &stranger), None);
        assert_eq!(leader.joined(9, &Report::Beat), None);
    }
}
