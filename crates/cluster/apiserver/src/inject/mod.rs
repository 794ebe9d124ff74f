//! Fault injection: rules that make selected requests fail, so that programs can be tested against
//! a server that rejects requests, responds late, or drops connections.
//!
//! The list of rules is empty unless a test adds rules. The order of the rules, counters and a
//! seeded share decide which rule applies, so the result is never random.

pub(crate) mod answer;
mod attributes;
mod rule;
mod watches;

pub(crate) use attributes::Attributes;
pub use rule::{Effect, FaultError, FaultRule, Match, WatchEnd};
pub(crate) use watches::{Request, WatchPlan, guard};

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use longshore_engine::Engine;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The maximum number of rules.
pub const MOST_FAULTS: usize = 1000;

/// The fault injection rules of a server. Cheap to clone; all clones share the
/// same rules.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    /// True if any rule exists; if not, requests skip all other checks.
    has_rules: AtomicBool,
    state: Mutex<State>,
    /// Number of the last rule added; running watches check it for new rules.
    added: watch::Sender<u64>,
    engine: Engine,
}

#[derive(Default)]
struct State {
    rules: Vec<CountedRule>,
    /// Number of the last rule; numbers are not reused.
    last: u64,
}

/// A rule with its counters.
struct CountedRule {
    number: u64,
    rule: FaultRule,
    matched: u64,
    fired: u64,
}

/// A rule of a server and its counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultReport {
    /// The id that [`Faults::remove`] accepts.
    pub id: String,
    /// Number of requests that matched the rule, including those it did not
    /// apply to: skipped requests, requests outside its share, and requests
    /// beyond `times`.
    pub matched: u64,
    /// Number of requests the rule applied to.
    pub fired: u64,
    /// The rule.
    #[serde(flatten)]
    pub rule: FaultRule,
}

/// The effects of the rules on a request.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Delay before the request is handled.
    pub(crate) delay: Duration,
    /// The effect, and true if it applies after the request is handled.
    pub(crate) effect: Option<(Effect, bool)>,
    /// The end of the request's watch.
    pub(crate) watch: Option<WatchPlan>,
    /// Number of the last rule that was evaluated.
    pub(crate) seen: u64,
}

impl Faults {
    pub(crate) fn new(engine: Engine) -> Self {
        Self(Arc::new(Inner {
            has_rules: AtomicBool::new(false),
            state: Mutex::default(),
            added: watch::Sender::new(0),
            engine,
        }))
    }

    /// Adds a rule after the existing ones. A watch rule also applies to
    /// running watches.
    ///
    /// # Errors
    /// The rule is invalid, or there are already [`MOST_FAULTS`] rules.
    pub fn add(&self, rule: FaultRule) -> Result<String, FaultError> {
        rule.check()?;
        let mut state = self.state();
        if state.rules.len() >= MOST_FAULTS {
            return Err(FaultError::TooMany);
        }
        state.last += 1;
        let number = state.last;
        state.rules.push(CountedRule {
            number,
            rule,
            matched: 0,
            fired: 0,
        });
        self.0.has_rules.store(true, Ordering::Release);
        self.0.added.send_replace(number);
        drop(state);
        Ok(number.to_string())
    }

    /// Removes a rule and returns its last report, or `None` if the rule does not exist. Watches
    /// that the rule has stalled remain stalled.
    pub fn remove(&self, id: &str) -> Option<FaultReport> {
        let mut state = self.state();
        let at = state
            .rules
            .iter()
            .position(|counted| counted.number.to_string() == id)?;
        let counted = state.rules.remove(at);
        self.0
            .has_rules
            .store(!state.rules.is_empty(), Ordering::Release);
        Some(counted.report())
    }

    /// Removes all rules.
    pub fn clear(&self) {
        let mut state = self.state();
        state.rules.clear();
        self.0.has_rules.store(false, Ordering::Release);
    }

    /// Returns a rule and its counters.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<FaultReport> {
        self.list().into_iter().find(|report| report.id == id)
    }

    /// Returns the number of times that a rule applied; 0 if the rule does not exist.
    #[must_use]
    pub fn fired(&self, id: &str) -> u64 {
        self.get(id).map_or(0, |report| report.fired)
    }

    /// Returns all rules and their counters in order of evaluation.
    #[must_use]
    pub fn list(&self) -> Vec<FaultReport> {
        self.state().rules.iter().map(CountedRule::report).collect()
    }

    /// Discards the watch history: a watch from an older version and a list
    /// that continues an older page get `410 Expired`. Running watches that are
    /// up to date continue.
    pub async fn expire_history(&self) {
        self.0.engine.expire_history().await;
    }

    /// Returns true if any rule exists.
    pub(crate) fn has_rules(&self) -> bool {
        self.0.has_rules.load(Ordering::Acquire)
    }

    /// Evaluates the rules for a request; `None` if the list of rules is empty.
    pub(crate) fn evaluate(&self, attributes: &Attributes<'_>) -> Option<Decision> {
        if !self.has_rules() {
            return None;
        }
        let mut decision = Decision::default();
        for counted in &mut self.state().rules {
            decision.seen = counted.number;
            if !counted.rule.matches(attributes) {
                continue;
            }
            match counted.rule.effect() {
                Effect::Delay { milliseconds } => {
                    let milliseconds = *milliseconds;
                    if counted.count_match() {
                        decision.delay += Duration::from_millis(milliseconds);
                    }
                }
                Effect::Watch { .. } => {
                    if decision.watch.is_none() && counted.count_match() {
                        decision.watch = WatchPlan::of(counted.rule.effect());
                    }
                }
                _ => {
                    if decision.effect.is_none() && counted.count_match() {
                        let effect = counted.rule.effect().clone();
                        decision.effect = Some((effect, counted.rule.is_after_handling()));
                    }
                }
            }
        }
        Some(decision)
    }

    /// Evaluates the rules added after `seen` for a running watch and updates
    /// `seen`.
    fn evaluate_running(&self, attributes: &Attributes<'_>, seen: &mut u64) -> Option<WatchPlan> {
        for counted in &mut self.state().rules {
            if counted.number <= *seen {
                continue;
            }
            *seen = counted.number;
            if matches!(counted.rule.effect(), Effect::Watch { .. })
                && counted.rule.matches(attributes)
                && counted.count_match()
            {
                return WatchPlan::of(counted.rule.effect());
            }
        }
        None
    }

    fn additions(&self) -> watch::Receiver<u64> {
        self.0.added.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

impl CountedRule {
    /// Counts a matching request. Returns true if the rule applies to it.
    fn count_match(&mut self) -> bool {
        let hit = self.rule.applies(self.matched, self.fired);
        self.matched += 1;
        self.fired += u64::from(hit);
        hit
    }

    fn report(&self) -> FaultReport {
        FaultReport {
            id: self.number.to_string(),
            matched: self.matched,
            fired: self.fired,
            rule: self.rule.clone(),
        }
    }
}
