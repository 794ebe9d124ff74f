//! Types of expressions.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::decl::{Decl, Shape};

/// The type of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    /// The type of an expression with an error that was already reported.
    Error,
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// The type of types.
    Meta,
    Opaque(Opaque),
    /// An object with the fields of a schema.
    Object(Arc<Decl>),
    /// The variables of a policy by their names.
    Variables(Arc<BTreeMap<String, Type>>),
    /// A type that expressions construct: `JSONPatch`, `Object`, or the type of a
    /// field below `Object`, such as `Object.spec`.
    Struct(Arc<str>),
    /// A parameter of a signature, or a type that is not known yet.
    Var(usize),
}

/// Types of the Kubernetes libraries, whose values are not JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opaque {
    Quantity,
    Url,
    Ip,
    Cidr,
    Semver,
    Format,
    Authorizer,
    PathCheck,
    GroupCheck,
    ResourceCheck,
    Decision,
}

impl Opaque {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quantity => "kubernetes.Quantity",
            Self::Url => "kubernetes.URL",
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Semver => "kubernetes.Semver",
            Self::Format => "kubernetes.NamedFormat",
            Self::Authorizer => "kubernetes.authorization.Authorizer",
            Self::PathCheck => "kubernetes.authorization.PathCheck",
            Self::GroupCheck => "kubernetes.authorization.GroupCheck",
            Self::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            Self::Decision => "kubernetes.authorization.Decision",
        }
    }
}

impl Type {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    /// The type of maps. Key types other than the usual ones are not tracked, so that types stay
    /// small.
    pub(crate) fn map(key: Self, value: Self) -> Self {
        let key = match key {
            Self::Bool | Self::Int | Self::Uint | Self::String | Self::Var(_) => key,
            _ => Self::Dyn,
        };
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    /// The type of the values that a schema describes.
    pub(crate) fn of(decl: &Arc<Decl>) -> Self {
        match &decl.shape {
            Shape::Any | Shape::IntOrString => Self::Dyn,
            Shape::List { items, .. } => Self::list(Self::of(items)),
            Shape::Map(values) => Self::map(Self::String, Self::of(values)),
            Shape::Object(_) => Self::Object(decl.clone()),
            Shape::String => Self::String,
            Shape::Bytes => Self::Bytes,
            Shape::Duration => Self::Duration,
            Shape::Date | Shape::DateTime => Self::Timestamp,
            Shape::Bool => Self::Bool,
            Shape::Double => Self::Double,
            Shape::Int => Self::Int,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Returns true if null is assignable to the type.
    pub(crate) fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Duration
                | Self::Timestamp
                | Self::Optional(_)
                | Self::Opaque(_)
                | Self::Object(_)
                | Self::Variables(_)
                | Self::Struct(_)
                | Self::Null
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Dyn | Self::Var(_) => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Meta => f.write_str("type"),
            Self::Opaque(opaque) => f.write_str(opaque.name()),
            Self::Object(_) => f.write_str("object"),
            Self::Variables(_) => f.write_str("kubernetes.variables"),
            Self::Struct(name) => f.write_str(name),
        }
    }
}
