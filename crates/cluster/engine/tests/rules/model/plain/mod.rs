//! The plain model: the expected response and changes of an operation in a state.

mod apply;
mod definition;
mod delete;
mod write;

use super::{
    client::{Outcome, Record},
    kind::{Key, Kind},
    model_object::{FINALIZED, ModelObject, State, shown},
    operation::{Operation, Scope, StatusWrite},
};
use longshore_model::PatchKind;

pub use definition::{ends, is_served, visible};
use write::{Metadata, Write, changed, write};

/// A revision: the change of one object.
#[derive(Debug, Clone)]
pub struct Step {
    pub key: Key,
    pub before: Option<ModelObject>,
    /// The object in the watch event: the new state, or the last state of a deleted object.
    pub event_object: ModelObject,
    pub gone: bool,
}

impl Step {
    fn made(key: &Key, event_object: ModelObject) -> Self {
        Self {
            key: key.clone(),
            before: None,
            event_object,
            gone: false,
        }
    }

    fn changed(key: &Key, before: &ModelObject, event_object: ModelObject) -> Self {
        Self {
            key: key.clone(),
            before: Some(before.clone()),
            event_object,
            gone: false,
        }
    }

    fn gone(key: &Key, before: &ModelObject, event_object: ModelObject) -> Self {
        Self {
            gone: true,
            ..Self::changed(key, before, event_object)
        }
    }

    /// Applies the step to a state.
    pub fn take(self, state: &mut State) {
        if self.gone {
            state.remove(&self.key);
        } else {
            state.insert(self.key, self.event_object);
        }
    }
}

/// The effect of an operation in a state.
#[derive(Debug)]
pub struct Effect {
    pub outcome: Outcome,
    pub steps: Vec<Step>,
}

impl Effect {
    fn rejected(reason: &str) -> Self {
        Self::answer(Outcome::Rejected(reason.to_owned()))
    }

    fn answer(outcome: Outcome) -> Self {
        Self {
            outcome,
            steps: Vec::new(),
        }
    }

    /// Completes with a response that has this object.
    fn one(key: &Key, model_object: ModelObject, steps: Vec<Step>) -> Self {
        Self {
            outcome: Outcome::Objects(vec![(key.clone(), model_object)]),
            steps,
        }
    }
}

/// Returns true if a scope selects an object.
pub fn selects(scope: &Scope, key: &Key, model_object: &ModelObject) -> bool {
    let here = scope
        .namespace
        .is_none_or(|namespace| key.namespace == namespace);
    let chosen = match (scope.selector % 5, key.kind) {
        (1, _) => model_object.label == "1",
        (2, _) => model_object.label != "1",
        (3, _) => matches!(model_object.label.as_str(), "0" | "2"),
        (4, Kind::Pod) => model_object.node == "node1",
        (4, _) => key.name != "o1",
        _ => true,
    };
    key.kind == scope.kind && here && chosen
}

/// The objects that a scope selects, in order.
pub fn list(state: &State, scope: &Scope) -> Vec<(Key, ModelObject)> {
    state
        .iter()
        .filter(|(key, model_object)| selects(scope, key, model_object))
        .map(|(key, model_object)| (key.clone(), model_object.clone()))
        .collect()
}

/// The effect of an operation in the state of a revision.
pub fn effect(state: &State, revision: u64, record: &Record) -> Effect {
    if record.operation.kind() == Some(Kind::Shoe) && !is_served(state, record.api_version) {
        return match record.operation {
            Operation::Watch { .. } | Operation::Follow { .. } => Effect::answer(Outcome::Done),
            _ => Effect::rejected("NotFound"),
        };
    }
    let mut effect = first_effect(state, revision, record);
    definition::settle(state, revision, &mut effect.steps);
    effect
}

/// The result of a read in an old state.
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
            // A generated name is taken from the response.
            let key = match &note.outcome {
                Outcome::Objects(model_objects) if model_objects.len() == 1 => &model_objects[0].0,
                _ => key,
            };
            let mut model_object = model_object(key.kind, *label, *value, *finalizer);
            if key.kind == Kind::ConfigMap {
                apply::own_all(&mut model_object, apply::CLIENT);
            }
            write::create(state, next, key, model_object)
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
            write(&put, &|old| ModelObject {
                label: sent.label.clone(),
                // A namespace's finalizers only change through the finalize subresource.
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
                return unsupported_patch(state, key);
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
                StatusWrite::Patch(PatchKind::Strategic) if key.kind == Kind::Shoe => {
                    return unsupported_patch(state, key);
                }
                StatusWrite::Patch(PatchKind::Json) => {}
                StatusWrite::Patch(_) => metadata.label = Some("9".to_owned()),
                StatusWrite::Put(_) => {
                    let Some(sent) = &note.sent else {
                        return Effect::rejected("NotFound");
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
                return Effect::rejected("NotFound");
            };
            let other_uid = note.uid.as_ref().is_some_and(|uid| *uid != old.uid);
            if other_uid || note.version.is_some_and(|version| version != old.version) {
                return Effect::rejected("Conflict");
            }
            let (answer, steps) = delete::delete(next, key, old, *propagation, *grace);
            Effect::one(key, answer, steps)
        }
        Operation::DeleteCollection { scope, grace, .. } => {
            let (mut answers, mut steps) = (Vec::new(), Vec::new());
            for (key, old) in list(state, scope) {
                let next = next + steps.len() as u64;
                let (_, more) = delete::delete(next, &key, &old, None, *grace);
                // The response has the objects before their deletion.
                answers.push((key, old));
                steps.extend(more);
            }
            Effect {
                outcome: Outcome::Objects(answers),
                steps,
            }
        }
        Operation::Bind { name, node, .. } => {
            let key = Key::new(Kind::Pod, "default", name);
            match state.get(&key) {
                None => Effect::rejected("NotFound"),
                Some(old) if old.grace.is_some() || !old.node.is_empty() => {
                    Effect::rejected("Conflict")
                }
                Some(old) => {
                    let new = ModelObject {
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
            // The body replaces everything except the status.
            write(&finalize, &|old| ModelObject {
                label: FINALIZED.to_string(),
                finalizers: Vec::new(),
                value: String::new(),
                ..old.clone()
            })
        }
        Operation::Get { key, .. } => match state.get(key) {
            None => Effect::rejected("NotFound"),
            Some(model_object) => Effect::one(key, model_object.clone(), Vec::new()),
        },
        Operation::List { scope, .. } => {
            Effect::answer(Outcome::State(revision, list(state, scope)))
        }
        Operation::ExpireHistory | Operation::Watch { .. } | Operation::Follow { .. } => {
            Effect::answer(Outcome::Done)
        }
    }
}

/// An update without a required resource version.
fn without_version(state: &State, key: &Key) -> Effect {
    Effect::rejected(if state.contains_key(key) {
        "Invalid"
    } else {
        "NotFound"
    })
}

/// A patch type that custom objects do not support.
fn unsupported_patch(state: &State, key: &Key) -> Effect {
    Effect::rejected(if state.contains_key(key) {
        "UnsupportedMediaType"
    } else {
        "NotFound"
    })
}

/// A new object.
fn model_object(kind: Kind, label: u8, value: u8, finalizer: bool) -> ModelObject {
    ModelObject {
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
        ..ModelObject::default()
    }
}
