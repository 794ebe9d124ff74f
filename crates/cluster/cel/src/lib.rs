//! The Common Expression Language (CEL) as Kubernetes 1.37 uses it.
//!
//! An expression is compiled once against the declarations of its variables, which are read from a
//! structural schema, and then evaluated on JSON values. Both the expressions and the values are
//! untrusted: the size and nesting of expressions are limited, and every evaluation has a budget
//! that bounds its time and memory. The costs equal Kubernetes'.
//!
//! ```
//! use longshore_cel::{Decl, Environment, Outcome};
//!
//! let schema = serde_json::json!({"type": "object", "properties": {
//!     "replicas": {"type": "integer"}, "limit": {"type": "integer"},
//! }});
//! let decl = Decl::of_schema(&schema, false).unwrap();
//! let rule = Environment::new().with("self", decl).compile("self.replicas <= self.limit").unwrap();
//! let object = serde_json::json!({"replicas": 3, "limit": 2});
//! let evaluation = rule.evaluate(&[("self", Some(&object))], 1000);
//! assert_eq!(evaluation.result, Ok(Outcome::Bool(false)));
//! ```
//!
//! The crate `cel` of crates.io has no cost budget for evaluations, does not check types, and does
//! not limit the depth of chains in its parser.

mod admission;
mod ast;
mod authorizer;
mod check;
mod condition;
mod decl;
mod error;
mod escape;
mod estimate;
mod eval;
mod lexer;
mod library;
mod meter;
mod names;
mod parser;
mod program;
pub mod rules;
mod signatures;
mod source;
mod stack;
mod types;
mod value;

pub use admission::{
    AdmissionInputs, COST_OF_POLICY, Compiler, Expression, Output, Returns, Variables,
};
pub use authorizer::{AccessDecision, AccessRequest, Authorizer};
pub use condition::{COST_OF_CONDITIONS, Conditions, Matched, check_condition};
pub use decl::Decl;
pub use error::EvalError;
pub use escape::is_identifier;
pub use meter::COST_PER_CALL;
pub use program::{
    COST_PER_OBJECT, CompileError, Environment, Evaluation, Outcome, Program, ResultType,
};
