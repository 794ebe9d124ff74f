//! Distinguishes a system call that another process blocks from one that a slow machine delays.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

/// The thread that makes a system call, set when the call begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Caller(Arc<AtomicI32>);

/// A thread that sleeps uninterruptibly, and its number of sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asleep {
    sleeps: u64,
}

impl Caller {
    /// Records that the current thread makes the call next.
    pub(super) fn begin(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.0.store(thread, Ordering::Release);
    }

    /// Returns `None` if the call has not begun, or if its thread runs or waits for a processor.
    /// Two equal results mean that the thread has not woken up in between.
    pub(super) fn asleep(&self) -> Option<Asleep> {
        let thread = match self.0.load(Ordering::Acquire) {
            0 => return None,
            thread => thread,
        };
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
        asleep(&status)
    }
}

fn asleep(status: &str) -> Option<Asleep> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let is_asleep = field("State:")?.trim_start().starts_with('D');
    let sleeps = field("voluntary_ctxt_switches:")?.trim().parse().ok()?;
    is_asleep.then_some(Asleep { sleeps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_uninterruptible_sleep_counts() {
        let status = |state: &str| {
            format!(
                "Name:\tx\nState:\t{state}\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n"
            )
        };
        let expected = Some(Asleep { sleeps: 7 });
        assert_eq!(asleep(&status("D (disk sleep)")), expected);
        for state in ["R (running)", "S (sleeping)", "Z (zombie)", ""] {
            assert_eq!(asleep(&status(state)), None, "{state}");
        }
        assert_eq!(asleep("State:\tD (disk sleep)\n"), None);
        assert_eq!(asleep(""), None);
    }

    #[test]
    fn a_call_that_has_not_begun_is_not_asleep() {
        let caller = Caller::default();
        assert_eq!(caller.asleep(), None);
        caller.begin();
        assert_eq!(caller.asleep(), None);
    }
}
