//! Guards against panics: what one object makes panic must stop neither the
//! controller nor its work on other objects.

use std::{
    any::Any,
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use futures::FutureExt;
use tokio::time::{Instant, sleep};

/// The wait before a controller that panicked starts again; it doubles with
/// each panic.
const FIRST_RESTART: Duration = Duration::from_secs(1);
/// The longest of these waits.
const LONGEST_RESTART: Duration = Duration::from_secs(60);
/// A controller that ran this long without a panic starts with the first wait
/// again.
const STEADY: Duration = Duration::from_secs(300);

/// Awaits `work`; a panic in it is an error with its message.
///
/// State that `work` shares with others must be consistent between its steps:
/// the locks of this crate are not poisoned by a panic.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| message(&*panic))
}

/// Calls `work`; a panic in it is an error with its message.
pub(crate) fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

/// Calls `work`, which takes note of a change of an object. A panic in it is
/// logged: the change counts as not seen.
pub(crate) fn change(what: &'static str, key: &dyn Debug, work: impl FnOnce()) {
    if let Err(panic) = attempt(work) {
        tracing::error!(what, ?key, panic, "a change was passed over: it panicked");
    }
}

/// Runs a controller, and starts it anew when it panics outside of its work on
/// one object. It reads its caches from the beginning then.
pub(crate) async fn supervised<T: Future<Output = ()>>(what: &'static str, run: impl Fn() -> T) {
    supervised_from(FIRST_RESTART, what, run).await;
}

/// As [`supervised`], with the first wait.
async fn supervised_from<T: Future<Output = ()>>(
    first: Duration,
    what: &'static str,
    run: impl Fn() -> T,
) {
    let mut wait = first;
    loop {
        let begin = Instant::now();
        let Err(panic) = caught(async { run().await }).await else {
            return;
        };
        if begin.elapsed() >= STEADY {
            wait = first;
        }
        tracing::error!(what, panic, ?wait, "a controller panicked: it starts again");
        sleep(wait).await;
        wait = wait.saturating_mul(2).min(LONGEST_RESTART);
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_controller_that_panics_starts_again() {
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
        change("test", &"key", || panic!("the test's panic"));
    }
}
