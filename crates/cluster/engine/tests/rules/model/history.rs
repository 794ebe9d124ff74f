//! Orders the operations of several clients by the revisions in their responses, and
//! compares them with the plain model.

use super::{
    client::{Note, Outcome, Record},
    kind::{ApiVersion, Key, Kind},
    model_object::{ModelObject, State},
    operation::{Operation, Scope},
    plain::{Effect, Step, effect, is_served, list, read, visible},
};

/// A write outside the writer's turn fails with a conflict after this many concurrent
/// changes of the objects that it depends on.
const ATTEMPTS: u64 = 5;

/// Every state that existed.
pub struct History {
    /// The revision of the first state.
    pub start: u64,
    /// The states, from the first one on.
    pub states: Vec<State>,
    /// The step from each state to the next.
    pub steps: Vec<Step>,
    /// Revisions up to this one were reported as expired.
    pub expired_until: u64,
    /// The number of events of each kind that are kept.
    pub kept: usize,
}

impl History {
    pub fn state(&self, revision: u64) -> &State {
        &self.states[usize::try_from(revision - self.start).unwrap()]
    }

    pub fn end(&self) -> u64 {
        self.start + self.steps.len() as u64
    }

    /// The part of a state that clients can see.
    pub fn visible_state(&self, revision: u64) -> State {
        visible(self.state(revision))
    }

    /// The steps after a revision, with their revisions.
    pub fn steps_after(&self, revision: u64) -> impl Iterator<Item = (u64, &Step)> {
        let skip = usize::try_from(revision - self.start).unwrap();
        (revision + 1..).zip(&self.steps[skip..])
    }

    /// Returns true if the history of a kind after a revision may have been trimmed at another
    /// revision.
    pub fn may_expire(&self, kind: Kind, after: u64, by: u64) -> bool {
        let newer = self.steps_after(after).take_while(|(made, _)| *made <= by);
        let events = newer.filter(|(_, step)| step.key.kind == kind).count();
        // A custom kind starts without a history.
        let began = kind == Kind::Shoe && {
            let mut steps = self.steps_after(after.saturating_sub(1).max(self.start));
            steps.any(|(made, step)| made <= by && begins(step))
        };
        after < self.expired_until || events > self.kept || began
    }

    /// The number of changes, during a write of a kind, of the objects that the write depends on.
    fn changes(&self, kind: Kind, note: &Note) -> u64 {
        let steps = self.steps_after(note.before);
        let during = steps.take_while(|(made, _)| *made <= note.after);
        let rests_on =
            |made: Kind| made == kind || (kind == Kind::Definition && made == Kind::Shoe);
        during.filter(|(_, step)| rests_on(step.key.kind)).count() as u64
    }

    /// Returns true if a kind is served at a revision.
    pub fn is_served(&self, kind: Kind, api_version: ApiVersion, revision: u64) -> bool {
        kind != Kind::Shoe || is_served(self.state(revision), api_version)
    }

    fn apply(&mut self, step: Step) {
        let mut state = self.states.last().unwrap().clone();
        assert_eq!(state.get(&step.key), step.before.as_ref());
        step.clone().take(&mut state);
        self.states.push(state);
        self.steps.push(step);
    }

    /// Finds an order of the operations: one operation produced each revision, with the effect that
    /// the model expects, between its call and its response. The model must expect that all other
    /// operations changed no objects. `fits` must hold for the order.
    pub fn linearise(
        (start, first): (u64, State),
        end: u64,
        kept: usize,
        records: &[Record],
        fits: &dyn Fn(&Self) -> Result<(), String>,
    ) {
        let expired_until = records
            .iter()
            .filter(|record| record.operation == Operation::ExpireHistory);
        let expired_until = expired_until
            .map(|record| record.note.after)
            .max()
            .unwrap_or(start);
        let mut history = Self {
            start,
            states: vec![first],
            steps: Vec::new(),
            expired_until,
            kept,
        };
        let mut search = Search {
            records,
            fits,
            end,
            placed: vec![false; records.len()],
            furthest: (0, String::new()),
        };
        let found = search.go(&mut history, None);
        assert!(found, "no order found: {}", search.furthest.1);
    }

    /// Checks an operation that changed no objects: its response must be correct in some state
    /// between its call and its response.
    fn check_unchanged(&self, record: &Record) -> Result<(), String> {
        let note = &record.note;
        let kind = record.operation.kind();
        if let Some(kind) = kind
            && note.outcome == Outcome::Rejected("Expired".into())
        {
            let asked = note.asked.unwrap_or(note.before);
            return if asked < self.start || self.may_expire(kind, asked, note.after) {
                Ok(())
            } else {
                Err(format!("expired without reason: {record:#?}"))
            };
        }
        if note.outcome == Outcome::Rejected("Conflict".into())
            && kind.is_some_and(|kind| self.changes(kind, note) >= ATTEMPTS)
        {
            return Ok(());
        }
        if let (Operation::List { scope, .. }, Outcome::Inconsistent { first, rest }) =
            (&record.operation, &note.outcome)
        {
            return self.check_inconsistent_list(scope, note, first, rest);
        }
        let unserved = kind.is_some_and(|kind| {
            let mut revisions = note.before..=note.after;
            revisions.any(|revision| !self.is_served(kind, record.api_version, revision))
        });
        if unserved && note.outcome == Outcome::Rejected("NotFound".into()) {
            return Ok(());
        }
        let at = match note.asked {
            Some(asked) if asked < self.start => return Ok(()),
            Some(asked) => asked..=asked,
            None => note.before..=note.after,
        };
        // The current state decides whether a kind is served, not the requested state.
        let expected = |revision| match note.asked {
            Some(_) => read(self.state(revision), revision, record),
            None => effect(self.state(revision), revision, record),
        };
        let right = at.clone().any(|revision| {
            let effect = expected(revision);
            (record.operation.is_dry() || effect.steps.is_empty()) && same(record, &effect.outcome)
        });
        if right {
            Ok(())
        } else {
            Err(format!(
                "wrong in every state of {at:?}: {record:#?}\n{:#?}",
                expected(*at.start())
            ))
        }
    }

    /// Checks a list that continued in another state, because its first state had expired.
    fn check_inconsistent_list(
        &self,
        scope: &Scope,
        note: &Note,
        (first_at, first): &(u64, Vec<(Key, ModelObject)>),
        (rest_at, rest): &(u64, Vec<(Key, ModelObject)>),
    ) -> Result<(), String> {
        let last = first.last().map(|(key, _)| key);
        let mut all = list(self.state(*rest_at), scope);
        all.retain(|(key, _)| Some(key) > last);
        let known = *first_at < self.start || {
            self.may_expire(scope.kind, *first_at, note.after)
                && list(self.state(*first_at), scope).starts_with(first)
        };
        let newest = (note.before..=note.after).contains(rest_at);
        if known && newest && all == *rest {
            Ok(())
        } else {
            Err(format!(
                "an inconsistent list differs from the model: {note:#?}"
            ))
        }
    }
}

/// Returns true if a step establishes the custom kind.
fn begins(step: &Step) -> bool {
    step.key.kind == Kind::Definition && step.before.is_none()
}

/// Searches for an order. A response without a version may fit at several positions, so the search
/// can backtrack.
struct Search<'a> {
    records: &'a [Record],
    /// A condition on the complete order.
    fits: &'a dyn Fn(&History) -> Result<(), String>,
    end: u64,
    placed: Vec<bool>,
    /// The error at the furthest point of the search.
    furthest: (u64, String),
}

impl Search<'_> {
    fn go(&mut self, history: &mut History, before: Option<u64>) -> bool {
        let revision = history.end();
        for (index, record) in self.records.iter().enumerate() {
            let over = record.note.after <= revision
                && before.is_none_or(|before| record.note.after > before);
            if over
                && !self.placed[index]
                && let Err(problem) = history.check_unchanged(record)
            {
                return self.fail(revision, problem);
            }
        }
        if revision == self.end {
            return match (self.fits)(history) {
                Ok(()) => true,
                Err(problem) => self.fail(revision, problem),
            };
        }
        let choices = next(
            history.state(revision),
            revision,
            self.records,
            &self.placed,
        );
        if choices.is_empty() {
            let near: Vec<_> = self
                .records
                .iter()
                .filter(|r| r.note.before <= revision && r.note.after > revision)
                .collect();
            let problem = format!(
                "no operation explains revision {}; under way: {near:#?}\nstate: {:#?}",
                revision + 1,
                history.state(revision)
            );
            return self.fail(revision, problem);
        }
        for (index, effect) in choices {
            for step in effect.steps {
                history.apply(with_uid(step, &self.records[index].note.outcome));
            }
            self.placed[index] = true;
            if history.end() <= self.records[index].note.after && self.go(history, Some(revision)) {
                return true;
            }
            self.placed[index] = false;
            let length = usize::try_from(revision - history.start).unwrap();
            history.steps.truncate(length);
            history.states.truncate(length + 1);
        }
        false
    }

    fn fail(&mut self, revision: u64, problem: String) -> bool {
        if revision >= self.furthest.0 {
            self.furthest = (revision, problem);
        }
        false
    }
}

/// The operations that can have produced the next revision, with their effects, the
/// likeliest first.
pub fn next(
    state: &State,
    revision: u64,
    records: &[Record],
    placed: &[bool],
) -> Vec<(usize, Effect)> {
    let candidates = records
        .iter()
        .enumerate()
        .filter(|(index, _)| !placed[*index]);
    let mut candidates: Vec<_> = candidates
        .filter_map(|(index, record)| {
            let window = record.note.before..record.note.after;
            if record.operation.is_dry() || !window.contains(&revision) {
                return None;
            }
            let effect = effect(state, revision, record);
            (!effect.steps.is_empty() && same(record, &effect.outcome)).then_some((index, effect))
        })
        .collect();
    candidates.sort_by_key(|(index, _)| match records[*index].note.outcome {
        Outcome::Done => 2,
        _ if records[*index].note.version.is_none() => 1,
        _ => 0,
    });
    candidates
}

/// Returns true if a response equals the expected one. New objects may have any UID, and dry runs
/// any version.
fn same(record: &Record, expected: &Outcome) -> bool {
    let is_dry = record.operation.is_dry();
    let fits = |((key, model_object), (expected_key, expected)): (
        &(Key, ModelObject),
        &(Key, ModelObject),
    )| {
        let mut expected = expected.clone();
        if expected.uid.is_empty() {
            expected.uid.clone_from(&model_object.uid);
        }
        if is_dry {
            expected.version = model_object.version;
        }
        key == expected_key && *model_object == expected
    };
    match (&record.note.outcome, expected) {
        (Outcome::Objects(actual), Outcome::Objects(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(fits)
        }
        (actual, expected) => actual == expected,
    }
}

/// A step with the UID that the response gives to a new object.
pub fn with_uid(mut step: Step, actual: &Outcome) -> Step {
    let given = match actual {
        Outcome::Objects(model_objects) => {
            let made = model_objects.iter().find(|(key, _)| *key == step.key);
            made.map(|(_, model_object)| model_object.uid.clone())
                .unwrap_or_default()
        }
        _ => String::new(),
    };
    for model_object in [Some(&mut step.event_object), step.before.as_mut()]
        .into_iter()
        .flatten()
    {
        if model_object.uid.is_empty() {
            model_object.uid.clone_from(&given);
        }
    }
    step
}
