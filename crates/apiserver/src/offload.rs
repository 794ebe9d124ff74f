//! Long work off the threads that serve requests. The number of tasks is limited, and each user has a share
//! of them, so that the requests of one user do not hold up those of others.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{limits, status_error::StatusError, user::User};

/// Runs work whose amount is limited otherwise, for example by the size of a body.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusError> {
    run(None, work).await
}

/// Runs work of a user. It waits while the user's other tasks take the whole share.
/// Administrators and nodes have no share.
pub(crate) async fn offload_for<T: Send + 'static>(
    user: &User,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusError> {
    let share = match share(user) {
        // The semaphores are never closed.
        Some(share) => share.acquire_owned().await.ok(),
        None => None,
    };
    run(share, work).await
}

/// The task keeps its place also if its client no longer waits for it.
async fn run<T: Send + 'static>(
    share: Option<OwnedSemaphorePermit>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusError> {
    static ALL: Semaphore = Semaphore::const_new(limits::OFFLOADED_TASKS);
    let place = ALL.acquire().await;
    let work = move || {
        let _held = (share, place);
        work()
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| StatusError::internal("the server met a fault of its own"))
}

fn share(user: &User) -> Option<Arc<Semaphore>> {
    static SHARES: LazyLock<Mutex<HashMap<String, Weak<Semaphore>>>> =
        LazyLock::new(Mutex::default);
    if user.is_master() || user.node().is_some() {
        return None;
    }
    let mut shares = SHARES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(share) = shares.get(&user.name).and_then(Weak::upgrade) {
        return Some(share);
    }
    shares.retain(|_, share| share.strong_count() > 0);
    let share = Arc::new(Semaphore::new(limits::OFFLOADED_TASKS_OF_USER));
    shares.insert(user.name.clone(), Arc::downgrade(&share));
    Some(share)
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, mpsc};

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
        // As many as the share run, and wait.
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
