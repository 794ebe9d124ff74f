//! Injected ends of watches: passes a watch's stream through until a rule ends
//! it.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderMap, Method};
use longshore_model::StatusReason;
use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep, sleep_until},
};

use super::{Attributes, Effect, Faults, WatchEnd};
use crate::{
    body::Body, event_line::error_line, query::Query, route::Route, status_error::StatusError,
    stopping::stopped,
};

/// Time for earlier events to be delivered before a connection is broken, which
/// discards unsent data.
const FLUSH_DELAY: Duration = Duration::from_millis(20);

/// The planned end of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchPlan {
    end: WatchEnd,
    events: u64,
    time: Duration,
}

impl WatchPlan {
    pub(super) fn of(effect: &Effect) -> Option<Self> {
        match *effect {
            Effect::Watch {
                end,
                after_events,
                after_milliseconds,
            } => Some(Self {
                end,
                events: after_events,
                time: Duration::from_millis(after_milliseconds),
            }),
            _ => None,
        }
    }
}

/// The request of a watch, kept for rules that are added while it runs.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) route: Option<Route>,
    pub(crate) headers: HeaderMap,
}

impl Request {
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes::new(
            &self.method,
            &self.path,
            &self.query,
            self.route.as_ref(),
            &self.headers,
        )
    }
}

struct Guarded {
    faults: Faults,
    request: Arc<Request>,
    /// Number of the last rule that was evaluated.
    seen: u64,
    additions: watch::Receiver<u64>,
    events: BoxStream<'static, io::Result<Bytes>>,
    plan: Option<(WatchPlan, Instant)>,
    stopping: watch::Receiver<bool>,
    /// True while the rest of an event is still to come.
    in_line: bool,
    done: bool,
}

/// Applies the rules to the stream of a watch.
pub(crate) fn guard(
    faults: Faults,
    request: Arc<Request>,
    (plan, seen): (Option<WatchPlan>, u64),
    body: Body,
    stopping: watch::Receiver<bool>,
) -> Body {
    let events = match body.into_stream() {
        Ok(events) => events,
        Err(whole) => return whole,
    };
    let mut guarded = Guarded {
        additions: faults.additions(),
        faults,
        request,
        seen,
        events,
        plan: None,
        stopping,
        in_line: false,
        done: false,
    };
    guarded.take(plan);
    let stream = futures::stream::unfold(guarded, |mut guarded| async move {
        guarded.next().await.map(|chunk| (chunk, guarded))
    });
    Body::stream(stream.boxed())
}

impl Guarded {
    fn take(&mut self, plan: Option<WatchPlan>) {
        self.plan = plan.map(|plan| (plan, Instant::now() + plan.time));
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.done {
            return None;
        }
        loop {
            if self.plan.is_none() {
                let plan = self
                    .faults
                    .evaluate_running(&self.request.attributes(), &mut self.seen);
                self.take(plan);
            }
            // Never end between the parts of one event.
            let due = self
                .plan
                .filter(|(plan, _)| plan.events == 0 && !self.in_line);
            if let Some((plan, at)) = due
                && at <= Instant::now()
            {
                return self.finish(plan.end).await;
            }
            tokio::select! {
                biased;
                changed = self.additions.changed(), if self.plan.is_none() => {
                    // The sender lives in `self.faults`.
                    if changed.is_err() { return None; }
                }
                () = async { sleep_until(due.map_or_else(Instant::now, |(_, at)| at)).await },
                    if due.is_some() => {}
                chunk = self.events.next() => {
                    let passed = self.pass(chunk?).await;
                    if let Some(Ok(chunk)) = &passed {
                        self.in_line = !chunk.ends_with(b"\n");
                    }
                    return passed;
                }
            }
        }
    }

    /// Passes as many events as the plan allows.
    async fn pass(&mut self, chunk: io::Result<Bytes>) -> Option<io::Result<Bytes>> {
        let Some((plan, at)) = &mut self.plan else {
            return Some(chunk);
        };
        let Ok(chunk) = chunk else {
            return Some(chunk);
        };
        if plan.events == 0 {
            return Some(Ok(chunk));
        }
        let mut rest = chunk.clone();
        while plan.events > 0 {
            let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                break;
            };
            let _ = rest.split_to(end + 1);
            plan.events -= 1;
        }
        if plan.events > 0 || *at > Instant::now() || rest.is_empty() {
            return Some(Ok(chunk));
        }
        // The end falls between two events that arrived together.
        let passed = chunk.slice(..chunk.len() - rest.len());
        let ahead = futures::stream::iter([Ok(rest)]);
        let events = std::mem::replace(&mut self.events, futures::stream::empty().boxed());
        self.events = ahead.chain(events).boxed();
        Some(Ok(passed))
    }

    async fn finish(&mut self, end: WatchEnd) -> Option<io::Result<Bytes>> {
        self.done = true;
        match end {
            WatchEnd::Close => None,
            WatchEnd::Break => {
                sleep(FLUSH_DELAY).await;
                Some(Err(broken()))
            }
            WatchEnd::Expire => {
                let gone = StatusError::new(StatusReason::Expired, "too old resource version");
                Some(Ok(error_line(gone)))
            }
            WatchEnd::Stall => {
                self.events = futures::stream::empty().boxed();
                stopped(self.stopping.clone()).await;
                None
            }
            WatchEnd::Garble => {
                let chunk = tokio::select! {
                    chunk = self.events.next() => chunk?.ok()?,
                    () = stopped(self.stopping.clone()) => return None,
                };
                let line = chunk.split(|&byte| byte == b'\n').next()?;
                Some(Ok(chunk.slice(..line.len() / 2)))
            }
        }
    }
}

/// The error that ends a body whose connection is to break.
fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "the connection was broken by a fault on demand",
    )
}
