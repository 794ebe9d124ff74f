//! The definition of the custom kind: what it serves, and what follows from a
//! write of it or of its last object.

use super::{Step, delete::delete};
use crate::model::{
    kind::{Key, Kind, Via},
    thing::{NO_GRACE, State, Thing, Unseen, shown},
};

/// The finalizer of a definition that still has objects to delete.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What the newest condition of a definition says.
mod phase {
    pub(super) const NEW: &str = "";
    pub(super) const ESTABLISHED: &str = "InitialNamesAccepted";
    pub(super) const PENDING: &str = "InstanceDeletionPending";
    pub(super) const CLEANING: &str = "InstanceDeletionInProgress";
    pub(super) const CLEAN: &str = "InstanceDeletionCompleted";
}

/// The status of a definition: the versions ever stored, and its phase.
fn parts(definition: &Thing) -> (&str, &str) {
    definition.status.split_once(' ').unwrap_or_default()
}

fn set_phase(definition: &mut Thing, phase: &str) {
    let stored = parts(definition).0;
    definition.status = format!("{stored} {phase}");
}

/// The version that a definition's value has objects stored in.
fn storage(value: &str) -> &str {
    value.split_once(' ').unwrap_or_default().1
}

pub(super) fn new_status(value: u8) -> String {
    let shown = shown(Kind::Definition, value);
    format!("{} {}", storage(&shown), phase::NEW)
}

/// The status after a write: one version more may be stored.
pub(super) fn status_after(old: &Thing, new: &Thing) -> String {
    let (stored, phase) = parts(old);
    let now = storage(&new.value);
    if stored.split(',').any(|version| version == now) {
        return old.status.clone();
    }
    format!("{stored},{now} {phase}")
}

/// The version that objects of a kind are stored in when they are written.
pub(super) fn stored(state: &State, kind: Kind) -> Unseen {
    let definition = state.get(&Key::definition());
    let version = definition.filter(|_| kind == Kind::Shoe);
    Unseen(version.map_or_else(String::new, |definition| {
        storage(&definition.value).to_owned()
    }))
}

/// Whether the custom kind is served in a version.
pub fn is_served(state: &State, via: Via) -> bool {
    state.get(&Key::definition()).is_some_and(|definition| {
        let served = definition.value.split_once(' ').unwrap_or_default().0;
        parts(definition).1 != phase::NEW && served.split(',').any(|one| one == via.name())
    })
}

/// Whether a step ends the custom kind.
pub fn ends(step: &Step) -> bool {
    step.gone && step.key.kind == Kind::Definition
}

/// Whether nothing can be made of the custom kind any more.
pub(super) fn is_terminating(state: &State) -> bool {
    state
        .get(&Key::definition())
        .is_some_and(|definition| matches!(parts(definition).1, phase::PENDING | phase::CLEANING))
}

/// A state without the objects that nobody can see: a definition that is let
/// go by hand leaves its objects behind, until it is made again.
pub fn visible(state: &State) -> State {
    let mut state = state.clone();
    if !is_served(&state, Via::V1) {
        state.retain(|key, _| key.kind != Kind::Shoe);
    }
    state
}

/// What the first deletion of a definition does to it.
pub(super) fn begin_deletion(definition: &mut Thing) {
    if !definition.finalizers.iter().any(|name| name == CLEANUP) {
        definition.finalizers.push(CLEANUP.to_owned());
    }
    definition.grace = Some(NO_GRACE);
    set_phase(definition, phase::PENDING);
}

/// Adds what follows from the steps of a write: a new definition is
/// established, and one that is being deleted takes its objects along.
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

/// What follows from the steps of a write.
struct After<'a> {
    /// The state after all steps.
    now: State,
    /// The revision before them.
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

    fn change(&mut self, key: &Key, mut new: Thing) {
        let old = self.now[key].clone();
        if new != old {
            new.version = self.next();
            self.add(Step::changed(key, &old, new));
        }
    }

    /// Deletes what a definition that is being deleted still has.
    fn clean_up(&mut self, key: &Key) {
        let definition = self.now[key].clone();
        if definition.grace.is_none() || !definition.finalizers.iter().any(|name| name == CLEANUP) {
            return;
        }
        let shoes = |now: &State| -> Vec<(Key, Thing)> {
            let all = now.iter().filter(|(key, _)| key.kind == Kind::Shoe);
            all.map(|(key, thing)| (key.clone(), thing.clone()))
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
        let told = Thing {
            version: self.next(),
            ..definition.clone()
        };
        self.add(Step::gone(key, &definition, told));
    }
}
