//! Ownership rules of structural schemas for server-side apply.

use std::sync::OnceLock;

use serde_json::Value;

use super::{Additional, Structural, Type, is_meta};
use crate::{DeclaredType, ListType, OwnedType, Shape, TypeRef, packages, registry};

/// The type of object metadata.
pub(super) fn object_meta() -> Option<TypeRef> {
    static NAME: OnceLock<String> = OnceLock::new();
    registry().named(NAME.get_or_init(|| format!("{}.ObjectMeta", packages::META)))
}

impl DeclaredType for Structural {
    fn shape(&self) -> Shape {
        match self.kind {
            _ if self.int_or_string => Shape::IntOrString,
            Some(Type::Object) if self.additional != Additional::Undeclared => Shape::Map,
            Some(Type::Object) => Shape::Object,
            Some(Type::Array) => Shape::List,
            Some(Type::String) => Shape::String,
            Some(Type::Integer) => Shape::Integer,
            Some(Type::Number) => Shape::Number,
            Some(Type::Boolean) => Shape::Boolean,
            None => Shape::Any,
        }
    }

    fn field(&self, name: &str) -> Option<OwnedType<'_>> {
        if self.embedded && is_meta(name) {
            return match (name, object_meta()) {
                ("metadata", Some(meta)) => Some(OwnedType::Builtin(meta)),
                _ => Some(OwnedType::Any),
            };
        }
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(OwnedType::Declared(property)),
            (None, Additional::Of(values)) => Some(OwnedType::Declared(&**values)),
            (None, Additional::Any) => Some(OwnedType::Any),
            (None, Additional::Undeclared) if self.preserves_unknown => Some(OwnedType::Any),
            (None, Additional::Undeclared) => None,
        }
    }

    fn names_field(&self, name: &str) -> bool {
        (self.embedded && is_meta(name)) || self.properties.contains_key(name)
    }

    fn items(&self) -> Option<OwnedType<'_>> {
        let items = self.items.as_deref()?;
        Some(OwnedType::Declared(items))
    }

    fn list_type(&self) -> ListType {
        self.list_type.unwrap_or(ListType::Atomic)
    }

    fn list_map_keys(&self) -> &[String] {
        &self.list_map_keys
    }

    fn is_atomic(&self) -> bool {
        self.atomic
    }

    fn default(&self) -> Option<&Value> {
        self.default.as_ref()
    }
}
