//! Compiles the expressions of a policy.

use longshore_cel::{Compiler, Decl, Returns, Variables, is_identifier};

use crate::{
    cause::Cause,
    validate::{
        field_value::{Causes, FieldValue},
        webhook,
    },
};

const MAX_AUDIT_EXPRESSION_BYTES: usize = 5 * 1024;

/// The compiler of the expressions of a policy.
pub(super) struct Expressions {
    compiler: Compiler,
    variables: Variables,
}

impl Expressions {
    pub(super) fn new(has_params: bool, is_mutating: bool) -> Self {
        let mut compiler = Compiler::new().with_authorizer();
        if has_params {
            compiler = compiler.with_params(&Decl::any());
        }
        if is_mutating {
            compiler = compiler.with_variables();
        }
        Self {
            compiler,
            variables: Variables::default(),
        }
    }

    /// Validates match conditions, which cannot use the variables of the policy.
    pub(super) fn conditions(&self, conditions: &FieldValue<'_>, causes: &mut Causes<'_>) {
        webhook::check_conditions(conditions, causes, &|source| {
            let compiled = self.compiler.compile(source, Returns::Bool);
            compiled.map(drop).map_err(|error| error.to_string())
        });
    }

    pub(super) fn variable(&mut self, variable: &FieldValue<'_>, causes: &mut Causes<'_>) {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            causes.required(&name, "name is not specified");
        } else if !is_identifier(name.text()) {
            causes.invalid(&name, "must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            return causes.required(&expression, "expression is not specified");
        }
        let source = expression.text();
        let added = self.compiler.add(&mut self.variables, name.text(), source);
        if let Err(error) = added {
            causes.invalid(&expression, &error.to_string());
        }
    }

    pub(super) fn validation(&self, expression: &FieldValue<'_>, causes: &mut Causes<'_>) {
        if expression.text().trim().is_empty() {
            return causes.required(expression, "expression is not specified");
        }
        let compiled = self.compiler.compile(expression.text(), Returns::Bool);
        if let Err(error) = compiled {
            causes.invalid(expression, &error.to_string());
        }
    }

    /// Validates an optional message, which cannot use the authorizer.
    pub(super) fn message(&self, expression: &FieldValue<'_>, causes: &mut Causes<'_>) {
        if expression.text().is_empty() {
            return;
        }
        if expression.text().trim().is_empty() {
            return causes.invalid(expression, "must be non-empty if specified");
        }
        let compiler = self.compiler.without_authorizer();
        if let Err(error) = compiler.compile(expression.text(), Returns::String) {
            causes.invalid(expression, &error.to_string());
        }
    }

    pub(super) fn audit_annotation(&self, expression: &FieldValue<'_>, causes: &mut Causes<'_>) {
        let source = expression.text().trim();
        if source.is_empty() {
            return causes.required(expression, "valueExpression is not specified");
        }
        if source.len() > MAX_AUDIT_EXPRESSION_BYTES {
            let detail = format!("must not exceed {MAX_AUDIT_EXPRESSION_BYTES} bytes in length");
            return causes.required(expression, &detail);
        }
        if let Err(error) = self.compiler.compile(source, Returns::StringOrNull) {
            causes.invalid(expression, &error.to_string());
        }
    }

    /// Validates the expression of a JSON patch or of an apply configuration.
    pub(super) fn patch(
        &self,
        expression: &FieldValue<'_>,
        is_json_patch: bool,
        causes: &mut Causes<'_>,
    ) {
        let source = expression.text().trim();
        if source.is_empty() {
            return causes.required(expression, "");
        }
        let returns = match is_json_patch {
            true => Returns::Patch,
            false => Returns::Object,
        };
        let compiler = self.compiler.clone().with_patch_types();
        if let Err(error) = compiler.compile(source, returns) {
            let cause = Cause::invalid(&expression.path, source, &error.to_string());
            causes.0.push(cause);
        }
    }
}
