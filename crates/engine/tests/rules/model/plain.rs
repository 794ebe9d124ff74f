//! The plain model: what an operation must answer, and change, in a state.

use std::collections::BTreeSet;

use longshore_engine::Propagation;
use longshore_model::PatchKind;

use super::{
    client::{Outcome, Record},
    operation::{Change, Operation, Scope},
    thing::{Key, Kind, State, Thing, image, shown},
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// One revision: what became of one object.
#[derive(Debug, Clone)]
pub struct Step {
    pub key: Key,
    pub before: Option<Thing>,
    /// What watches are told: the new state, or the last one of what is gone.
    pub told: Thing,
    pub gone: bool,
}

/// What an operation does in a state.
#[derive(Debug)]
pub struct Effect {
    pub outcome: Outcome,
    pub steps: Vec<Step>,
}

impl Effect {
    fn refused(reason: &str) -> Self {
        Self {
            outcome: Outcome::Refused(reason.to_owned()),
            steps: Vec::new(),
        }
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
    let note = &record.note;
    let next = revision + 1;
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
            create(
                state,
                next,
                key,
                &thing(key.kind, *label, *value, *finalizer),
            )
        }
        Operation::Update { key, .. } => {
            let sent = note.sent.clone().unwrap_or_default();
            write(state, next, key, note.version, &sent.uid, &|old| Thing {
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
        } => write(state, next, key, note.version, "", &|old| {
            changed(key.kind, old, *sort, *change)
        }),
        Operation::Status { key, value, .. } => {
            let status = if key.kind == Kind::Job {
                value.to_string()
            } else {
                format!("s{value}")
            };
            write(state, next, key, None, "", &|old| Thing {
                status: status.clone(),
                ..old.clone()
            })
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
            if note.version.is_some_and(|version| version != old.version) {
                return Effect::refused("Conflict");
            }
            let (answer, step) = delete(next, key, old, *propagation, *grace);
            Effect::one(key, answer, step)
        }
        Operation::DeleteCollection { scope, grace } => {
            let (mut answers, mut steps) = (Vec::new(), Vec::new());
            for (key, old) in list(state, scope) {
                let (answer, step) = delete(next + steps.len() as u64, &key, &old, None, *grace);
                answers.push((key, answer));
                steps.extend(step);
            }
            Effect {
                outcome: Outcome::Things(answers),
                steps,
            }
        }
        Operation::Bind { name, node } => {
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
                        steps: vec![step(&key, old, new)],
                    }
                }
            }
        }
        Operation::Finalize { name } => {
            let key = Key::new(Kind::Namespace, "", name);
            write(state, next, &key, None, "", &|old| Thing {
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
        Operation::Forget | Operation::Watch { .. } => Effect::answer(Outcome::Done),
    }
}

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
        status: if kind == Kind::Job {
            "0".into()
        } else {
            String::new()
        },
        ..Thing::default()
    }
}

fn step(key: &Key, before: &Thing, told: Thing) -> Step {
    Step {
        key: key.clone(),
        before: Some(before.clone()),
        told,
        gone: false,
    }
}

fn create(state: &State, version: u64, key: &Key, thing: &Thing) -> Effect {
    if key.kind != Kind::Namespace {
        match state.get(&Key::new(Kind::Namespace, "", &key.namespace)) {
            None => return Effect::refused("NotFound"),
            Some(namespace) if namespace.grace.is_some() => return Effect::refused("Forbidden"),
            Some(_) => {}
        }
    }
    if state.contains_key(key) {
        return Effect::refused("AlreadyExists");
    }
    let made = |key: &Key, thing: Thing| Step {
        key: key.clone(),
        before: None,
        told: thing,
        gone: false,
    };
    let new = Thing {
        version,
        ..thing.clone()
    };
    let mut steps = vec![made(key, new.clone())];
    let account = Key::new(Kind::Account, &key.name, "default");
    if key.kind == Kind::Namespace && !state.contains_key(&account) {
        steps.push(made(
            &account,
            Thing {
                version: version + 1,
                ..Thing::default()
            },
        ));
    }
    Effect::one(key, new, steps)
}

/// An update, patch or the like: `change` gives the new content.
fn write(
    state: &State,
    next: u64,
    key: &Key,
    version: Option<u64>,
    uid: &str,
    change: &dyn Fn(&Thing) -> Thing,
) -> Effect {
    let Some(old) = state.get(key) else {
        return Effect::refused("NotFound");
    };
    let other_uid = !uid.is_empty() && uid != old.uid;
    if other_uid || version.is_some_and(|version| version != old.version) {
        return Effect::refused("Conflict");
    }
    let mut new = change(old);
    let held: BTreeSet<_> = old.finalizers.iter().collect();
    let adds = new.finalizers.iter().any(|name| !held.contains(name));
    // A Job made up anew lacks the selector that the server gave.
    let other_spec = new.node != old.node || (key.kind == Kind::Job && new.is_new);
    new.is_new = false;
    if other_spec || (old.grace.is_some() && adds) {
        return Effect::refused("Invalid");
    }
    if new == *old {
        return Effect::one(key, old.clone(), Vec::new());
    }
    if key.kind.has_generation() && new.value != old.value {
        new.generation += 1;
    }
    new.version = next;
    let held = key.kind == Kind::Namespace && !new.value.is_empty();
    let gone = new.grace == Some(0) && new.finalizers.is_empty() && !held;
    let told = if gone {
        Thing {
            version: next,
            ..old.clone()
        }
    } else {
        new.clone()
    };
    let step = Step {
        key: key.clone(),
        before: Some(old.clone()),
        told,
        gone,
    };
    Effect::one(key, new, vec![step])
}

fn changed(kind: Kind, old: &Thing, sort: PatchKind, change: Change) -> Thing {
    let mut new = old.clone();
    match change {
        Change::Value(value) if kind != Kind::Namespace => {
            new.value = if kind == Kind::Pod {
                image(value)
            } else {
                value.to_string()
            };
        }
        Change::Label(label) | Change::Value(label) => new.label = label.to_string(),
        Change::Finalizers(bits) => {
            let sent = ["a.b/c", "d.e/f"].into_iter().enumerate();
            let sent = sent.filter(|(i, _)| bits & (1 << i) != 0);
            let mut sent: Vec<String> = sent.map(|(_, name)| name.to_owned()).collect();
            if sort == PatchKind::Strategic {
                sent = as_sets(&old.finalizers, sent);
            }
            new.finalizers = sent;
        }
    }
    new
}

/// What strategic merge makes of two sets: what was sent, in that order, and
/// what only was there before what it stood before.
fn as_sets(held: &[String], sent: Vec<String>) -> Vec<String> {
    let mut rest = held.to_vec();
    rest.retain(|name| !sent.contains(name));
    let stood = |name: &String| held.iter().position(|other| other == name);
    let mut merged = Vec::new();
    for name in sent {
        let first = match stood(&name) {
            Some(place) => rest
                .iter()
                .take_while(|other| stood(other) < Some(place))
                .count(),
            None => 0,
        };
        merged.extend(rest.drain(..first));
        merged.push(name);
    }
    merged.extend(rest);
    merged
}

/// A deletion, begun, gone on with, or done: the answer, and what it changed.
fn delete(
    next: u64,
    key: &Key,
    old: &Thing,
    propagation: Option<Propagation>,
    grace: Option<i64>,
) -> (Thing, Vec<Step>) {
    let mut new = old.clone();
    if key.kind == Kind::Pod {
        match old.grace {
            Some(left) if grace.is_some_and(|asked| asked < left) => new.grace = grace,
            // It goes on; only the policy can still be changed.
            Some(left) if left > 0 && propagation.is_none() => return (old.clone(), Vec::new()),
            Some(_) => {}
            None => {
                new.grace = Some(if old.node.is_empty() {
                    0
                } else {
                    grace.unwrap_or(30)
                });
                new.generation += 1;
            }
        }
    }
    let has = |name: &str| old.finalizers.iter().any(|held| held == name);
    let policy = match propagation {
        None if has(ORPHAN) => Some(ORPHAN),
        None if has(FOREGROUND) => Some(FOREGROUND),
        None => (key.kind == Kind::Job).then_some(ORPHAN),
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
    };
    new.finalizers
        .retain(|name| name != ORPHAN && name != FOREGROUND);
    new.finalizers.extend(policy.map(str::to_owned));
    let waits =
        !new.finalizers.is_empty() || (key.kind == Kind::Namespace && !new.value.is_empty());
    if waits && new.grace.is_none() {
        new.grace = Some(0);
        new.generation += i64::from(key.kind.has_generation());
    }
    if waits || new.grace.is_some_and(|left| left > 0) {
        if new == *old {
            return (new, Vec::new());
        }
        new.version = next;
        return (new.clone(), vec![step(key, old, new)]);
    }
    if new.grace == Some(0) && old.grace != Some(0) {
        // The end of the grace is told before the end of the object.
        new.version = next;
        let told = Thing {
            version: next + 1,
            ..new.clone()
        };
        let gone = Step {
            gone: true,
            ..step(key, &new, told)
        };
        return (new.clone(), vec![step(key, old, new), gone]);
    }
    let told = Thing {
        version: next,
        ..old.clone()
    };
    let gone = Step {
        gone: true,
        ..step(key, old, told.clone())
    };
    (told, vec![gone])
}
