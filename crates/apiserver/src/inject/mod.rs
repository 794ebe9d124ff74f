//! Faults on demand: rules that make chosen requests fail, so that programs
//! can be tested against a server that refuses, lags, or breaks off.
//!
//! There is no rule unless a test adds one. Which rule fires is decided by the
//! order of the rules, by counts and by a seeded share: never by chance.

pub(crate) mod answer;
mod asked;
mod rule;
mod watches;

pub(crate) use asked::Asked;
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

/// The most rules there can be at a time.
pub const MOST_FAULTS: usize = 1000;

/// The rules of a server. Cheap to clone; all clones are the same set.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    /// Whether there is any rule: requests look no further otherwise.
    armed: AtomicBool,
    state: Mutex<State>,
    /// Counts the rules added, so that running watches look at new ones.
    added: watch::Sender<u64>,
    engine: Engine,
}

#[derive(Default)]
struct State {
    rules: Vec<Armed>,
    /// Numbers are not given twice.
    last: u64,
}

/// A rule, and what came of it.
struct Armed {
    number: u64,
    rule: FaultRule,
    matched: u64,
    fired: u64,
}

/// A rule of a server, and how often it came into play.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultReport {
    /// What [`Faults::remove`] takes.
    pub id: String,
    /// How many requests the rule was asked about and fits, also those that it
    /// let pass: skipped ones, those outside its share, those beyond `times`.
    pub matched: u64,
    /// How many requests it hit.
    pub fired: u64,
    /// The rule.
    #[serde(flatten)]
    pub rule: FaultRule,
}

/// What the rules say about one request.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Wait so long first.
    pub(crate) delay: Duration,
    /// Then do this, instead of handling the request or after it.
    pub(crate) effect: Option<(Effect, bool)>,
    /// How its watch is to end.
    pub(crate) watch: Option<WatchPlan>,
    /// The last rule that was looked at.
    pub(crate) seen: u64,
}

impl Faults {
    pub(crate) fn new(engine: Engine) -> Self {
        Self(Arc::new(Inner {
            armed: AtomicBool::new(false),
            state: Mutex::default(),
            added: watch::Sender::new(0),
            engine,
        }))
    }

    /// Adds a rule, behind those that are there. Watches that run already feel
    /// it, too, if it is one about watches.
    ///
    /// # Errors
    /// The rule makes no sense, or there are [`MOST_FAULTS`] already.
    pub fn add(&self, rule: FaultRule) -> Result<String, FaultError> {
        rule.check()?;
        let mut state = self.state();
        if state.rules.len() >= MOST_FAULTS {
            return Err(FaultError::TooMany);
        }
        state.last += 1;
        let number = state.last;
        state.rules.push(Armed {
            number,
            rule,
            matched: 0,
            fired: 0,
        });
        self.0.armed.store(true, Ordering::Release);
        self.0.added.send_replace(number);
        drop(state);
        Ok(number.to_string())
    }

    /// Removes a rule and returns its last report, or `None` when there is none.
    /// Watches that a rule has stalled stay stalled.
    pub fn remove(&self, id: &str) -> Option<FaultReport> {
        let mut state = self.state();
        let at = state
            .rules
            .iter()
            .position(|armed| armed.number.to_string() == id)?;
        let armed = state.rules.remove(at);
        self.0
            .armed
            .store(!state.rules.is_empty(), Ordering::Release);
        Some(armed.report())
    }

    /// Removes all rules.
    pub fn clear(&self) {
        let mut state = self.state();
        state.rules.clear();
        self.0.armed.store(false, Ordering::Release);
    }

    /// A rule and its counters.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<FaultReport> {
        self.list().into_iter().find(|report| report.id == id)
    }

    /// How often a rule fired; 0 when there is no such rule.
    #[must_use]
    pub fn fired(&self, id: &str) -> u64 {
        self.get(id).map_or(0, |report| report.fired)
    }

    /// All rules and their counters, in the order in which they are asked.
    #[must_use]
    pub fn list(&self) -> Vec<FaultReport> {
        self.state().rules.iter().map(Armed::report).collect()
    }

    /// Forgets the watch history now: a watch from an older version and a list
    /// that goes on from an older page get `410 Expired`. Watches that
    /// run and have read everything go on.
    pub async fn expire_history(&self) {
        self.0.engine.expire_history().await;
    }

    /// Whether there is any rule.
    pub(crate) fn are_armed(&self) -> bool {
        self.0.armed.load(Ordering::Acquire)
    }

    /// What the rules say about a request; `None` when there are no rules.
    pub(crate) fn judge(&self, asked: &Asked<'_>) -> Option<Verdict> {
        if !self.are_armed() {
            return None;
        }
        let mut verdict = Verdict::default();
        for armed in &mut self.state().rules {
            verdict.seen = armed.number;
            if !armed.rule.concerns(asked) {
                continue;
            }
            match armed.rule.effect() {
                Effect::Delay { milliseconds } => {
                    let milliseconds = *milliseconds;
                    if armed.strike() {
                        verdict.delay += Duration::from_millis(milliseconds);
                    }
                }
                Effect::Watch { .. } => {
                    if verdict.watch.is_none() && armed.strike() {
                        verdict.watch = WatchPlan::of(armed.rule.effect());
                    }
                }
                _ => {
                    if verdict.effect.is_none() && armed.strike() {
                        let effect = armed.rule.effect().clone();
                        verdict.effect = Some((effect, armed.rule.is_after_handling()));
                    }
                }
            }
        }
        Some(verdict)
    }

    /// What rules newer than `seen` say about a running watch; `seen` moves on.
    fn judge_running(&self, asked: &Asked<'_>, seen: &mut u64) -> Option<WatchPlan> {
        for armed in &mut self.state().rules {
            if armed.number <= *seen {
                continue;
            }
            *seen = armed.number;
            if matches!(armed.rule.effect(), Effect::Watch { .. })
                && armed.rule.concerns(asked)
                && armed.strike()
            {
                return WatchPlan::of(armed.rule.effect());
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

impl Armed {
    /// Counts a request that fits; whether the rule hits it.
    fn strike(&mut self) -> bool {
        let hit = self.rule.hits(self.matched, self.fired);
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
