//! Rules of the server about the permissions for writes. They are checked on the version that is
//! written, as part of the reviews of the write.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use longshore_engine::{Dependency, Error, Object, ReviewStage};
use longshore_model::KindInfo;
use serde_json::Value;

/// A rule about the writes of a user.
pub(crate) trait WriteRule: Debug + Send + Sync {
    /// The stage of admission in which the rule is checked, as in Kubernetes.
    fn stage(&self) -> ReviewStage;

    /// The objects on which the result depends, in addition to the object itself.
    fn dependency(&self) -> Dependency;

    /// Checks a new state of the object. `before` is the state that it replaces.
    fn check(&self, before: Option<&Value>, after: &Value) -> Result<(), Error>;
}

/// The objects that the admission of a request has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dependencies(Arc<Mutex<Vec<Dependency>>>);

impl Dependencies {
    pub(crate) fn add(&self, dependency: Dependency) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Expressions may ask for many decisions about the same roles.
        let is_known = all.last().is_some_and(|last| match (last, &dependency) {
            (Dependency::Kinds(_, last), Dependency::Kinds(_, next)) => last == next,
            _ => false,
        });
        if !is_known {
            all.push(dependency);
        }
    }

    /// Adds an object that was looked up; `None` if it does not exist.
    pub(super) fn add_object(
        &self,
        kind: &Arc<KindInfo>,
        (namespace, name): (Option<&str>, &str),
        found: Option<&Object>,
    ) {
        self.add(Dependency::Object {
            kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            revision: found.map(Object::revision),
        });
    }

    pub(super) fn all(&self) -> Vec<Dependency> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }

    pub(super) fn clear(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }
}
