//! Processes many files on a few threads.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// The maximum number of threads: more do not make disks faster.
const THREADS: usize = 8;

/// Calls `work` for each item, and returns the first error. The remaining items are then not
/// processed.
pub(super) fn each<T: Sync, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(THREADS).min(items.len());
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let error = Mutex::new(None);
    let run = || {
        while !failed.load(Ordering::Relaxed) {
            let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            if let Err(problem) = work(item) {
                failed.store(true, Ordering::Relaxed);
                if let Ok(mut error) = error.lock() {
                    error.get_or_insert(problem);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    match error.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}
