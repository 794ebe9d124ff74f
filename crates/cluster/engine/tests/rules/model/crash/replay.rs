//! The expected store of a killed process, according to its acknowledged writes.

use std::collections::BTreeSet;

use crate::model::{
    client::{Outcome, Record},
    history::{next, with_uid},
    kind::{Key, Kind},
    model_object::State,
    operation::{Call, Operation},
};

/// The objects that an operation can change.
fn touched(operation: &Operation) -> Vec<Key> {
    match operation {
        _ if operation.is_dry() => Vec::new(),
        // The server generates the name.
        Operation::Create {
            key,
            generated: true,
            ..
        } => vec![Key::new(key.kind, &key.namespace, "g-")],
        Operation::Create { key, .. } if key.kind == Kind::Namespace => {
            vec![key.clone(), Key::new(Kind::Account, &key.name, "default")]
        }
        Operation::Create { key, .. }
        | Operation::Update { key, .. }
        | Operation::Patch { key, .. }
        | Operation::Apply { key, .. }
        | Operation::Status { key, .. }
        | Operation::Delete { key, .. } => vec![key.clone()],
        Operation::Bind { name, .. } => vec![Key::new(Kind::Pod, "default", name)],
        Operation::Finalize { name, .. } => vec![Key::new(Kind::Namespace, "", name)],
        _ => Vec::new(),
    }
}

/// Objects whose state the model cannot know.
pub(super) struct Uncertain(BTreeSet<Key>);

impl Uncertain {
    /// The objects that interrupted operations may have changed.
    fn of(first: &State, done: &[Record], broken: &[Call]) -> Self {
        let broken = broken.iter().map(|call| &call.operation);
        let mut uncertain: BTreeSet<Key> = broken.clone().flat_map(touched).collect();
        // Deleting a definition deletes its objects one by one.
        let ends = |operation: &Operation| matches!(operation, Operation::Delete { key, .. } if key.kind == Kind::Definition);
        let definition = Key::definition();
        let mut all = done.iter().map(|record| &record.operation).chain(broken);
        let is_ending = all.any(ends) || first.get(&definition).is_some_and(|d| d.grace.is_some());
        if is_ending && uncertain.iter().any(|key| key.kind == Kind::Shoe) {
            uncertain.insert(definition);
        }
        Self(uncertain)
    }

    /// Returns true if an object is uncertain. An uncertain namespace makes all its objects
    /// uncertain, and an uncertain definition makes all objects of its kind uncertain.
    pub(super) fn holds(&self, key: &Key) -> bool {
        let namespace = Key::new(Kind::Namespace, "", &key.namespace);
        let of_definition = key.kind == Kind::Shoe && self.0.contains(&Key::definition());
        self.0.contains(key) || self.0.contains(&namespace) || of_definition
    }
}

/// Replays the acknowledged operations on the first state, up to the revision of the store,
/// except for the objects that interrupted operations may have changed.
pub(super) fn replay(
    start: u64,
    first: State,
    end: u64,
    mut done: Vec<Record>,
    broken: &[Call],
) -> (State, Uncertain) {
    let uncertain = Uncertain::of(&first, &done, broken);
    let generates = |call: &Call| {
        matches!(
            call.operation,
            Operation::Create {
                generated: true,
                ..
            }
        )
    };
    let is_sure = uncertain.0.is_empty() && !broken.iter().any(generates);
    let is_uncertain = |key: &Key| uncertain.holds(key);
    done.retain(|record| !touched(&record.operation).iter().any(is_uncertain));
    let mut placed = vec![false; done.len()];
    let mut state = first;
    let mut revision = start;
    let mut gaps = 0;
    while revision < end {
        match next(&state, revision, &done, &placed).into_iter().next() {
            Some((index, effect)) => {
                placed[index] = true;
                for step in effect.steps {
                    with_uid(step, &done[index].note.outcome).take(&mut state);
                    revision += 1;
                }
            }
            // The object was created by an operation that was left out.
            None => {
                revision += 1;
                gaps += 1;
            }
        }
    }
    let lost: Vec<_> = done
        .iter()
        .zip(&placed)
        .filter(|(record, placed)| !**placed && made(record))
        .collect();
    assert!(lost.is_empty(), "acknowledged, but not done: {lost:#?}");
    assert!(!is_sure || gaps == 0, "{gaps} revisions are unexplained");
    state.retain(|key, _| !uncertain.holds(key));
    (state, uncertain)
}

/// Returns true if an operation created an object and no other operation can have created it.
fn made(record: &Record) -> bool {
    matches!(record.operation, Operation::Create { dry: false, .. })
        && matches!(record.note.outcome, Outcome::Objects(_))
}
