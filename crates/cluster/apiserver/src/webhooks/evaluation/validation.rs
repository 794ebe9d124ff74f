//! ValidatingAdmissionPolicies: expressions that requests must satisfy.

use longshore_cel::{AdmissionInputs, COST_OF_POLICY, Matched, Output};
use longshore_engine::Error;
use longshore_model::StatusReason;

use super::{
    audited::{Audited, FailedValidation},
    bindings::{Applied, Misconfigured},
    denial,
    evaluated::Evaluated,
};
use crate::webhooks::{
    admission::Admission,
    attributes::Operation,
    message::Objects,
    policies::{
        Bound, Policies,
        binding::{Action, Binding},
        policy::Policy,
        validations::{Annotation, Validation, Validations},
    },
};

/// Kubernetes' limit of the length of a message that an expression returns.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// The reason why a validation fails.
struct Failure {
    message: String,
    /// Empty for the default reason.
    reason: String,
    /// The number of the validation; 0 for errors of the policy as a whole.
    index: usize,
}

impl Failure {
    fn of_error(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            reason: String::new(),
            index: 0,
        }
    }
}

/// The results of all policies for a request.
#[derive(Default)]
struct Findings<'p> {
    denials: Vec<Denial<'p>>,
    audited: Audited,
}

/// A request that is denied: the failure, the policy, and the binding if the failure concerns a
/// binding.
struct Denial<'p> {
    failure: Failure,
    policy: &'p str,
    binding: Option<&'p str>,
}

impl<'p> Denial<'p> {
    fn of(problem: Misconfigured<'p>, policy: &'p str) -> Self {
        Self {
            failure: Failure::of_error(problem.message),
            policy,
            binding: problem.binding,
        }
    }
}

impl Admission {
    /// Checks a request by the validating policies that it matches.
    pub(in crate::webhooks) async fn check_policies(
        &self,
        operation: Operation,
        objects: &Objects,
    ) -> Result<(), Error> {
        let Policies { validating, .. } = &self.index.policies;
        if validating.is_empty() || self.attributes.is_about_policies() {
            return Ok(());
        }
        let mut findings = Findings::default();
        for bound in validating {
            self.check_policy(bound, operation, objects, &mut findings)
                .await?;
        }
        if let Some(record) = &self.attributes.audit {
            findings.audited.publish(record);
        }
        let Some(denial) = findings.denials.into_iter().next() else {
            return Ok(());
        };
        let Denial {
            failure,
            policy,
            binding,
        } = denial;
        let binding = binding.map_or(String::new(), |name| format!(" with binding '{name}'"));
        let message = format!(
            "ValidatingAdmissionPolicy '{policy}'{binding} denied request: {}",
            failure.message
        );
        let mut status = denial::forbidden(&self.attributes, objects, &message);
        status.reason = match &*failure.reason {
            "" => StatusReason::Invalid,
            reason => StatusReason::from_word(reason),
        };
        status.code = match status.reason {
            StatusReason::Forbidden | StatusReason::RequestEntityTooLarge => status.reason.code(),
            _ => StatusReason::Invalid.code(),
        };
        denial::add_cause(&mut status, message);
        Err(Error::Refused(Box::new(status)))
    }

    async fn check_policy<'p>(
        &'p self,
        bound: &'p Bound<Validations>,
        operation: Operation,
        objects: &Objects,
        findings: &mut Findings<'p>,
    ) -> Result<(), Error> {
        let policy = &*bound.policy;
        for applied in self.applied(bound, operation, objects) {
            let Applied {
                binding,
                resource,
                params,
            } = match applied {
                Ok(applied) => applied,
                Err(problem) => {
                    findings.denials.push(Denial::of(problem, &policy.name));
                    continue;
                }
            };
            let shown = match self.converted(objects, resource).await {
                Ok(shown) => shown,
                Err(_) if policy.ignores_failures => continue,
                Err(refusal) => {
                    let problem = refusal.into_error(&policy.name);
                    let problem = format!("failed to convert object version: {problem}");
                    let problem = Misconfigured::new(Some(binding), &problem);
                    findings.denials.push(Denial::of(problem, &policy.name));
                    continue;
                }
            };
            let request = Evaluated::new(self, operation, resource, shown)?;
            for params in &params {
                let inputs = request.inputs(self, params.as_ref());
                for failure in validate(policy, &inputs) {
                    self.act(policy, binding, failure, findings);
                }
            }
        }
        Ok(())
    }

    fn act<'p>(
        &self,
        policy: &'p Policy<Validations>,
        binding: &'p Binding,
        found: Found,
        findings: &mut Findings<'p>,
    ) {
        let Findings { denials, audited } = findings;
        let failure = match found {
            Found::Validation(failure) => failure,
            Found::Annotation { key, value } => {
                return audited.annotate(&policy.name, &key, &value);
            }
            Found::NoAnnotation(failure) => {
                return denials.push(Denial {
                    failure,
                    policy: &policy.name,
                    binding: Some(&binding.name),
                });
            }
        };
        if binding.actions.contains(&Action::Warn) {
            let warning = format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                policy.name, binding.name, failure.message
            );
            self.warnings.add(vec![warning]);
        }
        if binding.actions.contains(&Action::Audit) {
            let failed = FailedValidation {
                message: &failure.message,
                policy: &policy.name,
                index: failure.index,
            };
            audited.add_failure(&failed, binding);
        }
        if binding.actions.contains(&Action::Deny) {
            denials.push(Denial {
                failure,
                policy: &policy.name,
                binding: Some(&binding.name),
            });
        }
    }
}

/// A result of a policy.
enum Found {
    /// A validation failed.
    Validation(Failure),
    /// An annotation for the audit log.
    Annotation { key: String, value: String },
    /// The expression of an audit annotation failed.
    NoAnnotation(Failure),
}

/// Evaluates a policy.
fn validate(policy: &Policy<Validations>, inputs: &AdmissionInputs<'_>) -> Vec<Found> {
    // Errors are failures, unless the failure policy ignores them.
    let failed = |error: String| match policy.ignores_failures {
        true => None,
        false => Some(Failure::of_error(error)),
    };
    match policy.conditions.evaluate_with(&policy.variables, inputs) {
        Matched::Yes => {}
        Matched::No { .. } => return Vec::new(),
        Matched::Unknown { error } => {
            return failed(error).map(Found::Validation).into_iter().collect();
        }
    }
    let Validations {
        validations,
        annotations,
    } = &policy.rules;
    let expressions: Vec<_> = validations
        .iter()
        .map(|one| Some(&one.expression))
        .collect();
    let evaluated = inputs.evaluate(&policy.variables, &expressions, COST_OF_POLICY);
    let (results, left) = match evaluated {
        Ok(evaluated) => evaluated,
        Err(error) => return failed(error).map(Found::Validation).into_iter().collect(),
    };
    let without_authorizer = AdmissionInputs {
        authorizer: None,
        ..inputs.clone()
    };
    let expressions: Vec<_> = validations
        .iter()
        .map(|one| one.message_expression.as_ref())
        .collect();
    let messages = without_authorizer.evaluate(&policy.variables, &expressions, left);
    let mut found = Vec::new();
    for (index, (validation, result)) in validations.iter().zip(results).enumerate() {
        let failure = match (result, &messages) {
            (Err(error), _) => failed(error),
            (Ok(_), Err(error)) => failed(format!("failed messageExpression: {error}")),
            (Ok(Output::Bool(true)), _) => None,
            (Ok(_), Ok((messages, _))) => Some(validation.failure(messages.get(index))),
        };
        let failure = failure.map(|failure| Failure { index, ..failure });
        found.extend(failure.map(Found::Validation));
    }
    let expressions: Vec<_> = annotations
        .iter()
        .map(|one| Some(&one.expression))
        .collect();
    match without_authorizer.evaluate(&policy.variables, &expressions, COST_OF_POLICY) {
        // As in Kubernetes, this error replaces the results of the validations.
        Err(error) => return failed(error).map(Found::Validation).into_iter().collect(),
        Ok((results, _)) => {
            for (annotation, result) in annotations.iter().zip(results) {
                let failure = match result {
                    Err(error) => failed(error),
                    Ok(Output::Null) => None,
                    Ok(Output::String(value)) => {
                        let key = annotation.key.clone();
                        found.push(Found::Annotation { key, value });
                        None
                    }
                    Ok(other) => Some(Failure::of_error(annotation.unsupported(&other))),
                };
                found.extend(failure.map(Found::NoAnnotation));
            }
        }
    }
    found
}

impl Validation {
    /// The failure of the validation with the result of the message expression.
    fn failure(&self, message: Option<&Result<Output, String>>) -> Failure {
        let computed = match message {
            Some(Ok(Output::String(text))) => Some(text.trim()),
            _ => None,
        };
        let computed = computed.filter(|text| {
            !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n')
        });
        let message = match (computed, self.message.trim()) {
            (Some(text), _) => text.to_owned(),
            (None, "") => format!("failed expression: {}", self.source.trim()),
            (None, text) => text.to_owned(),
        };
        Failure {
            message,
            reason: self.reason.clone(),
            index: 0,
        }
    }
}

impl Annotation {
    fn unsupported(&self, found: &Output) -> String {
        let found = match found {
            Output::Bool(_) => "bool",
            Output::Other(name) => name,
            _ => "object",
        };
        format!(
            "valueExpression '{}' resulted in unsupported return type: {found}. Return type must be either string or null.",
            self.source
        )
    }
}
