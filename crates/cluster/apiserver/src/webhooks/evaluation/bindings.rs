//! Finds the bindings of a policy that apply to a request, and their parameters.

use serde_json::Value;

use crate::webhooks::{
    admission::Admission,
    attributes::{Operation, Resource},
    message::Objects,
    policies::{Bound, binding::Binding, params},
};

/// A binding that applies to a request.
pub(super) struct Applied<'p> {
    pub(super) binding: &'p Binding,
    /// The resource of the request in the version that the policy matches.
    pub(super) resource: &'p Resource,
    /// The parameters. The policy is evaluated for each of them; `None` means without parameters.
    pub(super) params: Vec<Option<Value>>,
}

/// A policy or a binding that cannot be used.
pub(super) struct Misconfigured<'p> {
    pub(super) binding: Option<&'p str>,
    pub(super) message: String,
}

impl<'p> Misconfigured<'p> {
    pub(super) fn new(binding: Option<&'p Binding>, problem: &str) -> Self {
        let what = match binding {
            Some(_) => "binding",
            None => "policy",
        };
        Self {
            binding: binding.map(|binding| binding.name.as_str()),
            message: format!("failed to configure {what}: {problem}"),
        }
    }
}

impl Admission {
    /// The bindings of a policy that apply to a request, in order. Problems are left out if
    /// the policy ignores failures.
    pub(super) fn applied<'p, R>(
        &'p self,
        bound: &'p Bound<R>,
        operation: Operation,
        objects: &Objects,
    ) -> Vec<Result<Applied<'p>, Misconfigured<'p>>> {
        let (policy, attributes, engine) = (&*bound.policy, &self.attributes, &self.engine);
        let failure = |binding: Option<&'p Binding>, problem: String| {
            (!policy.ignores_failures).then(|| Err(Misconfigured::new(binding, &problem)))
        };
        let matched = policy
            .resources
            .matched(engine, operation, attributes, objects);
        let resource = match matched {
            Ok(None) => return Vec::new(),
            Ok(Some(resource)) => resource,
            Err(problem) => return failure(None, problem).into_iter().collect(),
        };
        let kind = policy.params.as_ref();
        let kind = match kind.map(|kind| params::kind(engine, kind)).transpose() {
            Ok(kind) => kind,
            Err(problem) => return failure(None, problem).into_iter().collect(),
        };
        let applied = bound.bindings.iter().filter_map(|binding| {
            let matched = binding.resources.as_ref().map_or(Ok(true), |resources| {
                let found = resources.matched(engine, operation, attributes, objects);
                found.map(|found| found.is_some())
            });
            let found = matched.and_then(|matched| match matched {
                false => Ok(Vec::new()),
                true => params::collect(
                    (engine, &self.dependencies),
                    kind.as_ref(),
                    binding.params.as_ref(),
                    &attributes.namespace,
                ),
            });
            match found {
                Ok(found) if found.is_empty() => None,
                Ok(found) => Some(Ok(Applied {
                    binding,
                    resource,
                    params: found
                        .into_iter()
                        .map(|params| params.map(|object| object.value()))
                        .collect(),
                })),
                Err(problem) => failure(Some(binding), problem),
            }
        });
        applied.collect()
    }
}
