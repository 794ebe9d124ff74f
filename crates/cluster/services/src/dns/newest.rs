//! A limited set of tasks for clients that share one address. When the limit is reached, the oldest
//! task is aborted, so that a client whose queries are never answered cannot block the other
//! clients, whose queries take milliseconds.

use std::collections::VecDeque;

use tokio::task::{AbortHandle, JoinSet};

/// A limited number of running tasks. Dropping it aborts them.
#[derive(Debug)]
pub(super) struct Newest {
    tasks: JoinSet<()>,
    /// The tasks from the oldest to the newest.
    handles: VecDeque<AbortHandle>,
    limit: usize,
}

impl Newest {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            handles: VecDeque::new(),
            limit,
        }
    }

    /// Starts a task; ends the oldest one if the limit is reached.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        if self.handles.len() >= self.limit {
            self.handles.retain(|handle| !handle.is_finished());
        }
        while self.handles.len() >= self.limit {
            self.handles.pop_front().inspect(AbortHandle::abort);
        }
        self.handles.push_back(self.tasks.spawn(task));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn the_oldest_tasks_are_given_up() {
        let mut tasks = Newest::new(3);
        let (sender, mut ended) = mpsc::unbounded_channel();
        for number in 0..5 {
            let guard = Guard(sender.clone(), number);
            tasks.spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
        }
        assert_eq!(ended.recv().await, Some(0));
        assert_eq!(ended.recv().await, Some(1));
        let (done, is_done) = tokio::sync::oneshot::channel();
        tasks.spawn(async move { done.send(()).unwrap() });
        is_done.await.unwrap();
        assert_eq!(ended.recv().await, Some(2));
        // A task that has ended does not count.
        tokio::task::yield_now().await;
        tasks.spawn(std::future::ready(()));
        assert!(ended.try_recv().is_err());
    }

    /// Sends its number when it is dropped.
    struct Guard(mpsc::UnboundedSender<u32>, u32);

    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.send(self.1);
        }
    }
}
