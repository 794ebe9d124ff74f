//! Expressions of admission webhooks and policies. An expression may read the variables of its
//! policy, which are also expressions.

mod declarations;
mod evaluation;
mod output;

use std::{collections::BTreeMap, sync::Arc};

pub use evaluation::AdmissionInputs;
pub use output::Output;

use self::declarations::{namespace, request};
use crate::{
    ast::{Expr, Kind},
    check,
    decl::Decl,
    eval::Definitions,
    names::{AUTHORIZER, JSON_PATCH, OBJECT},
    parser,
    program::CompileError,
    source::describe,
    stack,
    types::{Opaque, Type},
};

/// Kubernetes' limit of the cost of all validations of a policy.
pub const COST_OF_POLICY: u64 = 10_000_000;

/// The name by which expressions read the variables of their policy.
const VARIABLES: &str = "variables";

/// Maximum nesting of the expressions of variables that read each other.
const MAX_COMPOSED_HEIGHT: usize = 1000;

/// Maximum depth of expressions that need no larger stack.
const SHALLOW: usize = 32;

/// The type that an expression must return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// A boolean.
    Bool,
    /// A string.
    String,
    /// A string or null.
    StringOrNull,
    /// Anything.
    Any,
    /// An `Object`.
    Object,
    /// A list of `JSONPatch`.
    Patch,
}

impl Returns {
    fn accepts(self, found: &Type) -> bool {
        match (self, found) {
            (Self::Any, _)
            | (Self::Bool, Type::Bool)
            | (Self::String | Self::StringOrNull, Type::String)
            | (Self::StringOrNull, Type::Null) => true,
            (Self::Object, Type::Struct(name)) => **name == *OBJECT,
            (Self::Patch, Type::List(items)) => {
                matches!(&**items, Type::Struct(name) if **name == *JSON_PATCH)
            }
            _ => false,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Bool => "must evaluate to bool",
            Self::String => "must evaluate to string",
            Self::StringOrNull => "must evaluate to one of [string null_type]",
            Self::Any => "must evaluate to any",
            Self::Object => "must evaluate to Object",
            Self::Patch => "must evaluate to list(JSONPatch)",
        }
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    root: Expr,
    source: String,
    /// The height, including the variables that the expression reads.
    height: usize,
}

/// The variables of a policy, compiled.
#[derive(Debug, Default)]
pub struct Variables {
    definitions: Definitions,
}

/// Compiles the expressions of a webhook or policy.
#[derive(Debug, Clone)]
pub struct Compiler {
    inputs: Vec<(String, Type)>,
    /// True if expressions may construct objects and patches.
    constructs: bool,
    /// The types of the variables, if the policy may have any.
    composed: Option<Arc<BTreeMap<String, Type>>>,
    /// The heights of the variables.
    heights: Arc<BTreeMap<String, usize>>,
}

impl Compiler {
    /// A compiler for objects of any kind, whose fields are checked only when they
    /// are read.
    #[must_use]
    pub fn new() -> Self {
        Self::with_objects(&Decl::any())
    }

    /// A compiler for objects with a declaration.
    #[must_use]
    pub fn with_objects(object: &Arc<Decl>) -> Self {
        let input = |name: &str, decl: &Arc<Decl>| (name.to_owned(), Type::of(decl));
        Self {
            inputs: vec![
                input("object", object),
                input("oldObject", object),
                input("namespaceObject", &namespace()),
                input("request", &request()),
            ],
            constructs: false,
            composed: None,
            heights: Arc::default(),
        }
    }

    /// Declares `params`.
    #[must_use]
    pub fn with_params(mut self, decl: &Arc<Decl>) -> Self {
        self.inputs.push(("params".to_owned(), Type::of(decl)));
        self
    }

    /// Declares `authorizer`.
    #[must_use]
    pub fn with_authorizer(mut self) -> Self {
        let authorizer = Type::Opaque(Opaque::Authorizer);
        self.inputs.push((AUTHORIZER.to_owned(), authorizer));
        self
    }

    /// Declares `variables`, even if the policy has none.
    #[must_use]
    pub fn with_variables(mut self) -> Self {
        self.composed.get_or_insert_default();
        self
    }

    /// Lets expressions construct objects and patches.
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.constructs = true;
        self
    }

    /// The same compiler without `authorizer`.
    #[must_use]
    pub fn without_authorizer(&self) -> Self {
        let mut other = self.clone();
        other.inputs.retain(|(name, _)| name != AUTHORIZER);
        other
    }

    /// Compiles a variable, which later expressions can read even if it has an
    /// error.
    ///
    /// # Errors
    /// Returns the problems of the expression.
    pub fn add(
        &mut self,
        variables: &mut Variables,
        name: &str,
        source: &str,
    ) -> Result<(), CompileError> {
        let compiled = self.checked(source);
        let (result, found, height) = match compiled {
            Ok((root, found, height)) => (Ok(root), found, height),
            Err(error) => (Err(error), Type::Dyn, 1),
        };
        let composed = self.composed.get_or_insert_default();
        Arc::make_mut(composed).insert(name.to_owned(), as_variable(&found));
        Arc::make_mut(&mut self.heights).insert(name.to_owned(), height);
        let problem = result.as_ref().err().cloned();
        let root = result.map_err(|error| error.to_string());
        variables.definitions.add(name, root);
        problem.map_or(Ok(()), Err)
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// Returns the problems of the expression.
    pub fn compile(&self, source: &str, returns: Returns) -> Result<Expression, CompileError> {
        let (root, found, height) = self.checked(source)?;
        if !returns.accepts(&found) {
            let expected = returns.expected();
            let found = match found {
                Type::Null => "null_type".to_owned(),
                found => found.to_string(),
            };
            return Err(CompileError(format!("{expected} but got {found}")));
        }
        Ok(Expression {
            root,
            source: source.to_owned(),
            height,
        })
    }

    /// Checks the types of an expression, which may return anything.
    ///
    /// # Errors
    /// Returns the problems, each with its position.
    pub fn check_types(&self, source: &str) -> Result<(), CompileError> {
        self.analyze(source).map(drop)
    }

    fn checked(&self, source: &str) -> Result<(Expr, Type, usize), CompileError> {
        self.analyze(source)
            .map_err(|error| CompileError(format!("compilation failed: {error}")))
    }

    fn analyze(&self, source: &str) -> Result<(Expr, Type, usize), CompileError> {
        // Each level of nesting takes an operator or a bracket.
        let is_word = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '\'' | '"');
        let levels =
            source.chars().filter(|c| !is_word(c)).count() + source.matches(" in ").count();
        let analyzed = stack::run(levels <= SHALLOW, || self.analyze_here(source));
        analyzed.unwrap_or_else(|| {
            let problem = "no thread can be started for an expression of this depth";
            Err(CompileError(problem.to_owned()))
        })
    }

    fn analyze_here(&self, source: &str) -> Result<(Expr, Type, usize), CompileError> {
        let problems = |problems: Vec<_>| CompileError(describe(source, &problems));
        let parsed = parser::parse(source).map_err(problems)?;
        let mut inputs = self.inputs.clone();
        if let Some(composed) = &self.composed {
            inputs.push((VARIABLES.to_owned(), Type::Variables(composed.clone())));
        }
        let checked =
            check::check(&parsed.root, parsed.nodes, &inputs, self.constructs).map_err(problems)?;
        let height = self.height(&parsed.root);
        if height > MAX_COMPOSED_HEIGHT {
            return Err(CompileError(format!(
                "expression recursion limit exceeded with its variables: {MAX_COMPOSED_HEIGHT}"
            )));
        }
        let found = checked.types.get(parsed.root.id).cloned();
        Ok((parsed.root, found.unwrap_or(Type::Dyn), height))
    }

    /// The height of an expression with the variables that it reads.
    fn height(&self, root: &Expr) -> usize {
        let mut below = 0;
        let mut left = vec![root];
        while let Some(expr) = left.pop() {
            if let Kind::Select { operand, field, .. } = &expr.kind
                && matches!(&operand.kind, Kind::Ident(name) if name == VARIABLES)
            {
                below = below.max(self.heights.get(field).copied().unwrap_or_default());
            }
            left.extend(expr.children());
        }
        root.height.saturating_add(below)
    }
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the type of a variable as other expressions see it: the fields of objects are not known.
fn as_variable(found: &Type) -> Type {
    match found {
        Type::List(items) => Type::list(as_variable(items)),
        Type::Map(key, value) => Type::map(as_variable(key), as_variable(value)),
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => found.clone(),
        _ => Type::Dyn,
    }
}
