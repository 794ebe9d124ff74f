//! Admission policies: MutatingAdmissionPolicies, ValidatingAdmissionPolicies and
//! their bindings.

pub(super) mod binding;
mod matching;
pub(super) mod mutations;
pub(super) mod params;
pub(super) mod policy;
pub(super) mod validations;

use std::sync::Arc;

use longshore_builtin::json;
use longshore_engine::{Engine, ListRequest};
use longshore_model::kind::builtin;

use self::{binding::Binding, mutations::Mutations, policy::Policy, validations::Validations};
use super::attributes::{Attributes, Operation};

pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// A policy that has bindings.
#[derive(Debug)]
pub(super) struct Bound<R> {
    pub(super) policy: Arc<Policy<R>>,
    /// By name.
    pub(super) bindings: Vec<Binding>,
}

/// The policies that are in effect, by name.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) mutating: Vec<Bound<Mutations>>,
    pub(super) validating: Vec<Bound<Validations>>,
}

impl Policies {
    /// Reads the policies and bindings. Unchanged policies are not compiled again.
    pub(super) fn read(engine: &Engine, previous: &Self) -> Self {
        Self {
            mutating: read(engine, "MutatingAdmissionPolicy", &previous.mutating),
            validating: read(engine, "ValidatingAdmissionPolicy", &previous.validating),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// Returns true if a rule of any policy covers a request that may become any of several
    /// operations.
    pub(super) fn cover(&self, operations: &[Operation], attributes: &Attributes) -> bool {
        if self.is_empty() || attributes.is_about_policies() {
            return false;
        }
        let mutating = self.mutating.iter().map(|one| &one.policy.resources);
        let validating = self.validating.iter().map(|one| &one.policy.resources);
        mutating
            .chain(validating)
            .any(|rules| rules.cover(operations, attributes))
    }
}

/// Reads the policies of a kind that have bindings.
fn read<R: policy::Rules>(engine: &Engine, kind: &str, previous: &[Bound<R>]) -> Vec<Bound<R>> {
    let list = |kind: &str| {
        let list = builtin(GROUP, kind).map(|info| ListRequest::of(Arc::new(info.clone())));
        let page = list.and_then(|list| engine.list(&list).ok());
        page.map(|page| page.items).unwrap_or_default()
    };
    let mut bindings: Vec<(String, Binding)> = Vec::new();
    for object in list(&format!("{kind}Binding")) {
        if let Some(spec) = object.value()["spec"].as_object() {
            let policy = json::text(spec, "policyName").to_owned();
            bindings.push((policy, Binding::read(object.name(), spec)));
        }
    }
    let mut bound = Vec::new();
    if bindings.is_empty() {
        return bound;
    }
    for object in list(kind) {
        let of_policy = bindings.extract_if(.., |(policy, _)| policy == object.name());
        let bindings: Vec<Binding> = of_policy.map(|(_, binding)| binding).collect();
        if bindings.is_empty() {
            continue;
        }
        let known = previous
            .iter()
            .map(|known| &known.policy)
            .find(|known| known.name == object.name() && known.revision == object.revision());
        let policy = match known {
            Some(known) => known.clone(),
            None => Arc::new(Policy::read(&object)),
        };
        bound.push(Bound { policy, bindings });
    }
    bound
}
