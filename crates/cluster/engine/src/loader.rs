//! Loads a store: first the objects of built-in kinds, then the kinds of stored definitions, then
//! the objects of these kinds. Objects of unknown kinds stay in the store until a definition adds
//! their kind.

use std::sync::Arc;

use longshore_builtin::CUSTOM;
use longshore_model::kind::builtin;

use crate::{Object, OpenError, kinds::Kinds, machine::definitions, object, state::State};

/// Collects the contents of a store.
#[derive(Debug)]
pub(crate) struct Loader {
    state: State,
    /// Objects of kinds that are not built in: kind, key, JSON.
    deferred: Vec<(String, String, Vec<u8>)>,
}

impl Default for Loader {
    fn default() -> Self {
        Self {
            state: State::new(Kinds::builtin(), 0),
            deferred: Vec::new(),
        }
    }
}

impl Loader {
    /// Adds an object of the store.
    pub(crate) fn add(&mut self, kind: &str, key: &str, json: &[u8]) -> Result<(), OpenError> {
        if self.state.kinds.by_store_name(kind).is_none() {
            let (kind, key) = (kind.to_owned(), key.to_owned());
            self.deferred.push((kind, key, json.to_owned()));
            return Ok(());
        }
        self.restore(kind, key, json)
    }

    /// Builds the state at a revision after all objects were added.
    pub(crate) fn finish(mut self, revision: u64) -> Result<State, OpenError> {
        self.state.start_at(revision);
        definitions::load(&mut self.state);
        for (kind, key, json) in std::mem::take(&mut self.deferred) {
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
        let rules = match id {
            Some(id) => &*self.state.kinds.entry(id).rules,
            None => &CUSTOM,
        };
        let gvk = id.map(|id| &self.state.kinds.entry(id).info.gvk);
        let json = match gvk.and_then(|gvk| builtin(&gvk.group, &gvk.kind)) {
            Some(_) => object::kind_first(json),
            None => json.into(),
        };
        let object = Object::decode(&json, rules).map_err(corrupt)?;
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
