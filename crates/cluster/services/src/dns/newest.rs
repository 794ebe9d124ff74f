//! Tasks of clients that share one address: if there are too many, the oldest is given up. A
//! client whose queries are never answered then cannot keep out the queries of others, which are
//! answered in milliseconds.

use std::collections::VecDeque;

use tokio::task::{AbortHandle, JoinSet};

/// Tasks, of which only so many run at a time. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Newest {
    tasks: JoinSet<()>,
    /// In the order of their beginning.
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
        // The task that has ended makes room.
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
