//! One rule: which requests it is about, what happens to them, how often.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Asked;

/// A fault to meet: which requests, what happens, how often. Written in the
/// style of a builder, or read from JSON by the server's endpoint.
///
/// ```
/// use longshore_apiserver::FaultRule;
///
/// let rule = FaultRule::answer(503).verbs(["list"]).resource("pods").times(3);
/// # let text = r#"{"match": {"verbs": ["list"], "resource": "pods"},
/// #     "effect": {"answer": {"code": 503}}, "times": 3}"#;
/// # assert_eq!(serde_json::from_str::<FaultRule>(text).unwrap(), rule);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRule {
    #[serde(default, rename = "match", skip_serializing_if = "is_default")]
    requests: Match,
    effect: Effect,
    /// At most so many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    /// Not the first ones.
    #[serde(default, skip_serializing_if = "is_default")]
    skip: u64,
    /// Only this part of them, between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    /// Which ones belong to the share.
    #[serde(default, skip_serializing_if = "is_default")]
    seed: u64,
    /// The request is carried out; only its answer is lost.
    #[serde(default, skip_serializing_if = "is_default")]
    after_handling: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Which requests a rule is about: those that fit everything that is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Match {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; none: all. For paths without objects the method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
    /// The API group; `""` is the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `pods`, `pods/status`, `pods/*`, `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name in the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How the path begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How the user agent begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Effect {
    /// It is answered with an error, whose `Status` is worded as Kubernetes
    /// words it.
    #[serde(rename_all = "camelCase")]
    Answer {
        /// The HTTP code, 400 to 599.
        code: u16,
        /// The reason, where a code has several: `AlreadyExists` for 409.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// A message of one's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The `Retry-After` header and `details.retryAfterSeconds`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
    /// It waits so long; then other rules apply, or it is handled.
    Delay {
        /// At most an hour.
        milliseconds: u64,
    },
    /// Its connection ends without an answer.
    Drop,
    /// The first half of its answer comes, as if that were all.
    Garble,
    /// Its watch ends badly; other requests do not feel this one.
    #[serde(rename_all = "camelCase")]
    Watch {
        /// How.
        end: WatchEnd,
        /// After so many more events.
        #[serde(default)]
        after_events: u64,
        /// And not before so long.
        #[serde(default)]
        after_milliseconds: u64,
    },
}

/// How a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WatchEnd {
    /// No more bytes come, but the connection stays open.
    Stall,
    /// It ends cleanly, as after its timeout.
    Close,
    /// Its connection breaks.
    Break,
    /// An ERROR event with `410 Expired` comes, then the end.
    Expire,
    /// Half of an event comes, then the end.
    Garble,
}

/// Why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A field has a value that makes no sense.
    #[error("{field}: {why}")]
    Invalid {
        /// The field, as in JSON.
        field: &'static str,
        /// What it must be.
        why: &'static str,
    },
    /// There are too many rules.
    #[error("there are {} faults already: remove some", super::MOST_FAULTS)]
    TooMany,
}

/// The longest delay.
const LONGEST: Duration = Duration::from_secs(3600);

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

    /// What happens.
    #[must_use]
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    pub(super) fn is_after_handling(&self) -> bool {
        self.after_handling
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<(), FaultError> {
        let invalid = |field, why| Err(FaultError::Invalid { field, why });
        let too_long = |milliseconds: u64| Duration::from_millis(milliseconds) > LONGEST;
        if self
            .share
            .is_some_and(|share| !(0.0..=1.0).contains(&share))
        {
            return invalid("share", "must be between 0 and 1");
        }
        match self.effect {
            Effect::Answer { code, .. } if !(400..=599).contains(&code) => {
                invalid("effect.answer.code", "must be between 400 and 599")
            }
            Effect::Delay { milliseconds } if too_long(milliseconds) => {
                invalid("effect.delay.milliseconds", "must be an hour at most")
            }
            Effect::Watch {
                after_milliseconds, ..
            } if too_long(after_milliseconds) => {
                let field = "effect.watch.afterMilliseconds";
                invalid(field, "must be an hour at most")
            }
            Effect::Delay { .. } | Effect::Watch { .. } if self.after_handling => {
                invalid("afterHandling", "is for answer and drop")
            }
            _ => Ok(()),
        }
    }

    /// Whether the rule is about a request.
    pub(super) fn concerns(&self, asked: &Asked<'_>) -> bool {
        let Match {
            verbs,
            group,
            resource,
            namespace,
            name,
            path,
            user_agent,
        } = &self.requests;
        let of_object = asked.resource;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let begins = |wanted: &Option<String>, found: &str| {
            wanted
                .as_deref()
                .is_none_or(|wanted| found.starts_with(wanted))
        };
        (verbs.is_empty() || verbs.contains(&asked.verb))
            && (asked.verb == "watch" || !matches!(self.effect, Effect::Watch { .. }))
            && is(group, of_object.map(|r| r.group.as_str()))
            && is(namespace, of_object.and_then(|r| r.namespace.as_deref()))
            && is(name, of_object.and_then(|r| r.name.as_deref()))
            && begins(path, asked.path)
            && begins(user_agent, asked.user_agent)
            && resource.as_deref().is_none_or(|wanted| {
                let plural = asked.plural();
                let whole = wanted.strip_suffix("/*");
                of_object.is_some()
                    && (wanted == "*"
                        || wanted == plural
                        || whole.is_some_and(|w| plural.split('/').next() == Some(w)))
            })
    }

    /// Whether the rule hits the next request that fits, when `matched` have
    /// come before and `fired` of them were hit.
    pub(super) fn hits(&self, matched: u64, fired: u64) -> bool {
        matched >= self.skip
            && self.times.is_none_or(|times| fired < times)
            && self
                .share
                .is_none_or(|share| fraction(self.seed, matched) < share)
    }
}

/// A number of [0, 1) that looks like chance and is not (SplitMix64).
fn fraction(seed: u64, index: u64) -> f64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut mixed = seed.wrapping_add(STEP.wrapping_mul(index.wrapping_add(1)));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    #[allow(clippy::cast_precision_loss)] // 53 bits fit exactly.
    let numerator = (mixed >> 11) as f64;
    numerator / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn hits(rule: &FaultRule, requests: u64) -> Vec<u64> {
        let mut fired = 0;
        (0..requests)
            .filter(|n| {
                let hit = rule.hits(*n, fired);
                fired += u64::from(hit);
                hit
            })
            .collect()
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(hits(&FaultRule::answer(500).skip(2).times(2), 9), [2, 3]);
        assert_eq!(hits(&FaultRule::answer(500).share(0.0, 1), 99).len(), 0);
        assert_eq!(hits(&FaultRule::answer(500).share(1.0, 1), 99).len(), 99);
        let half = FaultRule::answer(500).share(0.5, 7);
        let once = hits(&half, 1000);
        assert_eq!(once, hits(&half, 1000), "the same every time");
        assert_ne!(once, hits(&half.share(0.5, 8), 1000));
        assert!((450..550).contains(&once.len()), "{}", once.len());
    }

    #[test]
    fn rules_are_json() {
        for (text, rule) in [
            (
                r#"{"effect":"drop","afterHandling":true}"#,
                FaultRule::drop_connection().after_handling(),
            ),
            (
                r#"{"match":{"userAgent":"kubectl"},"effect":{"delay":{"milliseconds":5}},"share":0.5}"#,
                FaultRule::delay(Duration::from_millis(5))
                    .user_agent("kubectl")
                    .share(0.5, 0),
            ),
            (
                r#"{"effect":{"watch":{"end":"stall","afterEvents":3,"afterMilliseconds":0}}}"#,
                FaultRule::watches(WatchEnd::Stall).after_events(3),
            ),
            (
                r#"{"effect":{"answer":{"code":429,"retryAfterSeconds":2}},"times":1}"#,
                FaultRule::answer(429).retry_after(2).times(1),
            ),
        ] {
            assert_eq!(serde_json::from_str::<FaultRule>(text).unwrap(), rule);
            assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        }
        for wrong in [
            r#"{}"#,
            r#"{"effect":"explode"}"#,
            r#"{"effect":"drop","tims":1}"#,
        ] {
            assert!(serde_json::from_str::<FaultRule>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (rule, field) in [
            (FaultRule::answer(200), "effect.answer.code"),
            (FaultRule::garble().share(1.5, 0), "share"),
            (FaultRule::garble().share(f64::NAN, 0), "share"),
            (
                FaultRule::delay(Duration::from_secs(3601)),
                "effect.delay.milliseconds",
            ),
            (
                FaultRule::watches(WatchEnd::Close).after_handling(),
                "afterHandling",
            ),
        ] {
            let error = rule.check().unwrap_err();
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }
}
