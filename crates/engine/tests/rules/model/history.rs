//! Puts what several clients did in one order, by the revisions they were
//! answered, and holds it against the plain model.

use super::{
    client::{Outcome, Record},
    operation::Operation,
    plain::{Effect, Step, effect},
    thing::{Key, State, Thing},
};

/// Every state there was.
pub struct History {
    /// The revision of the first state.
    pub start: u64,
    /// The states, from the first on.
    pub states: Vec<State>,
    /// What led from each state to the next.
    pub steps: Vec<Step>,
    /// Revisions up to here may have been forgotten.
    pub forgotten: u64,
}

impl History {
    pub fn state(&self, revision: u64) -> &State {
        &self.states[usize::try_from(revision - self.start).unwrap()]
    }

    pub fn end(&self) -> u64 {
        self.start + self.steps.len() as u64
    }

    fn apply(&mut self, step: Step) {
        let mut state = self.states.last().unwrap().clone();
        assert_eq!(state.get(&step.key), step.before.as_ref());
        if step.gone {
            state.remove(&step.key);
        } else {
            state.insert(step.key.clone(), step.told.clone());
        }
        self.states.push(state);
        self.steps.push(step);
    }

    /// Finds the order in which the operations took place: each revision was
    /// made by one of them, with the effect the model says, between its call
    /// and its answer; all others changed nothing, rightly so. `fits` must hold
    /// of it, too.
    pub fn linearise(
        start: u64,
        first: State,
        end: u64,
        records: &[Record],
        fits: &dyn Fn(&Self) -> Result<(), String>,
    ) -> Self {
        let forgotten = records
            .iter()
            .filter(|record| record.operation == Operation::Forget);
        let forgotten = forgotten
            .map(|record| record.note.after)
            .max()
            .unwrap_or(start);
        let mut history = Self {
            start,
            states: vec![first],
            steps: Vec::new(),
            forgotten,
        };
        let mut search = Search {
            records,
            fits,
            end,
            placed: vec![false; records.len()],
            furthest: (0, String::new()),
        };
        let found = search.go(&mut history, None);
        assert!(found, "in no order: {}", search.furthest.1);
        history
    }

    /// An operation that changed nothing must be right in some state that there
    /// was between its call and its answer.
    fn check_still(&self, record: &Record) -> Result<(), String> {
        let note = &record.note;
        if note.outcome == Outcome::Refused("Expired".into()) {
            // A list over pages may lose its state on the way.
            let asked = note.asked.unwrap_or(note.before);
            return if asked < self.forgotten {
                Ok(())
            } else {
                Err(format!("forgotten without reason: {record:#?}"))
            };
        }
        let at = match note.asked {
            Some(asked) if asked < self.start => return Ok(()),
            Some(asked) => asked..=asked,
            None => note.before..=note.after,
        };
        let expected = |revision| effect(self.state(revision), revision, record);
        let right = at.clone().any(|revision| {
            let effect = expected(revision);
            (is_dry(&record.operation) || effect.steps.is_empty()) && same(record, &effect.outcome)
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
}

/// Looks for an order. An answer without a version fits in more than one place,
/// so a choice may have to be taken back.
struct Search<'a> {
    records: &'a [Record],
    /// What else must hold in the end.
    fits: &'a dyn Fn(&History) -> Result<(), String>,
    end: u64,
    placed: Vec<bool>,
    /// What was wrong where the search came furthest.
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
                && let Err(problem) = history.check_still(record)
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
                "nobody rightly made revision {}; under way: {near:#?}\nstate: {:#?}",
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

/// Which operations can have made the next revision, the likeliest first, and
/// their effects.
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
            if is_dry(&record.operation) || !window.contains(&revision) {
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

fn is_dry(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Create { dry: true, .. }
            | Operation::Update { dry: true, .. }
            | Operation::Patch { dry: true, .. }
    )
}

/// Whether an answer is the expected one. New objects have any uid, and dry
/// runs any version.
fn same(record: &Record, expected: &Outcome) -> bool {
    let is_create = matches!(record.operation, Operation::Create { .. });
    let is_dry = is_dry(&record.operation);
    let plain = |things: &[(Key, Thing)]| -> Vec<(Key, Thing)> {
        let plain = |thing: &Thing| Thing {
            uid: if is_create {
                String::new()
            } else {
                thing.uid.clone()
            },
            version: if is_dry { 0 } else { thing.version },
            ..thing.clone()
        };
        things
            .iter()
            .map(|(key, thing)| (key.clone(), plain(thing)))
            .collect()
    };
    match (&record.note.outcome, expected) {
        (Outcome::Things(actual), Outcome::Things(expected)) => plain(actual) == plain(expected),
        (actual, expected) => actual == expected,
    }
}

/// A step with the uid that the answer gives a new object.
pub fn with_uid(mut step: Step, actual: &Outcome) -> Step {
    step.told.uid = match (&step.before, actual) {
        (Some(before), _) => before.uid.clone(),
        (None, Outcome::Things(things)) => {
            let made = things.iter().find(|(key, _)| *key == step.key);
            made.map(|(_, thing)| thing.uid.clone()).unwrap_or_default()
        }
        _ => String::new(),
    };
    step
}
