//! Admission webhooks and policies: MutatingWebhookConfigurations and
//! ValidatingWebhookConfigurations with the calls of their webhooks, and the policies
//! whose expressions check and change requests.

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

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use longshore_engine::Engine;

pub(crate) use admission::{Admission, Warnings};
pub(crate) use attributes::{Attributes, Operation, Resource};

pub(crate) use conversion::Converter;

use self::{
    client::{Address, Client},
    configuration::Index,
};

/// The webhooks of a cluster. They are read again when a configuration has
/// changed.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// The webhooks at a revision of the configurations.
    current: Mutex<(u64, Arc<Index>)>,
    /// The clients of conversion webhooks.
    converters: Mutex<HashMap<Address, Arc<Client>>>,
}

impl Webhooks {
    /// Returns the admission of a request that may become one of several
    /// operations; `None` if no webhook or policy can match it and no conversion is needed, unless it
    /// `is_required`.
    pub(crate) fn admission(
        &self,
        engine: &Engine,
        warnings: &Warnings,
        operations: &[Operation],
        (converter, is_required): (Option<Converter>, bool),
        attributes: impl FnOnce() -> Attributes,
    ) -> Option<Admission> {
        let index = match self.current(engine) {
            Some(index) => index,
            None if converter.is_some() || is_required => Arc::default(),
            None => return None,
        };
        let attributes = attributes();
        (converter.is_some() || is_required || index.covers(operations, &attributes)).then(|| {
            Admission {
                engine: engine.clone(),
                index,
                attributes,
                warnings: warnings.clone(),
                converter,
            }
        })
    }

    fn converters(&self) -> MutexGuard<'_, HashMap<Address, Arc<Client>>> {
        self.converters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the webhooks; `None` if there are none.
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
