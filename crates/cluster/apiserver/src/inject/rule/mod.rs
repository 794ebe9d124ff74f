//! A rule: which requests it matches, its effect, and how often it applies.

mod build;
mod parts;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Attributes;
use parts::is_default;
pub use parts::{Effect, FaultError, Match, WatchEnd};

/// A fault injection rule: which requests it matches, its effect, and how often
/// it applies. Created with builder methods, or parsed from JSON by the
/// server's endpoint.
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
    /// Maximum number of times the rule applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    /// Number of matching requests to skip.
    #[serde(default, skip_serializing_if = "is_default")]
    skip: u64,
    /// Share of the matching requests, between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    /// Seed that selects the requests of the share.
    #[serde(default, skip_serializing_if = "is_default")]
    seed: u64,
    /// Handle the request first; only its response is lost.
    #[serde(default, skip_serializing_if = "is_default")]
    after_handling: bool,
}

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(3600);

impl FaultRule {
    /// Returns the effect of the rule.
    #[must_use]
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    pub(super) fn is_after_handling(&self) -> bool {
        self.after_handling
    }

    /// Rejects an invalid rule.
    pub(super) fn check(&self) -> Result<(), FaultError> {
        let invalid = |field, why| Err(FaultError::Invalid { field, why });
        let too_long = |milliseconds: u64| Duration::from_millis(milliseconds) > MAX_DELAY;
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

    /// Returns true if the rule matches a request.
    pub(super) fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let Match {
            verbs,
            group,
            resource,
            namespace,
            name,
            path,
            user_agent,
        } = &self.requests;
        let of_object = attributes.resource;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let begins = |wanted: &Option<String>, found: &str| {
            wanted
                .as_deref()
                .is_none_or(|wanted| found.starts_with(wanted))
        };
        (verbs.is_empty() || verbs.contains(&attributes.verb))
            && (attributes.verb == "watch" || !matches!(self.effect, Effect::Watch { .. }))
            && is(group, of_object.map(|r| r.group.as_str()))
            && is(namespace, of_object.and_then(|r| r.namespace.as_deref()))
            && is(name, of_object.and_then(|r| r.name.as_deref()))
            && begins(path, attributes.path)
            && begins(user_agent, attributes.user_agent)
            && resource.as_deref().is_none_or(|wanted| {
                let plural = attributes.plural();
                let whole = wanted.strip_suffix("/*");
                of_object.is_some()
                    && (wanted == "*"
                        || wanted == plural
                        || whole.is_some_and(|w| plural.split('/').next() == Some(w)))
            })
    }

    /// Returns true if the rule applies to the next matching request. `matched` is the number of
    /// earlier matching requests, and `fired` the number of requests that the rule applied to.
    pub(super) fn applies(&self, matched: u64, fired: u64) -> bool {
        matched >= self.skip
            && self.times.is_none_or(|times| fired < times)
            && self
                .share
                .is_none_or(|share| fraction(self.seed, matched) < share)
    }
}

/// Returns a pseudorandom number in [0, 1) (SplitMix64).
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
mod tests;
