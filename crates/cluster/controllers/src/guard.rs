//! Catches panics. A panic on one object must not stop the controller or its work
//! on other objects.

use std::{
    any::Any,
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use futures::FutureExt;
use tokio::time::{Instant, sleep};

/// The delay before a controller restarts after the first panic. Each further panic doubles the
/// delay.
const INITIAL_RESTART_DELAY: Duration = Duration::from_secs(1);
/// The maximum restart delay.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(60);
/// The time without a panic after which the restart delay is reset.
const RESET_DELAY_AFTER: Duration = Duration::from_secs(300);

/// Awaits `work` and converts a panic into an error with the panic's message.
///
/// State that `work` shares with other tasks must be consistent at each step,
/// because a panic does not poison the locks of this crate.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| message(&*panic))
}

/// Calls `work` and converts a panic into an error with the panic's message.
pub(crate) fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

/// Calls `work`, which records a change of an object. A panic is logged, and the
/// change is ignored.
pub(crate) fn change(what: &'static str, key: &dyn Debug, work: &mut dyn FnMut()) {
    if let Err(panic) = attempt(work) {
        tracing::error!(
            what,
            ?key,
            panic,
            "ignored a change because processing it panicked"
        );
    }
}

/// Runs a controller. Restarts it if it panics outside of the processing of a single object. The
/// controller then reads its caches from the beginning.
pub(crate) async fn supervised<T: Future<Output = ()>>(what: &'static str, run: impl Fn() -> T) {
    supervised_from(INITIAL_RESTART_DELAY, what, run).await;
}

/// Like [`supervised`], with the given initial delay.
async fn supervised_from<T: Future<Output = ()>>(
    first: Duration,
    what: &'static str,
    run: impl Fn() -> T,
) {
    let mut wait = first;
    loop {
        let start = Instant::now();
        let Err(panic) = caught(async { run().await }).await else {
            return;
        };
        if start.elapsed() >= RESET_DELAY_AFTER {
            wait = first;
        }
        tracing::error!(what, panic, ?wait, "a controller panicked and will restart");
        sleep(wait).await;
        wait = wait.saturating_mul(2).min(MAX_RESTART_DELAY);
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_controller_restarts_after_a_panic() {
        let runs = AtomicU32::new(0);
        supervised_from(Duration::from_millis(1), "test", async || {
            assert!(
                runs.fetch_add(1, Ordering::Relaxed) >= 2,
                "the test's panic"
            );
        })
        .await;
        assert_eq!(runs.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_message() {
        let panics = async { panic!("number {}", 7) };
        assert_eq!(caught::<()>(panics).await, Err("number 7".to_owned()));
        assert_eq!(caught(async { 1 }).await, Ok(1));
        change("test", &"key", &mut || panic!("the test's panic"));
    }
}
