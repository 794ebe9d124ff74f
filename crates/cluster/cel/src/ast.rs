//! Syntax trees of expressions.

/// A node with its position in the source.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    /// Index of the node among all nodes of the expression.
    pub(crate) id: usize,
    /// Position in characters.
    pub(crate) at: usize,
    /// Height of the tree below, which is limited.
    pub(crate) height: usize,
    /// True if the node is a literal, or a list or map of literals.
    pub(crate) is_constant: bool,
    pub(crate) kind: Kind,
}

/// The kind of a node.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    Select {
        operand: Box<Expr>,
        field: String,
        /// `has(operand.field)`.
        test: bool,
        /// `operand.?field`.
        optional: bool,
    },
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// The elements. The flag is set for optional elements.
    List(Vec<(Expr, bool)>),
    /// Keys and values. The flag is set for optional entries.
    Map(Vec<(Expr, Expr, bool)>),
    /// A construction of a named type. The flag is set for optional fields.
    Struct {
        name: String,
        fields: Vec<(String, Expr, bool)>,
    },
    Comprehension(Box<Comprehension>),
    /// `target.optMap(var, body)`, or `optFlatMap` if `flat` is set.
    OptMap {
        target: Box<Expr>,
        var: String,
        body: Box<Expr>,
        flat: bool,
    },
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// A macro that iterates over a list or a map.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) name: Macro,
    pub(crate) range: Expr,
    pub(crate) var: String,
    pub(crate) var2: Option<String>,
    /// The condition of `map` and of the `transform` macros.
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

/// The macros that iterate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// `map` and `transformList`.
    Map,
    TransformMap,
    TransformMapEntry,
    SortBy,
}

impl Expr {
    /// Returns the dotted name that the expression spells; `None` for other expressions.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select {
                operand,
                field,
                test: false,
                optional: false,
            } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }

    /// Returns true if the expression is a variable, or a field or an item of one.
    pub(crate) fn is_attribute(&self) -> bool {
        match &self.kind {
            Kind::Ident(_) => true,
            Kind::Select {
                test: false,
                optional: false,
                ..
            } => true,
            Kind::Call { function, .. } => function == "_[_]",
            _ => false,
        }
    }

    /// The nodes directly below.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => Vec::new(),
            Kind::Select { operand, .. } => vec![operand],
            Kind::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            Kind::List(items) => items.iter().map(|(item, _)| item).collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(k, v, _)| [k, v]).collect(),
            Kind::Struct { fields, .. } => fields.iter().map(|(_, value, _)| value).collect(),
            Kind::Comprehension(inner) => [&inner.range]
                .into_iter()
                .chain(&inner.filter)
                .chain([&inner.body])
                .collect(),
            Kind::OptMap { target, body, .. } => vec![target, body],
        }
    }
}
