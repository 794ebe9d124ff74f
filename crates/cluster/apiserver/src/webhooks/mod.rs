//! Admission webhooks and policies: MutatingWebhookConfigurations and
//! ValidatingWebhookConfigurations with the calls of their webhooks, and the policies whose
//! expressions check and change requests.

mod admission;
mod answer;
mod attributes;
mod client;
mod conditions;
mod configuration;
mod conversion;
mod dispatch;
mod evaluation;
mod labels;
mod message;
mod policies;
mod refusal;
mod rules;
mod selection;
mod write_rules;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use longshore_engine::Engine;

pub(crate) use admission::{Admission, Warnings};
pub(crate) use attributes::{Attributes, Operation, Resource};

pub(crate) use conversion::Converter;
pub(crate) use write_rules::{Dependencies, WriteRule};

use self::{
    client::{Address, Client},
    configuration::Index,
};

/// Reasons for the admission of a request, apart from webhooks and policies that match it.
#[derive(Debug, Default)]
pub(crate) struct Required {
    /// Converts the objects, if their definition has a conversion webhook.
    pub(crate) converter: Option<Converter>,
    /// True if the user's permission to read the parameters of a policy is checked.
    pub(crate) reads_parameters: bool,
    /// The rules about the writes of the user.
    pub(crate) rules: Vec<Box<dyn WriteRule>>,
    /// The objects that admission reads.
    pub(crate) dependencies: Dependencies,
}

impl Required {
    fn is_any(&self) -> bool {
        self.converter.is_some() || self.reads_parameters || !self.rules.is_empty()
    }
}

/// The webhooks of a cluster. They are read again when a configuration has changed.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// The webhooks at a revision of the configurations.
    current: Mutex<(u64, Arc<Index>)>,
    /// The clients of conversion webhooks.
    converters: Mutex<HashMap<Address, Arc<Client>>>,
}

impl Webhooks {
    /// Returns the admission of a request that may become any of several operations; `None` if no
    /// webhook or policy can match it, and no other reason requires it.
    pub(crate) fn admission(
        &self,
        engine: &Engine,
        warnings: &Warnings,
        operations: &[Operation],
        required: Required,
        attributes: impl FnOnce() -> Attributes,
    ) -> Option<Admission> {
        let is_required = required.is_any();
        let index = match self.current(engine) {
            Some(index) => index,
            None if is_required => Arc::default(),
            None => return None,
        };
        let attributes = attributes();
        (is_required || index.covers(operations, &attributes)).then(|| Admission {
            engine: engine.clone(),
            index,
            attributes,
            warnings: warnings.clone(),
            converter: required.converter,
            rules: required.rules,
            dependencies: required.dependencies,
        })
    }

    fn converters(&self) -> MutexGuard<'_, HashMap<Address, Arc<Client>>> {
        self.converters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the webhooks; `None` if the cluster has none.
    fn current(&self, engine: &Engine) -> Option<Arc<Index>> {
        let revision = engine.admission_revision();
        if revision == 0 {
            return None;
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != revision {
            let index = Index::read(engine, &current.1);
            // A configuration that changes meanwhile has a later revision.
            *current = (revision, Arc::new(index));
        }
        Some(current.1.clone()).filter(|index| !index.is_empty())
    }
}
