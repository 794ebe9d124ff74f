//! The rules of ValidatingAdmissionPolicies.

use longshore_builtin::json;
use longshore_cel::{CompileError, Compiler, Expression, Returns};
use serde_json::{Map, Value};

use super::policy::Rules;

type Compiled = Result<Expression, CompileError>;

/// The validations and audit annotations of a policy.
#[derive(Debug)]
pub(in crate::webhooks) struct Validations {
    pub(in crate::webhooks) validations: Vec<Validation>,
    pub(in crate::webhooks) annotations: Vec<Annotation>,
}

#[derive(Debug)]
pub(in crate::webhooks) struct Validation {
    pub(in crate::webhooks) source: String,
    pub(in crate::webhooks) expression: Compiled,
    pub(in crate::webhooks) message: String,
    pub(in crate::webhooks) message_expression: Option<Compiled>,
    pub(in crate::webhooks) reason: String,
}

#[derive(Debug)]
pub(in crate::webhooks) struct Annotation {
    pub(in crate::webhooks) key: String,
    pub(in crate::webhooks) source: String,
    pub(in crate::webhooks) expression: Compiled,
}

impl Rules for Validations {
    fn read(spec: &Map<String, Value>, compiler: &Compiler) -> Self {
        let messages = compiler.without_authorizer();
        let validations = json::items(spec, "validations").map(|one| {
            let text = |field: &str| json::text(one, field);
            let message = Some(text("messageExpression")).filter(|source| !source.is_empty());
            Validation {
                source: text("expression").to_owned(),
                expression: compiler.compile(text("expression"), Returns::Bool),
                message: text("message").to_owned(),
                message_expression: message.map(|one| messages.compile(one, Returns::String)),
                reason: text("reason").to_owned(),
            }
        });
        let annotations = json::items(spec, "auditAnnotations").map(|one| {
            let source = json::text(one, "valueExpression").to_owned();
            let expression = compiler.compile(&source, Returns::StringOrNull);
            Annotation {
                key: json::text(one, "key").to_owned(),
                source,
                expression,
            }
        });
        Self {
            validations: validations.collect(),
            annotations: annotations.collect(),
        }
    }
}
