//! Rules of custom objects: `x-kubernetes-validations` in the schemas of
//! CustomResourceDefinitions.

mod causes;
mod definition;
mod field_path;
mod object;
mod ratchet;

use std::{collections::BTreeMap, sync::Arc};

use longshore_model::CauseList;
use serde_json::Value as Json;

pub use definition::check;

use crate::{
    decl::Decl,
    escape::escape,
    program::{CompileError, Environment, Program, ResultType},
};

/// The rules of a kind, compiled.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// The errors that a validation found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The errors.
    pub causes: CauseList,
    /// Errors of values that an update does not change, which do not block the update.
    pub ratcheted: CauseList,
}

/// The rules of a schema node, and of the nodes below it.
#[derive(Debug, Default)]
struct Node {
    rules: Vec<Rule>,
    /// The declared type, for messages.
    kind: String,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
    /// The fields that identify the items of a list.
    keys: Option<Vec<String>>,
}

#[derive(Debug)]
struct Rule {
    /// The source of the rule.
    source: String,
    message: String,
    message_expression: Option<(String, Program)>,
    reason: String,
    /// The path of reported errors, relative to the location of the rule.
    field_path: Option<String>,
    optional_old_self: bool,
    program: Result<Program, CompileError>,
}

/// Returns true if a schema contains rules. Kinds without rules skip all other work.
#[must_use]
pub fn has_rules(schema: &Json) -> bool {
    match schema {
        Json::Object(fields) => fields.iter().any(|(name, value)| {
            (name == "x-kubernetes-validations" && value.as_array().is_some_and(|r| !r.is_empty()))
                || has_rules(value)
        }),
        Json::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

impl Rules {
    /// Compiles the rules of an `openAPIV3Schema`; `None` if it has none.
    #[must_use]
    pub fn compile(schema: &Json) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let decl = Decl::of_schema(schema, true)?;
        let root = Node::compile(schema, &decl)?;
        Some(Self { root })
    }

    /// Validates an object; `before` is its previous state.
    #[must_use]
    pub fn validate(&self, before: Option<&Json>, object: &Json) -> Findings {
        object::validate(&self.root, before, object)
    }
}

impl Node {
    fn compile(schema: &Json, decl: &Arc<Decl>) -> Option<Self> {
        let text = |name: &str| schema[name].as_str().unwrap_or_default();
        let mut node = Self {
            kind: text("type").to_owned(),
            ..Self::default()
        };
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            node.rules.extend(Rule::compile(rule, schema, decl));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let known = match escape(name) {
                Some(escaped) => decl.field(&escaped).map(|field| field.decl.clone()),
                // Expressions cannot name such a property, but it may have rules.
                None => Decl::of_schema(property, is_embedded(property)),
            };
            if let Some(below) = known.and_then(|decl| Self::compile(property, &decl)) {
                node.properties.insert(name.clone(), below);
            }
        }
        let below = |name: &str| {
            let decl = decl.element_decl()?;
            Self::compile(&schema[name], decl).map(Box::new)
        };
        node.additional = below("additionalProperties");
        node.items = below("items");
        if text("x-kubernetes-list-type") == "map" {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let keys = keys.into_iter().flatten().filter_map(Json::as_str);
            node.keys = Some(keys.map(str::to_owned).collect());
        }
        let is_empty = node.rules.is_empty()
            && node.properties.is_empty()
            && node.additional.is_none()
            && node.items.is_none();
        (!is_empty).then_some(node)
    }
}

fn is_embedded(schema: &Json) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

/// Declares the variables of the rules of a schema node.
fn environment(decl: &Arc<Decl>, optional_old_self: bool) -> Environment {
    let environment = Environment::new().with("self", decl.clone());
    match optional_old_self {
        true => environment.with_optional("oldSelf", decl.clone()),
        false => environment.with("oldSelf", decl.clone()),
    }
}

/// The expressions of a rule, compiled.
struct Expressions {
    rule: Result<Program, String>,
    message: Option<Result<Program, String>>,
}

/// Compiles the expressions of a rule of a schema node with a declaration. Returns `None` for an
/// empty rule.
fn expressions(rule: &Json, decl: &Arc<Decl>) -> Option<Expressions> {
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    if text("rule").trim().is_empty() {
        return None;
    }
    let environment = environment(decl, rule["optionalOldSelf"] == true);
    let compiled = match environment.compile(text("rule")) {
        Err(error) => Err(format!("compilation failed: {error}")),
        Ok(program) if program.result_type() != ResultType::Bool => {
            Err("cel expression must evaluate to a bool".to_owned())
        }
        Ok(program) => match program.check_constants() {
            Err(error) => Err(format!("program instantiation failed: {error}")),
            Ok(()) => Ok(program),
        },
    };
    let message = match (text("messageExpression"), &compiled) {
        ("", _) | (_, Err(_)) => None,
        (source, Ok(_)) => Some(match environment.compile(source) {
            Err(error) => Err(format!("messageExpression compilation failed: {error}")),
            Ok(program) if program.result_type() != ResultType::String => {
                Err("messageExpression must evaluate to a string".to_owned())
            }
            Ok(program) => Ok(program),
        }),
    };
    Some(Expressions {
        rule: compiled,
        message,
    })
}

impl Rule {
    fn compile(rule: &Json, schema: &Json, decl: &Arc<Decl>) -> Option<Self> {
        let text = |name: &str| rule[name].as_str().unwrap_or_default();
        let compiled = expressions(rule, decl)?;
        let message_expression = compiled.message.and_then(Result::ok);
        Some(Self {
            source: text("rule").to_owned(),
            message: text("message").to_owned(),
            message_expression: message_expression
                .map(|program| (text("messageExpression").to_owned(), program)),
            reason: text("reason").to_owned(),
            field_path: match text("fieldPath") {
                "" => None,
                path => field_path::normalize(path, schema).ok(),
            },
            optional_old_self: rule["optionalOldSelf"] == true,
            program: compiled.rule.map_err(CompileError),
        })
    }

    /// The name of the rule in messages: its message, or its source.
    fn name(&self) -> &str {
        match self.message.is_empty() {
            true => self.source.trim(),
            false => self.message.trim(),
        }
    }

    fn uses_old_self(&self) -> bool {
        self.program
            .as_ref()
            .is_ok_and(|program| program.uses("oldSelf"))
    }
}
