//! Runs long work off the threads that serve requests. The number of tasks is limited, in total and
//! for each user, so that one user cannot delay the requests of others.

use std::sync::LazyLock;

use crate::{
    limits,
    shares::{Share, Shares},
    status_error::StatusError,
    user::User,
};

static PLACES: LazyLock<Shares> =
    LazyLock::new(|| Shares::new(limits::OFFLOADED_TASKS, limits::OFFLOADED_TASKS_OF_USER));

/// Runs work that is limited in other ways, for example by the size of a body.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusError> {
    run(PLACES.whole(), work).await
}

/// Runs work of a user. It waits while the user's other tasks take the whole share.
pub(crate) async fn offload_for<T: Send + 'static>(
    user: &User,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusError> {
    run(PLACES.of(user), work).await
}

/// The task keeps its share even if the client no longer waits for it.
async fn run<T: Send + 'static>(
    share: Share,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusError> {
    let place = share.take().await;
    let work = move || {
        let _place = place;
        work()
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| StatusError::internal("the server met a fault of its own"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex, mpsc};

    use tokio::task::JoinSet;

    use super::*;

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            ..User::default()
        }
    }

    #[tokio::test]
    async fn the_tasks_of_one_user_do_not_hold_up_others() {
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let begun = Arc::new(Barrier::new(limits::OFFLOADED_TASKS_OF_USER + 1));
        let mut tasks = JoinSet::new();
        for _ in 0..limits::OFFLOADED_TASKS * 2 {
            let (released, begun) = (released.clone(), begun.clone());
            tasks.spawn(async move {
                let work = move || {
                    begun.wait();
                    // Until the sender is dropped.
                    let _ = released.lock().map(|released| released.recv());
                };
                offload_for(&user("greedy"), work).await
            });
        }
        // The tasks that fit into the share run, and wait.
        let wait = begun.clone();
        assert!(
            tokio::task::spawn_blocking(move || wait.wait())
                .await
                .is_ok()
        );
        let others = [user("other"), (*User::administrator()).clone()];
        for other in others {
            assert_eq!(offload_for(&other, || 7).await.ok(), Some(7));
        }
        assert_eq!(offload(|| 7).await.ok(), Some(7));
        assert!(tasks.try_join_next().is_none());
        // No further task begins.
        tasks.shutdown().await;
        drop(release);
    }
}
