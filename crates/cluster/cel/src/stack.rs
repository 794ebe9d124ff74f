//! A larger stack for deep expressions. The parser, the checks and the evaluation
//! are recursive; an overflow of the stack would end the process.

use std::thread;

/// The stack for expressions of the maximum depth, with a margin. Unused parts of
/// it take no memory.
const LARGE_STACK_BYTES: usize = 32 << 20;

/// Runs work with a large stack, or directly if it is `shallow`. Returns `None` if the thread
/// cannot be started.
pub(crate) fn run<T: Send>(shallow: bool, work: impl FnOnce() -> T + Send) -> Option<T> {
    if shallow {
        return Some(work());
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(LARGE_STACK_BYTES);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}
