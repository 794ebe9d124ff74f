//! Threads for work of pods that may block forever: on files of pods, on file systems that do not
//! answer, or for the CPU. They are separate from the runtime's threads for blocking work, which
//! requests to the API server and the controllers need.

use std::{io, thread};

use tokio::sync::{Semaphore, oneshot};

/// The maximum number of threads. The task of a pod waits for its work, so a running pod has one or
/// two of them; threads that block forever remain after their pod.
const THREADS: usize = 512;

static FREE: Semaphore = Semaphore::const_new(THREADS);

/// Runs work on a separate thread.
///
/// # Errors
/// The system has no resources for a thread, or the work panicked.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let permit = FREE.acquire().await.map_err(io::Error::other)?;
    let (sender, result) = oneshot::channel();
    let thread = thread::Builder::new().name("longshore-pod".to_owned());
    let spawned = thread.spawn(move || {
        let _permit = permit;
        // The pod may have been deleted.
        let _ = sender.send(work());
    });
    spawned.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("the node agent cannot start a thread: {error}"),
        )
    })?;
    let panicked = |_| io::Error::other("a thread of the node agent panicked");
    result.await.map_err(panicked)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{sync::mpsc, time::Duration};

    use super::*;

    #[tokio::test]
    async fn work_that_waits_delays_no_other() {
        let (release, released) = mpsc::channel::<()>();
        let waiting = tokio::spawn(run(move || released.recv()));
        for number in 0..20 {
            assert_eq!(run(move || number).await.unwrap(), number);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!waiting.is_finished());
        drop(release);
        assert!(waiting.await.unwrap().unwrap().is_err());
        let panics = run(|| -> u32 { panic!("expected by this test") }).await;
        assert!(panics.is_err());
    }
}
