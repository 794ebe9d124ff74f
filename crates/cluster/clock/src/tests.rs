//! Tests of the clock.
#![allow(clippy::unwrap_used)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_now::poll_once;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// Polls a future once.
mod futures_now {
    use std::{
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    pub(super) fn poll_once<F: Future>(future: Pin<&mut F>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(future.poll(&mut context), Poll::Ready(_))
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test]
async fn time_stands_still_until_the_clock_is_advanced() {
    let clock = Clock::manual(at("2026-01-01T00:00:00Z"));
    let first = clock.instant();
    let mut timer = std::pin::pin!(clock.sleep(2 * MINUTE));
    assert!(!poll_once(timer.as_mut()));
    assert_eq!(clock.advance(MINUTE), Ok(at("2026-01-01T00:01:00Z")));
    assert!(!poll_once(timer.as_mut()));
    assert_eq!(clock.set(at("2026-01-01T00:02:00Z")), Ok(()));
    assert!(poll_once(timer.as_mut()));
    assert_eq!(clock.now(), at("2026-01-01T00:02:00Z"));
    assert_eq!(clock.instant() - first, 2 * MINUTE);
}

#[tokio::test]
async fn an_advance_wakes_tasks_that_wait() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let (timer, has_begun) = (clock.clone(), Arc::new(tokio::sync::Notify::new()));
    let begun = has_begun.clone();
    let task = tokio::spawn(async move {
        begun.notify_one();
        timer.sleep(60 * MINUTE).await;
        timer.now()
    });
    has_begun.notified().await;
    clock.advance(120 * MINUTE).unwrap();
    assert_eq!(task.await.unwrap(), at("1970-01-01T02:00:00Z"));
}

#[test]
fn the_clock_never_goes_back() {
    let clock = Clock::manual(at("2026-01-01T00:00:00Z"));
    let error = clock.set(at("2025-12-31T23:59:59Z")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the clock shows 2026-01-01T00:00:00Z, and cannot be set back to 2025-12-31T23:59:59Z"
    );
    let error = clock.advance(Duration::MAX).unwrap_err();
    assert!(matches!(error, ClockError::OutOfRange { .. }), "{error}");
    assert_eq!(clock.now(), at("2026-01-01T00:00:00Z"));
    assert_eq!(Clock::system().advance(MINUTE), Err(ClockError::NotManual));
    assert_eq!(
        Clock::system().set(Timestamp::MAX),
        Err(ClockError::NotManual)
    );
}

#[test]
fn unique_nanoseconds_differ_while_the_time_stands_still() {
    let clock = Clock::manual(at("2026-01-01T00:00:00Z"));
    let numbers = [(); 3].map(|()| clock.unique_nanoseconds());
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(numbers[0], clock.now().as_nanosecond());
}

#[tokio::test]
async fn heartbeats_that_are_due_are_awaited() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    assert!(poll_once(std::pin::pin!(clock.heartbeats())));
    let is_sent = Arc::new(AtomicBool::new(false));
    let (sent, timer) = (is_sent.clone(), clock.clone());
    let heartbeat = clock.heartbeat();
    let task = tokio::spawn(async move {
        loop {
            let now = timer.instant();
            tokio::task::yield_now().await;
            sent.store(true, Ordering::Relaxed);
            heartbeat.sleep(now, MINUTE).await;
        }
    });
    for _ in 0..3 {
        clock.heartbeats().await;
        assert!(is_sent.swap(false, Ordering::Relaxed));
        clock.advance(10 * MINUTE).unwrap();
    }
    // A component that has ended sends no more.
    task.abort();
    let _ = task.await;
    clock.heartbeats().await;
}

fn pending(clock: &Clock) -> Vec<String> {
    clock.pending(&|_, _| 0)
}

#[tokio::test]
async fn timers_that_are_due_are_pending_until_the_caller_resumes() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let mut timer = Box::pin(clock.sleep(MINUTE));
    assert!(!poll_once(timer.as_mut()));
    assert_eq!(pending(&clock), Vec::<String>::new());
    let before = clock.steps();
    clock.advance(MINUTE).unwrap();
    assert_eq!(pending(&clock), ["a timer is due"]);
    assert!(poll_once(timer.as_mut()));
    assert_eq!(pending(&clock), Vec::<String>::new());
    assert!(clock.steps() > before);
    // Work after a delay follows it at once.
    let mut timer = Box::pin(clock.sleep_before_work(clock.instant(), MINUTE, "a"));
    assert!(!poll_once(timer.as_mut()));
    clock.advance(MINUTE).unwrap();
    assert_eq!(pending(&clock), ["a timer is due"]);
    let busy = timer.await;
    assert_eq!(pending(&clock), ["a is at work"]);
    drop(busy);
    // A dropped timer is not pending.
    let mut timer = Box::pin(clock.sleep(MINUTE));
    assert!(!poll_once(timer.as_mut()));
    clock.advance(MINUTE).unwrap();
    drop(timer);
    assert_eq!(pending(&clock), Vec::<String>::new());
}

#[tokio::test]
async fn marked_work_is_pending_until_all_marks_are_dropped() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let marks = [clock.busy("a"), clock.busy("a"), clock.busy("b")];
    let [first, second, other] = marks;
    assert_eq!(pending(&clock), ["a is at work", "b is at work"]);
    drop((first, other));
    assert_eq!(pending(&clock), ["a is at work"]);
    let before = clock.steps();
    drop(second);
    assert!(pending(&clock).is_empty() && clock.steps() > before);

    let clock = Clock::system();
    let _mark = clock.busy("a");
    assert!(pending(&clock).is_empty());
}

#[tokio::test]
async fn heartbeats_that_are_due_are_pending() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let heartbeat = clock.heartbeat();
    assert_eq!(pending(&clock), ["a heartbeat is due"]);
    let mut sleep = Box::pin(heartbeat.sleep(clock.instant(), MINUTE));
    assert!(!poll_once(sleep.as_mut()));
    assert_eq!(pending(&clock), Vec::<String>::new());
    clock.advance(MINUTE).unwrap();
    assert_eq!(pending(&clock).len(), 2, "the timer, too");
}

#[derive(Debug)]
struct Behind(u64);

impl Component for Behind {
    fn pending(&self, newest: &Newest<'_>) -> Option<String> {
        (newest("apps", "Deployment") > self.0).then(|| "behind".to_owned())
    }

    fn steps(&self) -> u64 {
        7
    }
}

#[test]
fn components_report_their_work_until_they_are_dropped() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let before = clock.steps();
    let component = Arc::new(Behind(4));
    let weak: Weak<dyn Component> = Arc::downgrade(&component) as _;
    clock.add(weak);
    assert_eq!(clock.steps(), before + 7);
    let at = |revision| {
        clock.pending(&move |group: &str, kind: &str| match (group, kind) {
            ("apps", "Deployment") => revision,
            _ => 0,
        })
    };
    assert_eq!(at(5), ["behind"]);
    assert!(at(4).is_empty());
    drop(component);
    assert!(at(5).is_empty());
}
