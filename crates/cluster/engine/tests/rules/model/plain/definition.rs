//! The definition of the custom kind: its served versions, and the consequences of a write to the
//! definition or to its last object.

use super::{Step, delete::delete};
use crate::model::{
    kind::{ApiVersion, Key, Kind},
    model_object::{ModelObject, NO_GRACE, State, Unseen, shown},
};

/// The finalizer of a definition that still has objects to delete.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The newest condition of a definition.
mod phase {
    pub(super) const NEW: &str = "";
    pub(super) const ESTABLISHED: &str = "InitialNamesAccepted";
    pub(super) const PENDING: &str = "InstanceDeletionPending";
    pub(super) const CLEANING: &str = "InstanceDeletionInProgress";
    pub(super) const CLEAN: &str = "InstanceDeletionCompleted";
}

/// The status of a definition: the versions that were ever stored, and its phase.
fn parts(definition: &ModelObject) -> (&str, &str) {
    definition.status.split_once(' ').unwrap_or_default()
}

fn set_phase(definition: &mut ModelObject, phase: &str) {
    let stored = parts(definition).0;
    definition.status = format!("{stored} {phase}");
}

/// The storage version of a definition with this value.
fn storage(value: &str) -> &str {
    value.split_once(' ').unwrap_or_default().1
}

pub(super) fn new_status(value: u8) -> String {
    let shown = shown(Kind::Definition, value);
    format!("{} {}", storage(&shown), phase::NEW)
}

/// The status after a write, which may add a stored version.
pub(super) fn status_after(old: &ModelObject, new: &ModelObject) -> String {
    let (stored, phase) = parts(old);
    let now = storage(&new.value);
    if stored.split(',').any(|version| version == now) {
        return old.status.clone();
    }
    format!("{stored},{now} {phase}")
}

/// The version in which a written object of a kind is stored.
pub(super) fn stored(state: &State, kind: Kind) -> Unseen {
    let definition = state.get(&Key::definition());
    let version = definition.filter(|_| kind == Kind::Shoe);
    Unseen(version.map_or_else(String::new, |definition| {
        storage(&definition.value).to_owned()
    }))
}

/// Returns true if the custom kind is served in a version.
pub fn is_served(state: &State, api_version: ApiVersion) -> bool {
    state.get(&Key::definition()).is_some_and(|definition| {
        let served = definition.value.split_once(' ').unwrap_or_default().0;
        parts(definition).1 != phase::NEW && served.split(',').any(|one| one == api_version.name())
    })
}

/// Returns true if a step ends the custom kind.
pub fn ends(step: &Step) -> bool {
    step.gone && step.key.kind == Kind::Definition
}

/// Returns true if creates of the custom kind are rejected.
pub(super) fn is_terminating(state: &State) -> bool {
    state
        .get(&Key::definition())
        .is_some_and(|definition| matches!(parts(definition).1, phase::PENDING | phase::CLEANING))
}

/// The state without orphans, which clients cannot see: a definition whose finalizer is removed by
/// hand leaves its objects behind until it is created again.
pub fn visible(state: &State) -> State {
    let mut state = state.clone();
    if !is_served(&state, ApiVersion::V1) {
        state.retain(|key, _| key.kind != Kind::Shoe);
    }
    state
}

/// The effect of the first deletion of a definition.
pub(super) fn begin_deletion(definition: &mut ModelObject) {
    if !definition.finalizers.iter().any(|name| name == CLEANUP) {
        definition.finalizers.push(CLEANUP.to_owned());
    }
    definition.grace = Some(NO_GRACE);
    set_phase(definition, phase::PENDING);
}

/// Adds the consequences of the steps of a write: a new definition is established, and a
/// definition that is being deleted deletes its objects.
pub(super) fn settle(state: &State, revision: u64, steps: &mut Vec<Step>) {
    let ends_object = |step: &Step| step.key.kind == Kind::Shoe && step.gone;
    let concerns = |step: &Step| step.key.kind == Kind::Definition || ends_object(step);
    if !steps.iter().any(concerns) {
        return;
    }
    let mut now = state.clone();
    for step in steps.iter() {
        step.clone().take(&mut now);
    }
    let key = Key::definition();
    let Some(definition) = now.get(&key).cloned() else {
        return;
    };
    let mut after = After {
        now,
        revision,
        steps,
    };
    if parts(&definition).1 == phase::NEW {
        let mut new = definition;
        set_phase(&mut new, phase::ESTABLISHED);
        after.change(&key, new);
    }
    after.clean_up(&key);
}

/// The consequences of the steps of a write.
struct After<'a> {
    /// The state after all steps.
    now: State,
    /// The revision before the steps.
    revision: u64,
    steps: &'a mut Vec<Step>,
}

impl After<'_> {
    fn next(&self) -> u64 {
        self.revision + self.steps.len() as u64 + 1
    }

    fn add(&mut self, step: Step) {
        step.clone().take(&mut self.now);
        self.steps.push(step);
    }

    fn change(&mut self, key: &Key, mut new: ModelObject) {
        let old = self.now[key].clone();
        if new != old {
            new.version = self.next();
            self.add(Step::changed(key, &old, new));
        }
    }

    /// Deletes the remaining objects of a definition that is being deleted.
    fn clean_up(&mut self, key: &Key) {
        let definition = self.now[key].clone();
        if definition.grace.is_none() || !definition.finalizers.iter().any(|name| name == CLEANUP) {
            return;
        }
        let shoes = |now: &State| -> Vec<(Key, ModelObject)> {
            let all = now.iter().filter(|(key, _)| key.kind == Kind::Shoe);
            all.map(|(key, model_object)| (key.clone(), model_object.clone()))
                .collect()
        };
        for (key, shoe) in shoes(&self.now) {
            if shoe.grace.is_none() {
                let (_, steps) = delete(self.next(), &key, &shoe, None, None);
                steps.into_iter().for_each(|step| self.add(step));
            }
        }
        let mut new = definition.clone();
        if !shoes(&self.now).is_empty() {
            set_phase(&mut new, phase::CLEANING);
            return self.change(key, new);
        }
        set_phase(&mut new, phase::CLEAN);
        new.finalizers.retain(|name| name != CLEANUP);
        if !new.finalizers.is_empty() {
            return self.change(key, new);
        }
        let last = ModelObject {
            version: self.next(),
            ..definition.clone()
        };
        self.add(Step::gone(key, &definition, last));
    }
}
