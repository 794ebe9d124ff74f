//! Validation of admission policies and their bindings.

mod expressions;
mod resources;

use longshore_model::CauseList;

use self::{expressions::Expressions, resources::match_resources};
use super::{
    field_value::{Causes, FieldValue},
    meta, selector,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MAX_AUDIT_ANNOTATIONS: usize = 20;

/// Validates a ValidatingAdmissionPolicy.
pub(crate) fn validating(policy: &Object, causes: &mut CauseList) {
    let spec = FieldValue::field(policy, "spec");
    let name = json::text(policy, "metadata.name");
    let causes = &mut Causes(causes);
    let mut expressions = common(&spec, false, causes);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.len() == 0 && annotations.len() == 0 {
        let detail = "validations or auditAnnotations must contain at least one item";
        causes.required(&validations, detail);
        causes.required(&annotations, detail);
        return;
    }
    for validation in validations.items() {
        self::validation(&validation, &mut expressions, causes);
    }
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        causes.invalid(&annotations, &detail);
    }
    let mut keys: Vec<&str> = Vec::new();
    for annotation in annotations.items() {
        let key = annotation.get("key");
        if name.is_empty() {
            causes.invalid(&key, "requires metadata.name be non-empty");
        } else {
            meta::qualified(&key.path, &format!("{name}/{}", key.text()), causes.0);
        }
        expressions.audit_annotation(&annotation.get("valueExpression"), causes);
        if keys.contains(&key.text()) {
            causes.duplicate(&key);
        }
        keys.push(key.text());
    }
}

/// Validates a MutatingAdmissionPolicy.
pub(crate) fn mutating(policy: &Object, causes: &mut CauseList) {
    let spec = FieldValue::field(policy, "spec");
    let causes = &mut Causes(causes);
    let mut expressions = common(&spec, true, causes);
    let mutations = spec.get("mutations");
    if mutations.len() == 0 {
        causes.required(&mutations, "mutations must contain at least one item");
    }
    for mutation in mutations.items() {
        self::mutation(&mutation, &mut expressions, causes);
    }
    let reinvocation = spec.get("reinvocationPolicy");
    if reinvocation.text().is_empty() {
        causes.required(&reinvocation, "");
    } else {
        causes.one_of(&reinvocation, &["IfNeeded", "Never"]);
    }
}

/// Validates the fields that both kinds of policies have.
fn common(spec: &FieldValue<'_>, is_mutating: bool, causes: &mut Causes<'_>) -> Expressions {
    required_word(&spec.get("failurePolicy"), &["Fail", "Ignore"], causes);
    let kind = spec.get("paramKind");
    if kind.is_set() {
        param_kind(&kind, causes);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        match_resources(&constraints, causes);
        let rules = constraints.get("resourceRules");
        if rules.len() == 0 {
            causes.required(&rules, "");
        }
        if is_mutating {
            resources::mutable_operations(&constraints, causes);
        }
    } else {
        causes.required(&constraints, "");
    }
    let mut expressions = Expressions::new(kind.is_set(), is_mutating);
    expressions.conditions(&spec.get("matchConditions"), causes);
    for variable in spec.get("variables").items() {
        expressions.variable(&variable, causes);
    }
    expressions
}

fn required_word(at: &FieldValue<'_>, words: &[&str], causes: &mut Causes<'_>) {
    if at.is_set() {
        causes.one_of(at, words);
    } else {
        causes.required(at, "");
    }
}

fn param_kind(kind: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (api_version, name) = (kind.get("apiVersion"), kind.get("kind"));
    let text = api_version.text();
    match (text, text.matches('/').count()) {
        ("", _) => causes.required(&api_version, ""),
        (text, 0 | 1) => {
            let (group, version) = match text {
                "/" => ("", ""),
                text => text.split_once('/').unwrap_or(("", text)),
            };
            if !group.is_empty() {
                meta::subdomain(&api_version.path, group, causes.0);
            }
            if version.is_empty() {
                causes.invalid(&api_version, "version must be specified");
            } else {
                meta::service_label(&api_version.path, version, causes.0);
            }
        }
        (text, _) => {
            causes.invalid(
                &api_version,
                &format!("unexpected GroupVersion string: {text}"),
            );
        }
    }
    if name.text().is_empty() {
        return causes.required(&name, "");
    }
    let mut problems = CauseList::new();
    meta::service_label("", &name.text().to_lowercase(), &mut problems);
    if let Some(problem) = problems.first() {
        let (_, detail) = problem.message.split_once("\": ").unwrap_or_default();
        let detail = format!("may have mixed case, but should otherwise match: {detail}");
        causes.invalid(&name, &detail);
    }
}

fn validation(validation: &FieldValue<'_>, expressions: &mut Expressions, causes: &mut Causes<'_>) {
    expressions.validation(&validation.get("expression"), causes);
    expressions.message(&validation.get("messageExpression"), causes);
    let message = validation.get("message");
    let trimmed = message.text().trim();
    if !message.text().is_empty() && trimmed.is_empty() {
        causes.invalid(&message, "must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        causes.invalid(&message, "must not contain line breaks");
    }
    causes.one_of_if_set(&validation.get("reason"), &REASONS);
}

fn mutation(mutation: &FieldValue<'_>, expressions: &mut Expressions, causes: &mut Causes<'_>) {
    let at = mutation.get("patchType");
    let (own, other) = match at.text() {
        "" => return causes.required(&at, ""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        _ => return causes.not_supported(&at, &["ApplyConfiguration", "JSONPatch"]),
    };
    let (patch, absent) = (mutation.get(own), mutation.get(other));
    let patch_type = at.text();
    if patch.is_set() {
        expressions.patch(&patch.get("expression"), own == "jsonPatch", causes);
    } else {
        let detail = format!("must be specified when patchType is {patch_type}");
        causes.required(&patch, &detail);
    }
    if absent.is_set() {
        let detail = format!("must not be specified when patchType is {patch_type}");
        let shown = format!("{{{other}}}");
        causes.0.push(Cause::invalid(&absent.path, shown, &detail));
    }
}

/// Validates a ValidatingAdmissionPolicyBinding.
pub(crate) fn validating_binding(binding: &Object, causes: &mut CauseList) {
    let spec = FieldValue::field(binding, "spec");
    let causes = &mut Causes(causes);
    common_binding(&spec, causes);
    let actions = spec.get("validationActions");
    let mut seen: Vec<&str> = Vec::new();
    for action in actions.items() {
        causes.one_of(&action, &ACTIONS);
        if seen.contains(&action.text()) {
            causes.duplicate(&action);
        }
        seen.push(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        causes.invalid(&actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
    }
    if seen.is_empty() {
        causes.required(&actions, "at least one validation action is required");
    }
}

/// Validates a MutatingAdmissionPolicyBinding.
pub(crate) fn mutating_binding(binding: &Object, causes: &mut CauseList) {
    let spec = FieldValue::field(binding, "spec");
    let causes = &mut Causes(causes);
    common_binding(&spec, causes);
    resources::mutable_operations(&spec.get("matchResources"), causes);
}

fn common_binding(spec: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let policy = spec.get("policyName");
    if policy.text().is_empty() {
        causes.required(&policy, "");
    } else {
        causes.subdomain(&policy);
    }
    let reference = spec.get("paramRef");
    if reference.is_set() {
        param_ref(&reference, causes);
    }
    let matched = spec.get("matchResources");
    if matched.is_set() {
        match_resources(&matched, causes);
    }
}

fn param_ref(reference: &FieldValue<'_>, causes: &mut Causes<'_>) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, labels) = (reference.get("name"), reference.get("selector"));
    let has_name = !name.text().is_empty();
    if has_name {
        meta::path_segment(&name.path, name.text(), causes.0);
        if labels.is_set() {
            causes.forbidden(&name, EXCLUSIVE);
        }
    }
    if labels.is_set() {
        selector::check(&labels, causes);
        if has_name {
            causes.forbidden(&labels, EXCLUSIVE);
        }
    } else if !has_name {
        causes.required(reference, "one of name or selector must be specified");
    }
    let action = reference.get("parameterNotFoundAction");
    if action.text().is_empty() {
        causes.required(&action, "");
    } else {
        causes.one_of(&action, &["Deny", "Allow"]);
    }
}
