//! Loading a store: first the built-in kinds, then the kinds that stored
//! definitions make, then the objects of these. Objects of other kinds wait
//! for a definition that makes theirs.

use std::sync::Arc;

use longshore_model::kind::builtin;

use crate::{Object, OpenError, facts, kinds::Kinds, machine::definitions, object, state::State};

/// Collects what a store holds.
#[derive(Debug)]
pub(crate) struct Loader {
    state: State,
    /// What is of no built-in kind: kind, key, JSON.
    later: Vec<(String, String, Vec<u8>)>,
}

impl Default for Loader {
    fn default() -> Self {
        Self {
            state: State::new(Kinds::builtin(), 0),
            later: Vec::new(),
        }
    }
}

impl Loader {
    /// Takes in an object of the store.
    pub(crate) fn take(&mut self, kind: &str, key: &str, json: &[u8]) -> Result<(), OpenError> {
        if self.state.kinds.by_store_name(kind).is_none() {
            let (kind, key) = (kind.to_owned(), key.to_owned());
            self.later.push((kind, key, json.to_owned()));
            return Ok(());
        }
        self.restore(kind, key, json)
    }

    /// The state of a revision, when all is taken in.
    pub(crate) fn finish(mut self, revision: u64) -> Result<State, OpenError> {
        self.state.start_at(revision);
        definitions::load(&mut self.state);
        for (kind, key, json) in std::mem::take(&mut self.later) {
            self.restore(&kind, &key, &json)?;
        }
        Ok(self.state)
    }

    fn restore(&mut self, kind: &str, key: &str, json: &[u8]) -> Result<(), OpenError> {
        let corrupt = |problem: String| OpenError::Corrupt {
            key: format!("{kind} {key}"),
            problem,
        };
        let id = self.state.kinds.by_store_name(kind);
        let facts = match id {
            Some(id) => &*self.state.kinds.entry(id).facts,
            None => facts::custom(),
        };
        let gvk = id.map(|id| &self.state.kinds.entry(id).info.gvk);
        let json = match gvk.and_then(|gvk| builtin(&gvk.group, &gvk.kind)) {
            Some(_) => object::kind_first(json),
            None => json.into(),
        };
        let object = Object::decode(&json, facts).map_err(corrupt)?;
        if **object.key() != *key {
            return Err(corrupt(format!("it calls itself {}", object.key())));
        }
        match id {
            Some(id) => self.state.load(id, Arc::new(object)),
            None => self.state.load_left_behind(kind, Arc::new(object)),
        }
        Ok(())
    }
}
