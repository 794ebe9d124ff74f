//! Validates the rules of a definition.

use std::sync::Arc;

use longshore_model::{CauseList, StatusCause};
use serde_json::Value as Json;

use super::{causes, expressions, field_path, has_rules, is_embedded};
use crate::{
    decl::{Decl, MAX_REQUEST_BYTES, integer},
    escape::escape,
};

/// Maximum estimated cost of an expression.
const MAX_EXPRESSION_COST: u64 = 10_000_000;
/// Maximum estimated cost of all expressions of a schema.
const MAX_SCHEMA_COST: u64 = 100_000_000;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Validates the rules of an `openAPIV3Schema` at `path`. If the schema has
/// other errors (`is_valid` is not set), the expressions are not compiled.
#[must_use]
pub fn check(schema: &Json, path: &str, is_valid: bool) -> Vec<StatusCause> {
    if !has_rules(schema) {
        return Vec::new();
    }
    let mut out = CauseList::new();
    texts(schema, path, &mut out);
    if !out.is_empty() || !is_valid {
        return out.into_vec();
    }
    let mut checks = Checks {
        total: 0,
        most_expensive: Vec::new(),
        out,
    };
    let decl = Decl::of_schema(schema, true);
    checks.node(schema, path, decl.as_ref(), Some(1), None);
    checks.finish(path)
}

fn text<'s>(rule: &'s Json, name: &str) -> &'s str {
    rule[name].as_str().unwrap_or_default()
}

fn rules(schema: &Json) -> impl Iterator<Item = (usize, &Json)> {
    let rules = schema["x-kubernetes-validations"].as_array();
    rules.into_iter().flatten().enumerate()
}

/// The schemas below, with their paths.
fn below<'s>(schema: &'s Json, path: &str) -> Vec<(Place<'s>, String, &'s Json)> {
    let mut out = Vec::new();
    if schema["additionalProperties"].is_object() {
        let path = format!("{path}.additionalProperties");
        out.push((Place::Values, path, &schema["additionalProperties"]));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        out.push((Place::Property(name), path, property));
    }
    if schema["items"].is_object() {
        out.push((Place::Items, format!("{path}.items"), &schema["items"]));
    }
    out
}

#[derive(Debug, Clone, Copy)]
enum Place<'s> {
    Property(&'s str),
    Values,
    Items,
}

/// Validates the parts of rules other than the expressions.
fn texts(schema: &Json, path: &str, out: &mut CauseList) {
    for (_, path, inner) in below(schema, path) {
        texts(inner, &path, out);
    }
    for (index, rule) in rules(schema) {
        let at = |name: &str| format!("{path}.x-kubernetes-validations[{index}].{name}");
        let shown = |name: &str| Some(&rule[name]);
        let source = text(rule, "rule").trim();
        let message = text(rule, "message").trim();
        let breaks = |text: &str| text.contains(['\n', '\r']);
        if source.is_empty() {
            // The check of the schema reports it.
        } else if !text(rule, "message").is_empty() && message.is_empty() {
            let why = "must be non-empty if specified";
            out.push(causes::invalid(&at("message"), shown("message"), why));
        } else if breaks(message) {
            let why = "must not contain line breaks";
            out.push(causes::invalid(&at("message"), shown("message"), why));
        } else if breaks(source) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            out.push(causes::required(&at("message"), why));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            out.push(causes::required(&at("messageExpression"), why));
        }
        let reason = text(rule, "reason");
        if rule["reason"].is_string() && !REASONS.contains(&reason) {
            out.push(causes::not_supported(&at("reason"), reason, &REASONS));
        }
        let field = text(rule, "fieldPath");
        if field.is_empty() {
            continue;
        }
        let mut wrong = |why: &str| {
            let path = at("fieldPath");
            out.push(causes::invalid(&path, shown("fieldPath"), why));
        };
        if field.trim().is_empty() {
            wrong("must be non-empty if specified");
        }
        if breaks(field) {
            wrong("must not contain line breaks");
        }
        if field_path::normalize(field, schema).is_err() {
            wrong("must be a valid path");
        }
    }
}

struct Checks {
    total: u64,
    most_expensive: Vec<(u64, String)>,
    out: CauseList,
}

impl Checks {
    /// Validates a schema and the schemas below. `cardinality` is the maximum number of times that
    /// the value can exist in an object, if it is limited. `uncorrelatable` is the path of an
    /// enclosing list whose items have no previous values.
    fn node(
        &mut self,
        schema: &Json,
        path: &str,
        decl: Option<&Arc<Decl>>,
        cardinality: Option<u64>,
        uncorrelatable: Option<&str>,
    ) {
        let factor = match text(schema, "type") {
            "object" if schema["additionalProperties"].is_object() => {
                integer(&schema["maxProperties"])
            }
            "array" => integer(&schema["maxItems"]),
            _ => Some(1),
        };
        let inner_cardinality = cardinality
            .zip(factor)
            .map(|(count, factor)| count.saturating_mul(factor));
        for (place, inner_path, inner) in below(schema, path) {
            let known = match place {
                Place::Property(name) => {
                    escape(name).and_then(|name| decl?.field(&name).map(|field| field.decl.clone()))
                }
                Place::Values | Place::Items => decl.and_then(|decl| decl.element_decl().cloned()),
            };
            let known = known.or_else(|| Decl::of_schema(inner, is_embedded(inner)));
            let lost = match place {
                Place::Items if text(schema, "x-kubernetes-list-type") != "map" => Some(path),
                _ => None,
            };
            let lost = uncorrelatable.or(lost);
            self.node(inner, &inner_path, known.as_ref(), inner_cardinality, lost);
        }
        for (index, rule) in rules(schema) {
            let path = format!("{path}.x-kubernetes-validations[{index}]");
            let Some(decl) = decl else {
                let why = "the type of the value is not known";
                self.out.push(causes::forbidden(&path, why));
                continue;
            };
            self.rule(rule, &path, decl, cardinality, uncorrelatable);
        }
    }

    fn rule(
        &mut self,
        rule: &Json,
        path: &str,
        decl: &Arc<Decl>,
        cardinality: Option<u64>,
        uncorrelatable: Option<&str>,
    ) {
        let Some(compiled) = expressions(rule, decl) else {
            return;
        };
        let at = |name: &str| format!("{path}.{name}");
        let program = match &compiled.rule {
            Ok(program) => program,
            Err(why) => {
                let cause = causes::invalid_rule(&at("rule"), rule, why);
                self.out.push(cause);
                return;
            }
        };
        let most = MAX_REQUEST_BYTES / decl.min_size.saturating_add(1);
        let times = cardinality.unwrap_or(most);
        let cost = program.max_cost().saturating_mul(times);
        self.cost(&at("rule"), "estimated rule cost", cost);
        match &compiled.message {
            Some(Err(why)) => {
                let path = at("messageExpression");
                let cause = causes::invalid_rule(&path, rule, why);
                self.out.push(cause);
            }
            Some(Ok(program)) => {
                let name = "estimated messageExpression cost";
                self.cost(&at("messageExpression"), name, program.max_cost());
            }
            None => {}
        }
        if program.uses("oldSelf") {
            if let Some(list) = uncorrelatable {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                let cause = causes::invalid(&at("rule"), Some(&rule["rule"]), &why);
                self.out.push(cause);
            }
        } else if rule["optionalOldSelf"].is_boolean() {
            let why = "may not be set if oldSelf is not used in rule";
            let path = at("optionalOldSelf");
            let cause = causes::invalid(&path, Some(&rule["optionalOldSelf"]), why);
            self.out.push(cause);
        }
    }

    fn cost(&mut self, path: &str, name: &str, cost: u64) {
        if cost > MAX_EXPRESSION_COST {
            let why = exceeds(name, cost, MAX_EXPRESSION_COST);
            self.out.push(causes::forbidden(path, &why));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= MAX_SCHEMA_COST / 100 {
            self.most_expensive.push((cost, path.to_owned()));
            self.most_expensive
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.most_expensive.truncate(4);
        }
    }

    fn finish(mut self, path: &str) -> Vec<StatusCause> {
        if self.total > MAX_SCHEMA_COST {
            for (_, path) in &self.most_expensive {
                let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                self.out.push(causes::forbidden(path, why));
            }
            let name =
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            let why = exceeds(name, self.total, MAX_SCHEMA_COST);
            self.out.push(causes::forbidden(path, &why));
        }
        self.out.into_vec()
    }
}

#[allow(clippy::cast_precision_loss)]
fn exceeds(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
