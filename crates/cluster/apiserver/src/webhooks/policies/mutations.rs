//! The rules of MutatingAdmissionPolicies.

use longshore_builtin::json;
use longshore_cel::{CompileError, Compiler, Expression, Returns};
use serde_json::{Map, Value};

use super::policy::Rules;

type Compiled = Result<Expression, CompileError>;

/// The mutations of a policy.
#[derive(Debug)]
pub(in crate::webhooks) struct Mutations {
    pub(in crate::webhooks) mutations: Vec<Mutation>,
    /// True if the policy is evaluated again after later changes.
    pub(in crate::webhooks) is_reinvoked: bool,
}

#[derive(Debug)]
pub(in crate::webhooks) struct Mutation {
    pub(in crate::webhooks) is_json_patch: bool,
    pub(in crate::webhooks) expression: Compiled,
}

impl Rules for Mutations {
    fn read(spec: &Map<String, Value>, compiler: &Compiler) -> Self {
        let compiler = compiler.clone().with_patch_types();
        let mutations = json::items(spec, "mutations").map(|one| {
            let is_json_patch = json::text(one, "patchType") == "JSONPatch";
            let (source, returns) = match is_json_patch {
                true => ("jsonPatch.expression", Returns::Patch),
                false => ("applyConfiguration.expression", Returns::Object),
            };
            Mutation {
                is_json_patch,
                expression: compiler.compile(json::text(one, source), returns),
            }
        });
        Self {
            mutations: mutations.collect(),
            is_reinvoked: json::text(spec, "reinvocationPolicy") == "IfNeeded",
        }
    }
}
