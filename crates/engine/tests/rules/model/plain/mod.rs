//! The plain model: what an operation must answer, and change, in a state.

mod apply;
mod definition;
mod delete;
mod write;

use super::{
    client::{Outcome, Record},
    kind::{Key, Kind},
    operation::{How, Operation, Scope},
    thing::{FINALIZED, State, Thing, shown},
};
use longshore_model::PatchKind;

pub use definition::{ends, is_served, visible};
use write::{Metadata, Write, changed, write};

/// One revision: what became of one object.
#[derive(Debug, Clone)]
pub struct Step {
    pub key: Key,
    pub before: Option<Thing>,
    /// What watches are told: the new state, or the last one of what is gone.
    pub told: Thing,
    pub gone: bool,
}

impl Step {
    fn made(key: &Key, told: Thing) -> Self {
        Self {
            key: key.clone(),
            before: None,
            told,
            gone: false,
        }
    }

    fn changed(key: &Key, before: &Thing, told: Thing) -> Self {
        Self {
            key: key.clone(),
            before: Some(before.clone()),
            told,
            gone: false,
        }
    }

    fn gone(key: &Key, before: &Thing, told: Thing) -> Self {
        Self {
            gone: true,
            ..Self::changed(key, before, told)
        }
    }

    /// Makes a state the next one.
    pub fn take(self, state: &mut State) {
        if self.gone {
            state.remove(&self.key);
        } else {
            state.insert(self.key, self.told);
        }
    }
}

/// What an operation does in a state.
#[derive(Debug)]
pub struct Effect {
    pub outcome: Outcome,
    pub steps: Vec<Step>,
}

impl Effect {
    fn refused(reason: &str) -> Self {
        Self::answer(Outcome::Refused(reason.to_owned()))
    }

    fn answer(outcome: Outcome) -> Self {
        Self {
            outcome,
            steps: Vec::new(),
        }
    }

    /// Ends with an answer that holds this object.
    fn one(key: &Key, thing: Thing, steps: Vec<Step>) -> Self {
        Self {
            outcome: Outcome::Things(vec![(key.clone(), thing)]),
            steps,
        }
    }
}

/// Whether a scope takes an object.
pub fn selects(scope: &Scope, key: &Key, thing: &Thing) -> bool {
    let here = scope
        .namespace
        .is_none_or(|namespace| key.namespace == namespace);
    let chosen = match (scope.selector % 5, key.kind) {
        (1, _) => thing.label == "1",
        (2, _) => thing.label != "1",
        (3, _) => matches!(thing.label.as_str(), "0" | "2"),
        (4, Kind::Pod) => thing.node == "node1",
        (4, _) => key.name != "o1",
        _ => true,
    };
    key.kind == scope.kind && here && chosen
}

/// The objects a scope takes, in order.
pub fn list(state: &State, scope: &Scope) -> Vec<(Key, Thing)> {
    state
        .iter()
        .filter(|(key, thing)| selects(scope, key, thing))
        .map(|(key, thing)| (key.clone(), thing.clone()))
        .collect()
}

/// What an operation does in the state of a revision.
pub fn effect(state: &State, revision: u64, record: &Record) -> Effect {
    if record.operation.kind() == Some(Kind::Shoe) && !is_served(state, record.via) {
        return match record.operation {
            Operation::Watch { .. } | Operation::Follow { .. } => Effect::answer(Outcome::Done),
            _ => Effect::refused("NotFound"),
        };
    }
    let mut effect = first_effect(state, revision, record);
    definition::settle(state, revision, &mut effect.steps);
    effect
}

/// What a read finds in an old state.
pub fn read(state: &State, revision: u64, record: &Record) -> Effect {
    first_effect(state, revision, record)
}

fn first_effect(state: &State, revision: u64, record: &Record) -> Effect {
    let note = &record.note;
    let next = revision + 1;
    let writing = |key: &Key| Write {
        state,
        next,
        key: key.clone(),
        version: note.version,
        uid: String::new(),
        sent_owners: None,
    };
    match &record.operation {
        Operation::Create {
            key,
            label,
            value,
            finalizer,
            ..
        } => {
            // A generated name is whatever came back.
            let key = match &note.outcome {
                Outcome::Things(things) if things.len() == 1 => &things[0].0,
                _ => key,
            };
            let mut thing = thing(key.kind, *label, *value, *finalizer);
            if key.kind == Kind::ConfigMap {
                apply::own_all(&mut thing, apply::CLIENT);
            }
            write::create(state, next, key, thing)
        }
        Operation::Update { key, .. } => {
            let sent = note.sent.clone().unwrap_or_default();
            if note.version.is_none() && !key.kind.takes_updates_without_version() {
                return without_version(state, key);
            }
            let put = Write {
                uid: sent.uid.clone(),
                sent_owners: Some(&sent.owners).filter(|owners| !owners.is_empty()),
                ..writing(key)
            };
            write(&put, &|old| Thing {
                label: sent.label.clone(),
                // A namespace's finalizers have a place of their own to be changed.
                value: if key.kind == Kind::Namespace {
                    &old.value
                } else {
                    &sent.value
                }
                .clone(),
                node: sent.node.clone(),
                is_new: sent.is_new,
                finalizers: sent.finalizers.clone(),
                ..old.clone()
            })
        }
        Operation::Patch {
            key, sort, change, ..
        } => {
            if *sort == PatchKind::Strategic && key.kind == Kind::Shoe {
                return of_no_use(state, key);
            }
            write(&writing(key), &|old| changed(key.kind, old, *sort, *change))
        }
        Operation::Apply {
            key,
            manager,
            config,
            force,
            ..
        } => apply::apply(&writing(key), manager, config, *force),
        Operation::Status {
            key, how, value, ..
        } => {
            let mut put = writing(key);
            let mut metadata = Metadata::default();
            match how {
                How::Patch(PatchKind::Strategic) if key.kind == Kind::Shoe => {
                    return of_no_use(state, key);
                }
                How::Patch(PatchKind::Json) => {}
                How::Patch(_) => metadata.label = Some("9".to_owned()),
                How::Put(_) => {
                    let Some(sent) = &note.sent else {
                        return Effect::refused("NotFound");
                    };
                    if note.version.is_none() && !key.kind.takes_updates_without_version() {
                        return without_version(state, key);
                    }
                    put.uid.clone_from(&sent.uid);
                    metadata.label = Some(sent.label.clone());
                    metadata.finalizers = Some(sent.finalizers.clone());
                }
            }
            write::status(
                &put,
                &match key.kind {
                    Kind::Pod => format!("s{value}"),
                    _ => value.to_string(),
                },
                metadata,
            )
        }
        Operation::Delete {
            key,
            propagation,
            grace,
            ..
        } => {
            let Some(old) = state.get(key) else {
                return Effect::refused("NotFound");
            };
            let other_uid = note.uid.as_ref().is_some_and(|uid| *uid != old.uid);
            if other_uid || note.version.is_some_and(|version| version != old.version) {
                return Effect::refused("Conflict");
            }
            let (answer, steps) = delete::delete(next, key, old, *propagation, *grace);
            Effect::one(key, answer, steps)
        }
        Operation::DeleteCollection { scope, grace, .. } => {
            let (mut answers, mut steps) = (Vec::new(), Vec::new());
            for (key, old) in list(state, scope) {
                let next = next + steps.len() as u64;
                let (_, more) = delete::delete(next, &key, &old, None, *grace);
                // Told as they were.
                answers.push((key, old));
                steps.extend(more);
            }
            Effect {
                outcome: Outcome::Things(answers),
                steps,
            }
        }
        Operation::Bind { name, node, .. } => {
            let key = Key::new(Kind::Pod, "default", name);
            match state.get(&key) {
                None => Effect::refused("NotFound"),
                Some(old) if old.grace.is_some() || !old.node.is_empty() => {
                    Effect::refused("Conflict")
                }
                Some(old) => {
                    let new = Thing {
                        node: format!("node{node}"),
                        version: next,
                        ..old.clone()
                    };
                    Effect {
                        outcome: Outcome::Done,
                        steps: vec![Step::changed(&key, old, new)],
                    }
                }
            }
        }
        Operation::Finalize { name, .. } => {
            let key = Key::new(Kind::Namespace, "", name);
            let finalize = Write {
                version: None,
                ..writing(&key)
            };
            // What is sent takes the place of all but the status.
            write(&finalize, &|old| Thing {
                label: FINALIZED.to_string(),
                finalizers: Vec::new(),
                value: String::new(),
                ..old.clone()
            })
        }
        Operation::Get { key, .. } => match state.get(key) {
            None => Effect::refused("NotFound"),
            Some(thing) => Effect::one(key, thing.clone(), Vec::new()),
        },
        Operation::List { scope, .. } => {
            Effect::answer(Outcome::State(revision, list(state, scope)))
        }
        Operation::Forget | Operation::Watch { .. } | Operation::Follow { .. } => {
            Effect::answer(Outcome::Done)
        }
    }
}

/// An update that must have a version, and has none.
fn without_version(state: &State, key: &Key) -> Effect {
    Effect::refused(if state.contains_key(key) {
        "Invalid"
    } else {
        "NotFound"
    })
}

/// A patch of a kind that custom objects do not take.
fn of_no_use(state: &State, key: &Key) -> Effect {
    Effect::refused(if state.contains_key(key) {
        "UnsupportedMediaType"
    } else {
        "NotFound"
    })
}

/// A new object.
fn thing(kind: Kind, label: u8, value: u8, finalizer: bool) -> Thing {
    Thing {
        generation: i64::from(kind.has_generation()),
        label: label.to_string(),
        finalizers: if finalizer {
            vec!["a.b/c".into()]
        } else {
            Vec::new()
        },
        value: shown(kind, value),
        status: match kind {
            Kind::Job => "0".into(),
            Kind::Definition => definition::new_status(value),
            _ => String::new(),
        },
        ..Thing::default()
    }
}
