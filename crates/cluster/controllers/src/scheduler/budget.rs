//! The fields of a PodDisruptionBudget that the scheduler reads.

use std::collections::{BTreeMap, BTreeSet};

use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::{Deserialize, de::IgnoredAny};

/// The fields of a PodDisruptionBudget that the scheduler reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Budget {
    pub(super) namespace: String,
    pub(super) selector: LabelSelector,
    /// The number of the budget's pods that may be evicted.
    pub(super) allowed: i32,
    /// The pods that were evicted and have not been deleted.
    pub(super) disrupted: BTreeSet<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: Spec,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    selector: Option<StructuredSelector>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    disruptions_allowed: i32,
    disrupted_pods: BTreeMap<String, IgnoredAny>,
}

impl Budget {
    /// Reads the object; `None` if it selects no pods.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Option<Self>, Error> {
        let Raw { spec, status } = item.typed()?;
        let selector = spec.selector.map(LabelSelector::try_from).transpose();
        let selector = selector.map_err(|error| Error::Invalid(error.to_string()))?;
        let selector = selector.filter(|selector| !selector.is_everything());
        Ok(selector.map(|selector| Self {
            namespace: item.namespace().unwrap_or_default().to_owned(),
            selector,
            allowed: status.disruptions_allowed,
            disrupted: status.disrupted_pods.into_keys().collect(),
        }))
    }
}
