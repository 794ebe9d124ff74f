//! Rules in the style of a builder.

use std::time::Duration;

use super::{Effect, FaultRule, Match, WatchEnd};

impl FaultRule {
    fn new(effect: Effect) -> Self {
        Self {
            requests: Match::default(),
            effect,
            times: None,
            skip: 0,
            share: None,
            seed: 0,
            after_handling: false,
        }
    }

    /// Requests are answered with an error.
    #[must_use]
    pub fn answer(code: u16) -> Self {
        Self::new(Effect::Answer {
            code,
            reason: None,
            message: None,
            retry_after_seconds: None,
        })
    }

    /// Requests wait, then are handled.
    #[must_use]
    pub fn delay(time: Duration) -> Self {
        Self::new(Effect::Delay {
            milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Connections end without an answer. In process, the call fails.
    #[must_use]
    pub fn drop_connection() -> Self {
        Self::new(Effect::Drop)
    }

    /// Answers are cut in half.
    #[must_use]
    pub fn garble() -> Self {
        Self::new(Effect::Garble)
    }

    /// Watches end, running ones as well: at once, unless
    /// [`FaultRule::after_events`] or [`FaultRule::after`] says when.
    #[must_use]
    pub fn watches(end: WatchEnd) -> Self {
        Self::new(Effect::Watch {
            end,
            after_events: 0,
            after_milliseconds: 0,
        })
    }

    /// The reason in the `Status` of an answer: `AlreadyExists`, …
    #[must_use]
    pub fn reason(mut self, word: impl Into<String>) -> Self {
        if let Effect::Answer { reason, .. } = &mut self.effect {
            *reason = Some(word.into());
        }
        self
    }

    /// The message in the `Status` of an answer.
    #[must_use]
    pub fn message(mut self, text: impl Into<String>) -> Self {
        if let Effect::Answer { message, .. } = &mut self.effect {
            *message = Some(text.into());
        }
        self
    }

    /// The `Retry-After` of an answer, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Effect::Answer {
            retry_after_seconds,
            ..
        } = &mut self.effect
        {
            *retry_after_seconds = Some(seconds);
        }
        self
    }

    /// A watch ends after so many more events.
    #[must_use]
    pub fn after_events(mut self, events: u64) -> Self {
        if let Effect::Watch { after_events, .. } = &mut self.effect {
            *after_events = events;
        }
        self
    }

    /// A watch does not end before so long.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        if let Effect::Watch {
            after_milliseconds, ..
        } = &mut self.effect
        {
            *after_milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        }
        self
    }

    /// Only these verbs: `get`, `list`, `watch`, `create`, `update`, `patch`,
    /// `delete`, `deletecollection`.
    #[must_use]
    pub fn verbs<I>(mut self, verbs: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.requests.verbs = verbs.into_iter().map(Into::into).collect();
        self
    }

    /// Only this API group; `""` is the core group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.requests.group = Some(group.into());
        self
    }

    /// Only this resource: `pods`, `pods/status`, `pods/*`, or `*` for all
    /// requests about objects.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.requests.resource = Some(resource.into());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.requests.namespace = Some(namespace.into());
        self
    }

    /// Only the object of this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.requests.name = Some(name.into());
        self
    }

    /// Only paths that begin so.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.requests.path = Some(path.into());
        self
    }

    /// Only clients whose user agent begins so.
    #[must_use]
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.requests.user_agent = Some(agent.into());
        self
    }

    /// At most so many times; the rule then stays, without effect.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Lets the first ones pass.
    #[must_use]
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Only this part of the requests, between 0 and 1. The same seed picks
    /// the same ones: the third, the fourth, the ninth…
    #[must_use]
    pub fn share(mut self, share: f64, seed: u64) -> Self {
        self.share = Some(share);
        self.seed = seed;
        self
    }

    /// The request is carried out first; only its answer is replaced or lost.
    #[must_use]
    pub fn after_handling(mut self) -> Self {
        self.after_handling = true;
        self
    }
}
