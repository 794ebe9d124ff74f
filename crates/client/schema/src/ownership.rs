//! Ownership rules of types for server-side apply: which values are owned as a whole, and which by
//! field or by item. A common interface for built-in types and types of CustomResourceDefinitions.

use serde_json::Value;

use crate::{ListType, Shape, TypeRef};

/// A type that is declared at run time, as server-side apply traverses it.
pub trait DeclaredType: std::fmt::Debug + Send + Sync {
    /// The kind of values; [`Shape::Any`] if nothing is declared.
    fn shape(&self) -> Shape;

    /// The type of the field `name` of an object, or of a map's values; `None`
    /// if it is not declared. Unknown fields that are preserved have the type
    /// [`OwnedType::Any`].
    fn field(&self, name: &str) -> Option<OwnedType<'_>>;

    /// Returns true if the field is declared by name, not as an arbitrary key of a map.
    fn names_field(&self, name: &str) -> bool;

    /// The type of a list's items.
    fn items(&self) -> Option<OwnedType<'_>>;

    /// `x-kubernetes-list-type`; atomic if absent.
    fn list_type(&self) -> ListType;

    /// `x-kubernetes-list-map-keys`.
    fn list_map_keys(&self) -> &[String];

    /// `x-kubernetes-map-type: atomic`.
    fn is_atomic(&self) -> bool;

    /// The default of a missing value.
    fn default(&self) -> Option<&Value>;
}

/// The type of a value at a path of an object.
#[derive(Debug, Clone, Copy)]
pub enum OwnedType<'a> {
    /// A built-in type.
    Builtin(TypeRef),
    /// A type declared by a CustomResourceDefinition.
    Declared(&'a dyn DeclaredType),
    /// An undeclared type: objects are owned by field, lists as a whole.
    Any,
}

/// The granularity of a value's ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// As a whole.
    Whole,
    /// An object, by field or key.
    Fields,
    /// A list, by value.
    Values,
    /// A list, by item; [`OwnedType::keys`] identify the items.
    Items,
}

impl<'a> OwnedType<'a> {
    /// Returns the granularity of ownership of `value` if it has this type. A value of another type
    /// is owned as a whole.
    #[must_use]
    pub fn ownership(self, value: &Value) -> Ownership {
        match value {
            Value::Object(_) => match self.shape() {
                Shape::Object | Shape::Map | Shape::Any if !self.is_atomic() => Ownership::Fields,
                _ => Ownership::Whole,
            },
            Value::Array(_) if self.shape() == Shape::List => match self.list_type() {
                ListType::Atomic => Ownership::Whole,
                ListType::Set => Ownership::Values,
                ListType::Map => Ownership::Items,
            },
            _ => Ownership::Whole,
        }
    }

    /// The kind of values that the type permits.
    #[must_use]
    pub fn shape(self) -> Shape {
        match self {
            Self::Builtin(at) => at.shape(),
            Self::Declared(at) => at.shape(),
            Self::Any => Shape::Any,
        }
    }

    /// The type of the field `name`, or of every value in a map; `None` if
    /// there is no such field.
    #[must_use]
    pub fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Builtin(at) if at.shape() == Shape::Any => Some(Self::Any),
            Self::Builtin(at) => at.field(name).map(Self::Builtin),
            Self::Declared(at) => at.field(name),
            Self::Any => Some(Self::Any),
        }
    }

    /// Returns true if the field is declared by name, not as an arbitrary key of a map.
    #[must_use]
    pub fn names_field(self, name: &str) -> bool {
        match self {
            Self::Builtin(at) => at.shape() == Shape::Object && at.field(name).is_some(),
            Self::Declared(at) => at.names_field(name),
            Self::Any => false,
        }
    }

    /// The fields of an object that are always present, with their default
    /// values.
    #[must_use]
    pub fn always(self) -> &'static [(&'static str, Value)] {
        match self {
            Self::Builtin(at) => at.always(),
            Self::Declared(_) | Self::Any => &[],
        }
    }

    /// The type of a list's items.
    #[must_use]
    pub fn items(self) -> Self {
        match self {
            Self::Builtin(at) => at.items().map_or(Self::Any, Self::Builtin),
            Self::Declared(at) => at.items().unwrap_or(Self::Any),
            Self::Any => Self::Any,
        }
    }

    /// Returns the granularity of a list's ownership.
    #[must_use]
    pub fn list_type(self) -> ListType {
        match self {
            Self::Builtin(at) => at.list_type(),
            Self::Declared(at) => at.list_type(),
            Self::Any => ListType::Atomic,
        }
    }

    /// The fields that identify the items of a list, in declaration order.
    pub fn keys(self) -> impl Iterator<Item = &'a str> {
        let (builtin, declared): (&'a [&'a str], &'a [String]) = match self {
            Self::Builtin(at) => (at.list_map_keys(), &[]),
            Self::Declared(at) => (&[], at.list_map_keys()),
            Self::Any => (&[], &[]),
        };
        let declared = declared.iter().map(String::as_str);
        builtin.iter().copied().chain(declared)
    }

    /// Returns true if an object or map is owned as a whole.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        match self {
            Self::Builtin(at) => at.is_atomic(),
            Self::Declared(at) => at.is_atomic(),
            Self::Any => false,
        }
    }

    /// The value of a list key that an item omits.
    #[must_use]
    pub fn key_default(self) -> Option<Value> {
        match self {
            Self::Builtin(at) => at.key_default(),
            Self::Declared(at) => at.default().cloned(),
            Self::Any => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use serde_json::json;

    use super::*;
    use crate::registry;

    fn at(path: &str) -> OwnedType<'static> {
        let root = registry().root(&Gvk::from_api_version("v1", "Pod"));
        path.split('.')
            .fold(OwnedType::Builtin(root.unwrap()), |at, name| match name {
                "*" => at.items(),
                name => at.field(name).unwrap(),
            })
    }

    #[test]
    fn rule_18_ownership_of_built_in_types() {
        for (path, value, ownership) in [
            ("spec", json!({}), Ownership::Fields),
            ("metadata.labels", json!({}), Ownership::Fields),
            ("metadata.labels.a", json!("x"), Ownership::Whole),
            ("metadata.finalizers", json!([]), Ownership::Values),
            ("metadata.ownerReferences", json!([]), Ownership::Items),
            ("metadata.ownerReferences.*", json!({}), Ownership::Whole),
            ("spec.containers", json!([]), Ownership::Items),
            ("spec.containers.*", json!({}), Ownership::Fields),
            ("spec.containers.*.command", json!([]), Ownership::Whole),
            ("spec.tolerations", json!([]), Ownership::Whole),
            ("spec.nodeSelector", json!({}), Ownership::Whole),
        ] {
            assert_eq!(at(path).ownership(&value), ownership, "{path}");
        }
        let lists = OwnedType::Any.ownership(&json!([{"name": "a"}]));
        assert_eq!(lists, Ownership::Whole);
    }

    #[test]
    fn rule_18_keys_and_their_defaults() {
        let ports = at("spec.containers.*.ports");
        assert_eq!(
            ports.keys().collect::<Vec<_>>(),
            ["containerPort", "protocol"]
        );
        let default = |name| ports.items().field(name).and_then(OwnedType::key_default);
        assert_eq!(default("protocol"), Some(json!("TCP")));
        assert_eq!(default("containerPort"), Some(json!(0)));
        assert_eq!(
            at("spec.containers.*.env.*.name").key_default(),
            Some(json!(""))
        );
        let spread = at("spec.topologySpreadConstraints");
        assert_eq!(
            spread.keys().collect::<Vec<_>>(),
            ["topologyKey", "whenUnsatisfiable"]
        );
    }

    #[test]
    fn some_fields_are_always_present() {
        assert_eq!(at("spec").always(), [("containers", json!(null))]);
        assert_eq!(
            at("spec.containers.*").always(),
            [("name", json!("")), ("resources", json!({}))]
        );
        assert!(at("metadata.labels").always().is_empty());
    }

    #[test]
    fn named_fields_are_not_keys_of_maps() {
        assert!(at("spec").names_field("nodeName"));
        assert!(!at("spec").names_field("shoes"));
        assert!(!at("metadata.labels").names_field("a"));
        assert!(at("metadata.labels").field("a").is_some());
    }
}
