//! Compiled expressions.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::{
    ast::Expr,
    check,
    decl::Decl,
    error::EvalError,
    estimate, eval,
    meter::{COST_PER_CALL, Meter},
    parser,
    source::describe,
    stack,
    types::Type,
    value::{Text, Value, from_json},
};

/// Kubernetes' limit of the cost of all rules of an object.
pub const COST_PER_OBJECT: u64 = 10_000_000;

/// Maximum depth of expressions that need no larger stack.
const SHALLOW: usize = 32;

const NO_THREAD: &str = "no thread can be started for an expression of this depth";

/// The reasons why an expression cannot be compiled: each problem with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(pub(crate) String);

/// The variables that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: Vec<Variable>,
}

#[derive(Debug, Clone)]
struct Variable {
    name: String,
    decl: Arc<Decl>,
    is_optional: bool,
}

impl Environment {
    /// An environment without variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable.
    #[must_use]
    pub fn with(mut self, name: &str, decl: Arc<Decl>) -> Self {
        self.variables.push(Variable {
            name: name.to_owned(),
            decl,
            is_optional: false,
        });
        self
    }

    /// Adds a variable whose value is optional.
    #[must_use]
    pub fn with_optional(mut self, name: &str, decl: Arc<Decl>) -> Self {
        self.variables.push(Variable {
            name: name.to_owned(),
            decl,
            is_optional: true,
        });
        self
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// Returns the problems of the expression.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        // Each level of nesting takes an operator or a bracket.
        let is_word = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '\'' | '"');
        let levels =
            source.chars().filter(|c| !is_word(c)).count() + source.matches(" in ").count();
        stack::run(levels <= SHALLOW, || self.compile_here(source))
            .unwrap_or_else(|| Err(CompileError(NO_THREAD.to_owned())))
    }

    fn compile_here(&self, source: &str) -> Result<Program, CompileError> {
        let parsed =
            parser::parse(source).map_err(|problems| CompileError(describe(source, &problems)))?;
        let variables: Vec<(String, Type)> = self
            .variables
            .iter()
            .map(|variable| {
                let of = Type::of(&variable.decl);
                let of = match variable.is_optional {
                    true => Type::optional(of),
                    false => of,
                };
                (variable.name.clone(), of)
            })
            .collect();
        let checked = check::check(&parsed.root, parsed.nodes, &variables, false)
            .map_err(|problems| CompileError(describe(source, &problems)))?;
        let declared: Vec<(&str, &Decl)> = self
            .variables
            .iter()
            .map(|variable| (&*variable.name, &*variable.decl))
            .collect();
        let result = match checked.types.get(parsed.root.id) {
            Some(Type::Bool) => ResultType::Bool,
            Some(Type::String) => ResultType::String,
            Some(Type::Dyn) => ResultType::Dyn,
            _ => ResultType::Other,
        };
        Ok(Program {
            max_cost: estimate::max_cost(&parsed.root, &checked.types, &declared),
            root: parsed.root,
            uses: checked.uses,
            variables: self.variables.clone(),
            result,
        })
    }
}

/// The type of the result of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultType {
    /// A boolean.
    Bool,
    /// A string.
    String,
    /// The type is known only when the expression is evaluated.
    Dyn,
    /// Another type.
    Other,
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    root: Expr,
    uses: Vec<String>,
    variables: Vec<Variable>,
    result: ResultType,
    max_cost: u64,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A boolean.
    Bool(bool),
    /// A string.
    String(String),
    /// A value of another type, represented by the name of its type.
    Other(&'static str),
}

/// The result and the cost of an evaluation.
#[derive(Debug)]
pub struct Evaluation {
    /// The value, or the reason why the expression has none.
    pub result: Result<Outcome, EvalError>,
    /// The cost in the units of Kubernetes.
    pub cost: u64,
}

impl Program {
    /// The type of the result.
    #[must_use]
    pub fn result_type(&self) -> ResultType {
        self.result
    }

    /// Evaluates the conversions of constants.
    ///
    /// # Errors
    /// Returns the first error. An expression with such an error never has a value.
    pub fn check_constants(&self) -> Result<(), EvalError> {
        stack::run(self.root.height <= SHALLOW, || self.evaluate_constants())
            .unwrap_or_else(|| Err(EvalError::new(NO_THREAD)))
    }

    fn evaluate_constants(&self) -> Result<(), EvalError> {
        let mut left = vec![&self.root];
        while let Some(expr) = left.pop() {
            if expr.is_constant {
                eval::evaluate(expr, &[], None, &mut Meter::new(COST_PER_CALL))?;
            } else {
                left.extend(expr.children());
            }
        }
        Ok(())
    }

    /// Returns true if the expression uses a variable.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        self.uses.iter().any(|used| used == name)
    }

    /// The highest cost that an evaluation can have, as Kubernetes estimates it
    /// from the limits in the schemas of the variables.
    #[must_use]
    pub fn max_cost(&self) -> u64 {
        self.max_cost
    }

    /// Evaluates the expression. `inputs` are the values of the variables; a
    /// variable without a value is null, or an empty optional. The evaluation
    /// stops when its cost exceeds `limit`.
    #[must_use]
    pub fn evaluate(&self, inputs: &[(&str, Option<&Json>)], limit: u64) -> Evaluation {
        let work = || {
            let mut meter = Meter::new(limit);
            let result = self.run(inputs, &mut meter);
            Evaluation {
                result,
                cost: meter.cost(),
            }
        };
        stack::run(self.root.height <= SHALLOW, work).unwrap_or_else(|| Evaluation {
            result: Err(EvalError::new(NO_THREAD)),
            cost: 0,
        })
    }

    fn run(
        &self,
        inputs: &[(&str, Option<&Json>)],
        meter: &mut Meter,
    ) -> Result<Outcome, EvalError> {
        let mut values = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            if !self.uses(&variable.name) {
                continue;
            }
            let input = inputs.iter().find(|(name, _)| *name == variable.name);
            let json = input.and_then(|(_, json)| *json);
            let value = json
                .map(|json| from_json(json, &variable.decl))
                .transpose()?;
            let value = match (value, variable.is_optional) {
                (Some(value), true) => Value::some(value),
                (None, true) => Value::Optional(None),
                (value, false) => value.unwrap_or(Value::Null),
            };
            values.push((&*variable.name, value));
        }
        Ok(match eval::evaluate(&self.root, &values, None, meter)? {
            Value::Bool(flag) => Outcome::Bool(flag),
            Value::String(Text::Part(text)) => Outcome::String(text.to_owned()),
            Value::String(text) => Outcome::String(text.to_string()),
            other => Outcome::Other(other.type_name()),
        })
    }
}
