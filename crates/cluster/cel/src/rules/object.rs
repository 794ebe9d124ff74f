//! Validates objects with the rules of their kind.

use serde_json::Value as Json;

use super::{
    Findings, Node, Rule, causes,
    ratchet::{OldItems, Ratchet},
};
use crate::{
    error::EvalError,
    meter::COST_PER_CALL,
    program::{COST_PER_OBJECT, Outcome},
};

/// Maximum size of a computed message in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The budget is used up.
struct Stop;

struct Validation {
    budget: u64,
    findings: Findings,
}

pub(super) fn validate(root: &Node, before: Option<&Json>, object: &Json) -> Findings {
    let mut validation = Validation {
        budget: COST_PER_OBJECT,
        findings: Findings::default(),
    };
    let ratchet = Ratchet::of(before, object);
    // The error about the budget is among the causes.
    let _ = validation.node(root, "", object, before, ratchet);
    validation.findings
}

impl Validation {
    fn node<'o>(
        &mut self,
        node: &Node,
        path: &str,
        value: &'o Json,
        old: Option<&'o Json>,
        ratchet: Ratchet<'o>,
    ) -> Result<(), Stop> {
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &node.rules {
            self.rule(rule, node, path, value, old, ratchet)?;
        }
        match value {
            Json::Array(items) => {
                let Some(below) = &node.items else {
                    return Ok(());
                };
                let old_items = OldItems::of(node, old);
                for (index, item) in items.iter().enumerate() {
                    let old = old_items.get(node, item);
                    let path = format!("{path}[{index}]");
                    self.node(below, &path, item, old, ratchet.item(old, item))?;
                }
                Ok(())
            }
            Json::Object(fields) => {
                for (name, value) in fields {
                    let (below, path) = match (node.properties.get(name), &node.additional) {
                        (Some(below), _) if path.is_empty() => (below, name.clone()),
                        (Some(below), _) => (below, format!("{path}.{name}")),
                        (None, Some(below)) => (&**below, format!("{path}[{name}]")),
                        (None, None) => continue,
                    };
                    let old = old.and_then(|old| old.get(name));
                    self.node(below, &path, value, old, ratchet.key(name))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reports an error of a rule that does not concern the value.
    fn broken(&mut self, node: &Node, path: &str, detail: &str) {
        let kind = Json::String(node.kind.clone());
        let cause = causes::invalid(path, Some(&kind), detail);
        self.findings.causes.push(cause);
    }

    fn stop(&mut self, node: &Node, path: &str, detail: &str) -> Result<(), Stop> {
        self.broken(node, path, detail);
        Err(Stop)
    }

    fn rule(
        &mut self,
        rule: &Rule,
        node: &Node,
        path: &str,
        value: &Json,
        old: Option<&Json>,
        ratchet: Ratchet<'_>,
    ) -> Result<(), Stop> {
        if self.budget == 0 {
            return self.stop(node, path, OUT_OF_BUDGET);
        }
        let program = match &rule.program {
            Ok(program) => program,
            Err(error) => {
                self.broken(node, path, &format!("rule compile error: {error}"));
                return Ok(());
            }
        };
        // Rules about changes apply only if there was a value before.
        if rule.uses_old_self() && old.is_none() && !rule.optional_old_self {
            return Ok(());
        }
        let inputs = [("self", Some(value)), ("oldSelf", old)];
        let evaluation = program.evaluate(&inputs, COST_PER_CALL);
        match self.budget.checked_sub(evaluation.cost) {
            Some(left) => self.budget = left,
            None => return self.stop(node, path, OUT_OF_BUDGET),
        }
        let name = rule.name();
        match evaluation.result {
            Ok(Outcome::Bool(true)) => return Ok(()),
            Ok(Outcome::Bool(false)) => {}
            Ok(_) | Err(EvalError::NoSuchOverload) => {
                let detail = format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {name}"
                );
                self.broken(node, path, &detail);
                return Ok(());
            }
            Err(EvalError::TooCostly) => {
                let detail = format!(
                    "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {name}",
                    EvalError::TooCostly
                );
                return self.stop(node, path, &detail);
            }
            Err(error) => {
                self.broken(node, path, &format!("{error} evaluating rule: {name}"));
                return Ok(());
            }
        }
        let path = match &rule.field_path {
            Some(below) if path.is_empty() => below.clone(),
            Some(below) => format!("{path}.{below}"),
            None => path.to_owned(),
        };
        let (message, failed) = self.message(rule, &inputs);
        let shown = (!value.is_object() && !value.is_array()).then_some(value);
        let cause = match (&failed, &*rule.reason) {
            (true, _) => {
                let kind = Json::String(node.kind.clone());
                causes::invalid(&path, Some(&kind), &message)
            }
            (false, "FieldValueForbidden") => causes::forbidden(&path, &message),
            (false, "FieldValueRequired") => causes::required(&path, &message),
            (false, "FieldValueDuplicate") => causes::duplicate(&path, shown),
            (false, _) => causes::invalid(&path, shown, &message),
        };
        match !rule.uses_old_self() && ratchet.is_unchanged() {
            true => self.findings.ratcheted.push(cause),
            false => self.findings.causes.push(cause),
        }
        if failed { Err(Stop) } else { Ok(()) }
    }

    /// Returns the message of a failed rule, and true if it used up the budget.
    fn message(&mut self, rule: &Rule, inputs: &[(&str, Option<&Json>)]) -> (String, bool) {
        let default = match rule.message.is_empty() {
            true => format!("failed rule: {}", rule.name()),
            false => rule.name().to_owned(),
        };
        let Some((source, program)) = &rule.message_expression else {
            return (default, false);
        };
        let evaluation = program.evaluate(inputs, COST_PER_CALL);
        let Some(left) = self.budget.checked_sub(evaluation.cost) else {
            let message = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run";
            return (message.to_owned(), true);
        };
        match evaluation.result {
            Err(EvalError::TooCostly) => {
                let message = format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source:?}"
                );
                (message, true)
            }
            Ok(Outcome::String(text)) => {
                self.budget = left;
                let text = text.trim();
                let fits =
                    !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
                (if fits { text.to_owned() } else { default }, false)
            }
            Ok(_) | Err(_) => {
                self.budget = left;
                (default, false)
            }
        }
    }
}
