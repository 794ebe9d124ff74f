//! The memory for large requests to webhooks and their responses, of all webhooks together. An
//! object that many webhooks review at the same time would take its size for each webhook.

use std::{
    io,
    sync::LazyLock,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits;

/// The size of a unit in bytes. Counting units instead of bytes keeps permits within a `u32`.
const UNIT: usize = 1 << 10;

static REVIEWS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(limits::WEBHOOK_REVIEWS / UNIT));
static RESPONSES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(limits::WEBHOOK_RESPONSES / UNIT));

/// The memory of a request, until it is dropped.
pub(in crate::webhooks) struct Room {
    _permit: Option<SemaphorePermit<'static>>,
    since: Instant,
}

/// The units of a body, beyond the size that every body may have.
fn units(bytes: usize, most: usize) -> u32 {
    let counted = bytes.saturating_sub(limits::SMALL_BODY).min(most);
    u32::try_from(counted.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Room {
    /// Waits for memory for a request of a size; `None` if no memory is released within the time
    /// limit.
    pub(in crate::webhooks) async fn take(bytes: usize, timeout: Duration) -> Option<Self> {
        let since = Instant::now();
        let _permit = match units(bytes, limits::WEBHOOK_REVIEWS) {
            0 => None,
            units => {
                let taking = tokio::time::timeout(timeout, REVIEWS.acquire_many(units));
                // The semaphore is never closed.
                Some(taking.await.ok()?.ok()?)
            }
        };
        Some(Self { _permit, since })
    }

    /// The rest of a time limit after the wait for memory.
    pub(super) fn rest(&self, timeout: Duration) -> Duration {
        timeout.saturating_sub(self.since.elapsed())
    }
}

/// Reads a response.
///
/// # Errors
/// The problem.
pub(super) async fn read<B>(mut body: B) -> Result<Bytes, String>
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut read = BytesMut::new();
    let mut taken: Option<SemaphorePermit<'_>> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let (before, after) = (read.len(), read.len() + data.len());
        if after > limits::WEBHOOK_RESPONSE {
            let most = limits::WEBHOOK_RESPONSE;
            return Err(format!("the response is larger than {most} bytes"));
        }
        let most = limits::WEBHOOK_RESPONSES;
        let more = units(after, most) - units(before, most);
        if more > 0 {
            let more = RESPONSES.try_acquire_many(more);
            let more = more.map_err(|_| "too many large responses of webhooks are being received");
            match (&mut taken, more?) {
                (Some(taken), more) => taken.merge(more),
                (taken, more) => *taken = Some(more),
            }
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

/// Returns the size of a value as JSON.
pub(in crate::webhooks) fn size(value: &(impl Serialize + ?Sized)) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(part.len());
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use serde_json::json;

    use super::*;

    /// Reads a response with this size, which does not end.
    fn reading(bytes: usize) -> impl Future<Output = Result<Bytes, String>> {
        let part = Ok::<_, io::Error>(Frame::data(vec![b' '; bytes].into()));
        let body = stream::iter([part]).chain(stream::pending());
        Box::pin(async move { read(Box::pin(StreamBody::new(body))).await })
    }

    #[test]
    fn large_responses_have_one_limit_and_small_ones_always_arrive() {
        let mut responses: Vec<_> = (0..100)
            .map(|_| reading(limits::WEBHOOK_RESPONSE))
            .collect();
        let ended = responses
            .iter_mut()
            .filter_map(|response| response.now_or_never());
        let ended: Vec<_> = ended.collect();
        let most = limits::WEBHOOK_RESPONSES / (limits::WEBHOOK_RESPONSE - limits::SMALL_BODY);
        assert_eq!(ended.len(), 100 - most);
        let problem = "too many large responses of webhooks are being received";
        assert!(ended.iter().all(|ended| *ended == Err(problem.into())));
        assert_eq!(reading(limits::SMALL_BODY).now_or_never(), None, "it waits");
        drop(responses);
        assert_eq!(reading(limits::WEBHOOK_RESPONSE).now_or_never(), None);
        let late = reading(limits::WEBHOOK_RESPONSE + 1).now_or_never();
        assert_eq!(
            late,
            Some(Err("the response is larger than 8388608 bytes".into()))
        );
    }

    #[test]
    fn small_bodies_take_nothing_and_others_what_is_beyond() {
        let most = limits::WEBHOOK_REVIEWS;
        assert_eq!(units(limits::SMALL_BODY, most), 0);
        assert_eq!(units(limits::SMALL_BODY + 1, most), 1);
        assert_eq!(units(usize::MAX, most) as usize, most / UNIT);
        assert_eq!(size(&json!({"a": ["b", 1]})), r#"{"a":["b",1]}"#.len());
    }
}
