//! Match conditions of admission webhooks and policies: expressions that decide
//! which requests they apply to.

use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use crate::{
    decl::Decl,
    error::EvalError,
    program::{COST_PER_CALL, CompileError, Environment, Outcome, Program, ResultType},
};

/// Kubernetes' limit of the cost of all match conditions of a webhook or policy.
pub const COST_OF_CONDITIONS: u64 = 2_500_000;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The values of the variables in an admission expression.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdmissionInputs<'a> {
    /// `request`: an `AdmissionRequest` without the objects.
    pub request: Option<&'a Json>,
    /// `object`: the new object; null for deletes.
    pub object: Option<&'a Json>,
    /// `oldObject`: the existing object; null for creates.
    pub old_object: Option<&'a Json>,
}

/// Match conditions, compiled.
#[derive(Debug)]
pub struct Conditions {
    conditions: Vec<Condition>,
}

#[derive(Debug)]
struct Condition {
    name: String,
    source: String,
    program: Result<Program, CompileError>,
}

/// Whether conditions match a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// All conditions are true.
    Yes,
    /// This condition is false.
    No {
        /// The name of the condition.
        condition: String,
    },
    /// No condition is false, but some have no value. The failure policy
    /// decides.
    Unknown {
        /// The errors.
        error: String,
    },
}

/// The variables of admission expressions. Objects of any kind have no
/// declaration, so their fields are checked only when they are read.
fn environment() -> &'static Environment {
    static SHARED: OnceLock<Environment> = OnceLock::new();
    SHARED.get_or_init(|| {
        Environment::new()
            .with("object", Decl::any())
            .with("oldObject", Decl::any())
            .with("request", request())
    })
}

fn request() -> Arc<Decl> {
    let text = Decl::string;
    let kind = Decl::object(&[("group", text()), ("version", text()), ("kind", text())]);
    let resource = Decl::object(&[("group", text()), ("version", text()), ("resource", text())]);
    let user = Decl::object(&[
        ("username", text()),
        ("uid", text()),
        ("groups", Decl::list(text())),
        ("extra", Decl::map(Decl::list(text()))),
    ]);
    Decl::object(&[
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", text()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", Decl::bool()),
        ("options", Decl::any()),
    ])
}

fn compile(source: &str) -> Result<Program, CompileError> {
    let program = environment()
        .compile(source)
        .map_err(|error| CompileError(format!("compilation failed: {error}")))?;
    match program.result_type() {
        ResultType::Bool | ResultType::Dyn => Ok(program),
        _ => Err(CompileError("must evaluate to bool".to_owned())),
    }
}

/// Checks the expression of a match condition.
///
/// # Errors
/// Returns the problems of the expression.
pub fn check_condition(expression: &str) -> Result<(), CompileError> {
    compile(expression).map(drop)
}

impl Conditions {
    /// Compiles conditions: pairs of a name and an expression. A condition that
    /// cannot be compiled has no value.
    #[must_use]
    pub fn compile<'c>(conditions: impl IntoIterator<Item = (&'c str, &'c str)>) -> Self {
        let conditions = conditions.into_iter().map(|(name, source)| Condition {
            name: name.to_owned(),
            source: source.to_owned(),
            program: compile(source),
        });
        Self {
            conditions: conditions.collect(),
        }
    }

    /// Decides whether the conditions match a request.
    #[must_use]
    pub fn evaluate(&self, inputs: &AdmissionInputs<'_>) -> Matched {
        let inputs = [
            ("request", inputs.request),
            ("object", inputs.object),
            ("oldObject", inputs.old_object),
        ];
        let mut budget = COST_OF_CONDITIONS;
        let mut errors: Vec<String> = Vec::new();
        for condition in &self.conditions {
            let program = match &condition.program {
                Ok(program) => program,
                Err(error) => {
                    errors.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            let evaluation = program.evaluate(&inputs, COST_PER_CALL.min(budget));
            let Some(left) = budget.checked_sub(evaluation.cost) else {
                let error = OUT_OF_BUDGET.to_owned();
                return Matched::Unknown { error };
            };
            budget = left;
            let failed = match evaluation.result {
                Ok(Outcome::Bool(true)) => continue,
                Ok(Outcome::Bool(false)) => {
                    let condition = condition.name.clone();
                    return Matched::No { condition };
                }
                Ok(_) => EvalError::NoSuchOverload,
                Err(error) => error,
            };
            let source = &condition.source;
            errors.push(format!("expression '{source}' resulted in error: {failed}"));
        }
        match &*errors {
            [] => Matched::Yes,
            [error] => Matched::Unknown {
                error: error.clone(),
            },
            errors => Matched::Unknown {
                error: format!("[{}]", errors.join(", ")),
            },
        }
    }
}
