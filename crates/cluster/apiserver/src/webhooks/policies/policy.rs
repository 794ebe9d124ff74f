//! Compiled policies.

use longshore_builtin::json;
use longshore_cel::{Compiler, Conditions, Decl, Variables};
use longshore_engine::Object;
use serde_json::{Map, Value};

use super::{matching::Resources, params::ParamKind};

/// The rules by which a policy checks or changes requests.
pub(in crate::webhooks) trait Rules: std::fmt::Debug {
    /// Reads the rules of a policy.
    fn read(spec: &Map<String, Value>, compiler: &Compiler) -> Self;
}

/// A policy.
#[derive(Debug)]
pub(in crate::webhooks) struct Policy<R> {
    pub(in crate::webhooks) name: String,
    pub(in crate::webhooks) revision: u64,
    pub(in crate::webhooks) resources: Resources,
    pub(in crate::webhooks) params: Option<ParamKind>,
    pub(in crate::webhooks) ignores_failures: bool,
    pub(in crate::webhooks) conditions: Conditions,
    pub(in crate::webhooks) variables: Variables,
    pub(in crate::webhooks) rules: R,
}

impl<R: Rules> Policy<R> {
    pub(in crate::webhooks) fn read(object: &Object) -> Self {
        let value = object.value();
        let empty = Map::new();
        let spec = value["spec"].as_object().unwrap_or(&empty);
        let child = |field: &str| spec.get(field).and_then(Value::as_object);
        let mut compiler = Compiler::new().with_authorizer().with_variables();
        let params = child("paramKind").map(ParamKind::read);
        if params.is_some() {
            compiler = compiler.with_params(&Decl::any());
        }
        let mut variables = Variables::default();
        for variable in json::items(spec, "variables") {
            let text = |field: &str| json::text(variable, field);
            // Expressions that read the variable report the error.
            let _ = compiler.add(&mut variables, text("name"), text("expression"));
        }
        let conditions = json::items(spec, "matchConditions")
            .map(|one| (json::text(one, "name"), json::text(one, "expression")));
        Self {
            name: object.name().to_owned(),
            revision: object.revision(),
            resources: child("matchConstraints")
                .map(Resources::read)
                .unwrap_or_default(),
            params,
            ignores_failures: json::text(spec, "failurePolicy") == "Ignore",
            conditions: Conditions::compile_with(&compiler, conditions),
            variables,
            rules: R::read(spec, &compiler),
        }
    }
}
