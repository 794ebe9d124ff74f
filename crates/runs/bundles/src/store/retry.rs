//! Decides when to repeat requests to a store: after growing pauses, or after the time that the
//! store asks for.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::waits;

/// The longest pause that a store can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(120);
/// The longest sum of these pauses for one object.
const MOST_ASKED: Duration = Duration::from_secs(600);

/// The rules for retries.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// The maximum number of consecutive attempts without data.
    pub attempts: u32,
    /// The pause after the first attempt. It doubles with each attempt.
    pub pause: Duration,
    /// The longest pause, unless the store asks for a longer one.
    pub longest: Duration,
    /// The maximum time in which a connection transfers nothing.
    pub silence: Duration,
}

impl Default for RetryPolicy {
    /// Retries for about a minute and a half.
    fn default() -> Self {
        Self {
            attempts: 12,
            pause: Duration::from_millis(250),
            longest: Duration::from_secs(20),
            silence: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// The pause after this many attempts, with jitter, so that tasks that failed together do
    /// not retry together.
    pub(super) fn wait(&self, attempts: u32) -> Duration {
        let doubled = self
            .pause
            .saturating_mul(1 << attempts.saturating_sub(1).min(16));
        doubled
            .min(self.longest)
            .mul_f64(rand::random_range(0.5..1.0))
    }
}

/// A problem that may not occur at the next attempt.
#[derive(Debug)]
pub(super) struct Temporary<E> {
    pub(super) error: E,
    /// The pause that the store asks for.
    pub(super) asked: Option<Duration>,
    /// True if the connection transferred nothing for too long.
    pub(super) is_stalled: bool,
}

impl<E> From<E> for Temporary<E> {
    fn from(error: E) -> Self {
        Self {
            error,
            asked: None,
            is_stalled: false,
        }
    }
}

/// The pauses between the attempts to transfer an object.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// The sum of the pauses that the store asked for.
    asked: Duration,
}

impl Pauses {
    /// The pause before the next attempt. Reports the pause if the store asked for it.
    pub(super) fn next(
        &mut self,
        policy: &RetryPolicy,
        attempts: u32,
        asked: Option<Duration>,
        problem: &dyn std::fmt::Display,
    ) -> Duration {
        let own = policy.wait(attempts);
        let wait = match asked.and_then(|asked| self.allow(asked, MOST_ASKED)) {
            Some(asked) if asked > own => {
                waits::report(&format!("{problem}: the store asks to wait"), asked);
                jittered(asked)
            }
            _ => own,
        };
        tracing::warn!(%problem, ?wait, "trying again");
        wait
    }

    /// The part of a requested pause that the sum permits.
    pub(super) fn allow(&mut self, asked: Duration, most: Duration) -> Option<Duration> {
        let left = most.saturating_sub(self.asked);
        let allowed = asked.min(LONGEST_ASKED).min(left);
        self.asked = self.asked.saturating_add(allowed);
        (!allowed.is_zero()).then_some(allowed)
    }
}

/// Extends a pause a little, so that clients that were refused together do not return together.
pub(super) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::random_range(1.0..1.1))
}

/// The pause that a response asks for, in seconds or until a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pauses_double_with_jitter() {
        let retries = RetryPolicy::default();
        for (attempts, most) in [(1, 0.25), (2, 0.5), (5, 4.0), (20, 20.0), (u32::MAX, 20.0)] {
            let wait = retries.wait(attempts).as_secs_f64();
            assert!(wait <= most && wait >= most / 2.0, "{attempts}: {wait}");
        }
    }

    #[test]
    fn pauses_that_a_store_asks_for_are_limited() {
        let seconds = Duration::from_secs;
        let mut pauses = Pauses::default();
        assert_eq!(pauses.allow(seconds(30), seconds(200)), Some(seconds(30)));
        assert_eq!(
            pauses.allow(Duration::MAX, seconds(200)),
            Some(seconds(120))
        );
        assert_eq!(pauses.allow(seconds(90), seconds(200)), Some(seconds(50)));
        assert_eq!(pauses.allow(seconds(90), seconds(200)), None);
        let policy = RetryPolicy::default();
        let wait = Pauses::default().next(&policy, 1, Some(seconds(7)), &"busy");
        assert!(wait >= seconds(7) && wait < seconds(8), "{wait:?}");
        // The policy's pause is longer than the requested one.
        let wait = Pauses::default().next(&policy, 12, Some(seconds(1)), &"busy");
        assert!(wait >= seconds(10), "{wait:?}");
    }

    #[test]
    fn the_header_has_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now).map(|wait| wait.as_secs())
        };
        assert_eq!(of(" 12 "), Some(12));
        assert_eq!(of("18446744073709551615"), Some(u64::MAX));
        assert_eq!(of("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(of("Sun, 06 Nov 1994 08:40:37 GMT"), Some(0));
        assert_eq!(of("-1"), None);
        assert_eq!(of("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
