//! Match conditions of admission webhooks and policies: expressions that decide
//! which requests they apply to.

use std::sync::OnceLock;

use crate::{
    admission::{AdmissionInputs, Compiler, Expression, Output, Returns, Variables},
    program::CompileError,
};

/// Kubernetes' limit of the cost of all match conditions of a webhook or policy.
pub const COST_OF_CONDITIONS: u64 = 2_500_000;

/// Match conditions, compiled.
#[derive(Debug)]
pub struct Conditions {
    conditions: Vec<Condition>,
}

#[derive(Debug)]
struct Condition {
    name: String,
    expression: Result<Expression, CompileError>,
}

/// The result of matching a request against conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// All conditions are true.
    Yes,
    /// This condition is false.
    No {
        /// The name of the condition.
        condition: String,
    },
    /// No condition is false, but some have no value. The failure policy decides.
    Unknown {
        /// The errors.
        error: String,
    },
}

/// The variables of match conditions.
fn compiler() -> &'static Compiler {
    static SHARED: OnceLock<Compiler> = OnceLock::new();
    SHARED.get_or_init(|| Compiler::new().with_authorizer())
}

/// Checks the expression of a match condition.
///
/// # Errors
/// Returns the problems of the expression.
pub fn check_condition(expression: &str) -> Result<(), CompileError> {
    compiler().compile(expression, Returns::Bool).map(drop)
}

impl Conditions {
    /// Compiles conditions of a webhook: pairs of a name and an expression. A
    /// condition that cannot be compiled has no value.
    #[must_use]
    pub fn compile<'c>(conditions: impl IntoIterator<Item = (&'c str, &'c str)>) -> Self {
        Self::compile_with(compiler(), conditions)
    }

    /// Like [`Conditions::compile`], with the compiler of a policy.
    #[must_use]
    pub fn compile_with<'c>(
        compiler: &Compiler,
        conditions: impl IntoIterator<Item = (&'c str, &'c str)>,
    ) -> Self {
        let conditions = conditions.into_iter().map(|(name, source)| Condition {
            name: name.to_owned(),
            expression: compiler.compile(source, Returns::Bool),
        });
        Self {
            conditions: conditions.collect(),
        }
    }

    /// Matches the conditions against a request.
    #[must_use]
    pub fn evaluate(&self, inputs: &AdmissionInputs<'_>) -> Matched {
        self.evaluate_with(&Variables::default(), inputs)
    }

    /// Like [`Conditions::evaluate`], with the variables of a policy.
    #[must_use]
    pub fn evaluate_with(&self, variables: &Variables, inputs: &AdmissionInputs<'_>) -> Matched {
        let expressions: Vec<_> = self
            .conditions
            .iter()
            .map(|one| Some(&one.expression))
            .collect();
        let results = match inputs.evaluate(variables, &expressions, COST_OF_CONDITIONS) {
            Ok((results, _)) => results,
            Err(error) => return Matched::Unknown { error },
        };
        let mut errors: Vec<String> = Vec::new();
        for (condition, result) in self.conditions.iter().zip(results) {
            match result {
                Ok(Output::Bool(false)) => {
                    let condition = condition.name.clone();
                    return Matched::No { condition };
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
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
