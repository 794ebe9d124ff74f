//! Builder methods of rules.

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

    /// Responds with an error.
    #[must_use]
    pub fn answer(code: u16) -> Self {
        Self::new(Effect::Answer {
            code,
            reason: None,
            message: None,
            retry_after_seconds: None,
        })
    }

    /// Delays requests before they are handled.
    #[must_use]
    pub fn delay(time: Duration) -> Self {
        Self::new(Effect::Delay {
            milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Closes connections without a response. In process, the call fails.
    #[must_use]
    pub fn drop_connection() -> Self {
        Self::new(Effect::Drop)
    }

    /// Truncates responses to their first half.
    #[must_use]
    pub fn garble() -> Self {
        Self::new(Effect::Garble)
    }

    /// Ends watches, including running ones: immediately, unless
    /// [`FaultRule::after_events`] or [`FaultRule::after`] sets a later time.
    #[must_use]
    pub fn watches(end: WatchEnd) -> Self {
        Self::new(Effect::Watch {
            end,
            after_events: 0,
            after_milliseconds: 0,
        })
    }

    /// Sets the reason in the `Status` of the response, for example
    /// `AlreadyExists`.
    #[must_use]
    pub fn reason(mut self, word: impl Into<String>) -> Self {
        if let Effect::Answer { reason, .. } = &mut self.effect {
            *reason = Some(word.into());
        }
        self
    }

    /// Sets the message in the `Status` of the response.
    #[must_use]
    pub fn message(mut self, text: impl Into<String>) -> Self {
        if let Effect::Answer { message, .. } = &mut self.effect {
            *message = Some(text.into());
        }
        self
    }

    /// Sets `Retry-After` of the response in seconds.
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

    /// Ends a watch after this many further events.
    #[must_use]
    pub fn after_events(mut self, events: u64) -> Self {
        if let Effect::Watch { after_events, .. } = &mut self.effect {
            *after_events = events;
        }
        self
    }

    /// Ends a watch no earlier than this.
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

    /// Matches only these verbs: `get`, `list`, `watch`, `create`, `update`,
    /// `patch`, `delete`, `deletecollection`.
    #[must_use]
    pub fn verbs<I>(mut self, verbs: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.requests.verbs = verbs.into_iter().map(Into::into).collect();
        self
    }

    /// Matches only this API group; `""` is the core group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.requests.group = Some(group.into());
        self
    }

    /// Matches only this resource: `pods`, `pods/status`, `pods/*`, or `*` for
    /// all resource requests.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.requests.resource = Some(resource.into());
        self
    }

    /// Matches only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.requests.namespace = Some(namespace.into());
        self
    }

    /// Matches only the object with this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.requests.name = Some(name.into());
        self
    }

    /// Matches only paths with this prefix.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.requests.path = Some(path.into());
        self
    }

    /// Matches only clients whose user agent has this prefix.
    #[must_use]
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.requests.user_agent = Some(agent.into());
        self
    }

    /// Applies at most this many times; the rule then remains without effect.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Skips the first matching requests.
    #[must_use]
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Applies to only this share of the matching requests, between 0 and 1.
    /// The same seed selects the same requests, for example the third, the
    /// fourth and the ninth.
    #[must_use]
    pub fn share(mut self, share: f64, seed: u64) -> Self {
        self.share = Some(share);
        self.seed = seed;
        self
    }

    /// Handles the request first; only its response is replaced or lost.
    #[must_use]
    pub fn after_handling(mut self) -> Self {
        self.after_handling = true;
        self
    }
}
