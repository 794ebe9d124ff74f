//! Puts what several clients did in one order, by the revisions they were
//! answered, and holds it against the plain model.

use super::{
    client::{Note, Outcome, Record},
    kind::{Key, Kind, Via},
    operation::{Operation, Scope},
    plain::{Effect, Step, effect, is_served, list, read, visible},
    thing::{State, Thing},
};

/// Changes of what a write rests on after which it gives up with a conflict, as
/// it may where the work is done beside the writer.
const ATTEMPTS: u64 = 5;

/// Every state there was.
pub struct History {
    /// The revision of the first state.
    pub start: u64,
    /// The states, from the first on.
    pub states: Vec<State>,
    /// What led from each state to the next.
    pub steps: Vec<Step>,
    /// Revisions up to here were told to be forgotten.
    pub forgotten: u64,
    /// How many events of each kind are kept.
    pub kept: usize,
}

impl History {
    pub fn state(&self, revision: u64) -> &State {
        &self.states[usize::try_from(revision - self.start).unwrap()]
    }

    pub fn end(&self) -> u64 {
        self.start + self.steps.len() as u64
    }

    /// What anybody can see of a state.
    pub fn seen(&self, revision: u64) -> State {
        visible(self.state(revision))
    }

    /// The steps after a revision, with the revisions they made.
    pub fn steps_after(&self, revision: u64) -> impl Iterator<Item = (u64, &Step)> {
        let skip = usize::try_from(revision - self.start).unwrap();
        (revision + 1..).zip(&self.steps[skip..])
    }

    /// Whether the events of a kind after a revision may be forgotten by the
    /// time of another.
    pub fn may_forget(&self, kind: Kind, after: u64, by: u64) -> bool {
        let newer = self.steps_after(after).take_while(|(made, _)| *made <= by);
        let events = newer.filter(|(_, step)| step.key.kind == kind).count();
        // A custom kind that is made begins without a past.
        let began = kind == Kind::Shoe && {
            let mut steps = self.steps_after(after.saturating_sub(1).max(self.start));
            steps.any(|(made, step)| made <= by && begins(step))
        };
        after < self.forgotten || events > self.kept || began
    }

    /// How often what a write of a kind rests on changed while it was under way.
    fn changes(&self, kind: Kind, note: &Note) -> u64 {
        let steps = self.steps_after(note.before);
        let during = steps.take_while(|(made, _)| *made <= note.after);
        let rests_on =
            |made: Kind| made == kind || (kind == Kind::Definition && made == Kind::Shoe);
        during.filter(|(_, step)| rests_on(step.key.kind)).count() as u64
    }

    /// Whether a kind is there at a revision.
    pub fn is_served(&self, kind: Kind, via: Via, revision: u64) -> bool {
        kind != Kind::Shoe || is_served(self.state(revision), via)
    }

    fn apply(&mut self, step: Step) {
        let mut state = self.states.last().unwrap().clone();
        assert_eq!(state.get(&step.key), step.before.as_ref());
        step.clone().take(&mut state);
        self.states.push(state);
        self.steps.push(step);
    }

    /// Finds the order in which the operations took place: each revision was
    /// made by one of them, with the effect the model says, between its call
    /// and its answer; all others changed nothing, rightly so. `fits` must hold
    /// of it, too.
    pub fn linearise(
        (start, first): (u64, State),
        end: u64,
        kept: usize,
        records: &[Record],
        fits: &dyn Fn(&Self) -> Result<(), String>,
    ) {
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
        assert!(found, "in no order: {}", search.furthest.1);
    }

    /// An operation that changed nothing must be right in some state that there
    /// was between its call and its answer.
    fn check_still(&self, record: &Record) -> Result<(), String> {
        let note = &record.note;
        let kind = record.operation.kind();
        if let Some(kind) = kind
            && note.outcome == Outcome::Refused("Expired".into())
        {
            let asked = note.asked.unwrap_or(note.before);
            return if asked < self.start || self.may_forget(kind, asked, note.after) {
                Ok(())
            } else {
                Err(format!("forgotten without reason: {record:#?}"))
            };
        }
        if note.outcome == Outcome::Refused("Conflict".into())
            && kind.is_some_and(|kind| self.changes(kind, note) >= ATTEMPTS)
        {
            return Ok(());
        }
        if let (Operation::List { scope, .. }, Outcome::Broken { first, rest }) =
            (&record.operation, &note.outcome)
        {
            return self.check_broken(scope, note, first, rest);
        }
        let unserved = kind.is_some_and(|kind| {
            let mut revisions = note.before..=note.after;
            revisions.any(|revision| !self.is_served(kind, record.via, revision))
        });
        if unserved && note.outcome == Outcome::Refused("NotFound".into()) {
            return Ok(());
        }
        let at = match note.asked {
            Some(asked) if asked < self.start => return Ok(()),
            Some(asked) => asked..=asked,
            None => note.before..=note.after,
        };
        // Whether a kind is served is a question of now, not of an old state.
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

    /// A list that went on in another state, because its own was forgotten.
    fn check_broken(
        &self,
        scope: &Scope,
        note: &Note,
        (first_at, first): &(u64, Vec<(Key, Thing)>),
        (rest_at, rest): &(u64, Vec<(Key, Thing)>),
    ) -> Result<(), String> {
        let last = first.last().map(|(key, _)| key);
        let mut all = list(self.state(*rest_at), scope);
        all.retain(|(key, _)| Some(key) > last);
        let known = *first_at < self.start || {
            self.may_forget(scope.kind, *first_at, note.after)
                && list(self.state(*first_at), scope).starts_with(first)
        };
        let newest = (note.before..=note.after).contains(rest_at);
        if known && newest && all == *rest {
            Ok(())
        } else {
            Err(format!("a broken list went wrong: {note:#?}"))
        }
    }
}

/// Whether a step establishes the custom kind.
fn begins(step: &Step) -> bool {
    step.key.kind == Kind::Definition && step.before.is_none()
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

/// Whether an answer is the expected one. New objects have any uid, and dry
/// runs any version.
fn same(record: &Record, expected: &Outcome) -> bool {
    let is_dry = record.operation.is_dry();
    let fits = |((key, thing), (expected_key, expected)): (&(Key, Thing), &(Key, Thing))| {
        let mut expected = expected.clone();
        if expected.uid.is_empty() {
            expected.uid.clone_from(&thing.uid);
        }
        if is_dry {
            expected.version = thing.version;
        }
        key == expected_key && *thing == expected
    };
    match (&record.note.outcome, expected) {
        (Outcome::Things(actual), Outcome::Things(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(fits)
        }
        (actual, expected) => actual == expected,
    }
}

/// A step with the uid that the answer gives a new object.
pub fn with_uid(mut step: Step, actual: &Outcome) -> Step {
    let given = match actual {
        Outcome::Things(things) => {
            let made = things.iter().find(|(key, _)| *key == step.key);
            made.map(|(_, thing)| thing.uid.clone()).unwrap_or_default()
        }
        _ => String::new(),
    };
    for thing in [Some(&mut step.told), step.before.as_mut()]
        .into_iter()
        .flatten()
    {
        if thing.uid.is_empty() {
            thing.uid.clone_from(&given);
        }
    }
    step
}
