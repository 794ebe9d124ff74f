//! Admission webhooks: MutatingWebhookConfigurations and
//! ValidatingWebhookConfigurations, and the calls of their webhooks.

mod admission;
mod answer;
mod attributes;
mod client;
mod conditions;
mod configuration;
mod dispatch;
mod message;
mod refusal;
mod rules;
mod selection;

use std::sync::{Arc, Mutex, PoisonError};

use longshore_engine::Engine;

pub(crate) use admission::{Admission, Warnings};
pub(crate) use attributes::{Attributes, Operation, Resource};

use self::configuration::Index;

/// The webhooks of a cluster. They are read again when a configuration has
/// changed.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// The webhooks at a revision of the configurations.
    current: Mutex<(u64, Arc<Index>)>,
}

impl Webhooks {
    /// Returns the admission of a request that may become one of several
    /// operations; `None` if no webhook can match it.
    pub(crate) fn admission(
        &self,
        engine: &Engine,
        warnings: &Warnings,
        operations: &[Operation],
        attributes: impl FnOnce() -> Attributes,
    ) -> Option<Admission> {
        let index = self.current(engine)?;
        let attributes = attributes();
        // Webhooks cannot prevent changes of their own configurations.
        if attributes.resource.group == "admissionregistration.k8s.io" {
            return None;
        }
        index.covers(operations, &attributes).then(|| Admission {
            engine: engine.clone(),
            index,
            attributes,
            warnings: warnings.clone(),
        })
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
