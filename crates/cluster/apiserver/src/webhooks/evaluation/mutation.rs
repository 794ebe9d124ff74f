//! MutatingAdmissionPolicies: expressions that change objects.

use std::collections::HashSet;

use longshore_cel::{COST_OF_POLICY, Matched, Output};
use longshore_engine::{Engine, Error};
use longshore_model::StatusReason;
use serde_json::Value;

use super::{denial, evaluated::Evaluated};
use crate::webhooks::{
    admission::Admission,
    attributes::{Operation, Resource},
    message::Objects,
    policies::{Policies, binding::Binding, mutations::Mutations, policy::Policy},
    refusal::Refusal,
};

/// The evaluations that are repeated after an object was changed by others. An evaluation is
/// identified by policy, binding and parameters.
#[derive(Debug, Default)]
pub(in crate::webhooks) struct Reinvocation {
    is_repetition: bool,
    evaluated_before: HashSet<String>,
    repeated: HashSet<String>,
    last_object: Option<Value>,
}

impl Reinvocation {
    /// Starts the repetition with the object after the changes of others.
    pub(in crate::webhooks) fn repeat(&mut self, object: Option<&Value>) {
        self.is_repetition = true;
        if self.last_object.as_ref() != object {
            self.repeated.extend(self.evaluated_before.drain());
        }
    }
}

/// The reason why a policy does not change an object.
struct Problem<'p> {
    policy: &'p str,
    binding: Option<&'p str>,
    message: String,
    /// True if an expression causes the problem, and not the configuration.
    is_invalid: bool,
}

impl Problem<'_> {
    fn message(&self) -> String {
        let (policy, message) = (self.policy, &self.message);
        match self.binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{binding}' denied request: {message}")
            }
            None => format!("policy {policy:?} denied request: {message}"),
        }
    }
}

/// An evaluation of a policy.
#[derive(Clone, Copy)]
struct Invocation<'p> {
    policy: &'p Policy<Mutations>,
    binding: &'p Binding,
    resource: &'p Resource,
}

impl Admission {
    /// Changes the object by the mutating policies that the request matches. Returns true if a
    /// policy has changed it.
    pub(in crate::webhooks) async fn apply_policies(
        &self,
        operation: Operation,
        objects: &mut Objects,
        reinvocation: &mut Reinvocation,
    ) -> Result<bool, Error> {
        let Policies { mutating, .. } = &self.index.policies;
        if mutating.is_empty() || self.attributes.is_about_policies() || objects.object.is_none() {
            return Ok(false);
        }
        // As in Kubernetes, all policies are matched before one changes the object.
        let (mut invocations, mut problems) = (Vec::new(), Vec::new());
        for bound in mutating {
            let policy = &*bound.policy;
            for applied in self.applied(bound, operation, objects) {
                match applied {
                    Err(problem) => problems.push(Problem {
                        policy: &policy.name,
                        binding: problem.binding,
                        message: problem.message,
                        is_invalid: false,
                    }),
                    Ok(applied) => {
                        let invocation = Invocation {
                            policy,
                            binding: applied.binding,
                            resource: applied.resource,
                        };
                        let each = applied.params.into_iter();
                        invocations.extend(each.map(|params| (invocation, params)));
                    }
                }
            }
        }
        let mut is_changed = false;
        for (invocation, params) in invocations {
            let before = objects.object.clone();
            self.invoke(
                (operation, invocation),
                params,
                objects,
                reinvocation,
                &mut problems,
            )
            .await?;
            is_changed |= before != objects.object;
        }
        if is_changed {
            let again: Vec<String> = reinvocation.evaluated_before.drain().collect();
            reinvocation.repeated.extend(again);
        }
        reinvocation.last_object.clone_from(&objects.object);
        let Some(first) = problems.first() else {
            return Ok(is_changed);
        };
        let mut status = denial::forbidden(&self.attributes, objects, "");
        status.message = first.message();
        if first.is_invalid {
            status.reason = StatusReason::Invalid;
        }
        for problem in &problems {
            denial::add_cause(&mut status, problem.message());
        }
        Err(Error::Refused(Box::new(status)))
    }

    async fn invoke<'p>(
        &self,
        (operation, invocation): (Operation, Invocation<'p>),
        params: Option<Value>,
        objects: &mut Objects,
        reinvocation: &mut Reinvocation,
        problems: &mut Vec<Problem<'p>>,
    ) -> Result<(), Error> {
        let Invocation {
            policy,
            binding,
            resource,
        } = invocation;
        let problem = |message: String| {
            (!policy.ignores_failures).then(|| Problem {
                policy: &policy.name,
                binding: Some(&binding.name),
                message,
                is_invalid: true,
            })
        };
        let refused = |refusal: Refusal| refusal.into_error(&policy.name);
        let shown = self.converted(objects, resource).await.map_err(refused)?;
        let mut evaluated = Evaluated::new(self, operation, resource, shown)?;
        let inputs = evaluated.inputs(self, params.as_ref());
        match policy.conditions.evaluate_with(&policy.variables, &inputs) {
            Matched::Yes => {}
            Matched::No { .. } => return Ok(()),
            Matched::Unknown { error } => {
                problems.extend(problem(error));
                return Ok(());
            }
        }
        let key = key(policy, binding, params.as_ref());
        if reinvocation.is_repetition && !reinvocation.repeated.contains(&key) {
            return Ok(());
        }
        let before = evaluated.object().cloned();
        for mutation in &policy.rules.mutations {
            let inputs = evaluated.inputs(self, params.as_ref());
            let expressions = [Some(&mutation.expression)];
            let result = inputs.evaluate(&policy.variables, &expressions, COST_OF_POLICY);
            let output = match result.map(|(mut results, _)| results.pop()) {
                Ok(Some(Ok(Output::Json(patch)))) => patch,
                Ok(Some(Err(error))) => {
                    // Kubernetes does not name the stage of compilation errors here.
                    let error = error.strip_prefix("compilation error: ").unwrap_or(&error);
                    problems.extend(problem(error.to_owned()));
                    continue;
                }
                Ok(_) => {
                    problems.extend(problem("unsupported return type".to_owned()));
                    continue;
                }
                Err(error) => {
                    problems.extend(problem(error));
                    continue;
                }
            };
            let Some(object) = evaluated.object() else {
                continue;
            };
            let changed = match mutation.is_json_patch {
                true => patched(object, &output),
                false => self.merged(object, output, resource),
            };
            match changed {
                Err(error) => problems.extend(problem(error)),
                Ok(changed) => {
                    let changed = self.with_defaults(changed, resource).map_err(refused)?;
                    evaluated.set_object(changed);
                }
            }
        }
        let changed = evaluated.into_object();
        if changed != before {
            let again: Vec<String> = reinvocation.evaluated_before.drain().collect();
            reinvocation.repeated.extend(again);
            if let Some(changed) = changed {
                let restored = self.restored(changed, resource).await;
                objects.object = Some(restored.map_err(refused)?);
            }
        }
        if policy.rules.is_reinvoked {
            reinvocation.evaluated_before.insert(key);
        }
        Ok(())
    }

    /// Merges a configuration into an object.
    fn merged(
        &self,
        object: &Value,
        mut config: Value,
        resource: &Resource,
    ) -> Result<Value, String> {
        for field in ["apiVersion", "kind"] {
            config[field] = object[field].clone();
        }
        let kind = match self.attributes.has_own_kind {
            true => None,
            false => self
                .engine
                .find(&resource.group, &resource.version, &resource.plural),
        };
        let kind = kind.ok_or_else(|| {
            format!(
                "error applying patch: Resource kind {}/{}, Kind={} not found",
                resource.kind.group, resource.kind.version, resource.kind.kind
            )
        })?;
        let merged = self.engine.merge_configuration(object, &config, &kind);
        merged.map_err(|problem| format!("error applying patch: {problem}"))
    }
}

/// Applies a JSON patch. If a test of the patch fails, the object does not change.
fn patched(object: &Value, patch: &Value) -> Result<Value, String> {
    match Engine::apply_tested_json_patch(object.clone(), patch) {
        Ok(Some(patched)) => Ok(patched),
        Ok(None) => Ok(object.clone()),
        Err(Error::PatchFailed(problem)) => Err(format!("JSON Patch: {problem}")),
        Err(error) => Err(format!("JSON Patch: {error}")),
    }
}

/// Identifies an evaluation.
fn key(policy: &Policy<Mutations>, binding: &Binding, params: Option<&Value>) -> String {
    let part = |field: &str| {
        let metadata = params.map(|params| &params["metadata"][field]);
        metadata.and_then(Value::as_str).unwrap_or_default()
    };
    let names = [
        &*policy.name,
        &*binding.name,
        part("namespace"),
        part("name"),
    ];
    names.join("/")
}
