//! The registry: all definitions by name, and their type graph.

use std::sync::OnceLock;

use longshore_model::Gvk;
use serde_json::Value;

use crate::{
    definitions::definitions,
    graph::{Graph, TypeRef, graph},
    packages,
};

/// The definitions of the built-in types and their type graph.
#[derive(Debug)]
pub struct Registry {
    graph: &'static Graph,
}

/// The registry; built on first use, which takes a few milliseconds.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry { graph: graph() })
}

impl Registry {
    /// The schema of a type in OpenAPI v3 style: references have the form
    /// `#/components/schemas/…`.
    ///
    /// ```
    /// let pod = longshore_schema::registry().definition("io.k8s.api.core.v1.Pod").unwrap();
    /// assert!(pod["properties"]["spec"].is_object());
    /// ```
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Value> {
        definitions().get(name)
    }

    /// A definition and its name with the lifetime of the registry.
    pub(crate) fn entry(&self, name: &str) -> Option<(&str, &Value)> {
        definitions()
            .get_key_value(name)
            .map(|(name, value)| (name.as_str(), value))
    }

    /// The names of all definitions, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        definitions().keys().map(String::as_str)
    }

    /// The name of the definition of a kind; `None` if it is not built in.
    #[must_use]
    pub fn name_of(&self, gvk: &Gvk) -> Option<&str> {
        let name = packages::definition(&gvk.group, &gvk.version, &gvk.kind)?;
        self.named(&name)?.definition()
    }

    /// The type of a kind; `None` if it is not built in.
    #[must_use]
    pub fn root(&self, gvk: &Gvk) -> Option<TypeRef> {
        self.graph.definition(self.name_of(gvk)?)
    }

    /// The type of a definition by name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<TypeRef> {
        self.graph.definition(name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::kind::BUILTIN;

    use super::*;
    use crate::definitions::{DEFINITIONS, kinds};

    #[test]
    fn every_served_kind_has_a_definition_and_a_list() {
        for info in BUILTIN {
            let name = registry()
                .name_of(&info.gvk)
                .unwrap_or_else(|| panic!("{}", info.gvk));
            assert!(registry().definition(name).unwrap()["properties"]["metadata"].is_object());
            assert!(
                registry().definition(&format!("{name}List")).is_some(),
                "{name}"
            );
            assert!(registry().root(&info.gvk).is_some());
        }
    }

    #[test]
    fn every_kind_is_named_after_its_group() {
        assert!(kinds().count() > 100);
        for (name, gvk) in kinds() {
            let expected = packages::definition(&gvk.group, &gvk.version, &gvk.kind);
            assert_eq!(expected.as_deref(), Some(name));
        }
    }

    #[test]
    fn every_reference_resolves() {
        fn check(value: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        let name = reference.strip_prefix(DEFINITIONS).unwrap();
                        assert!(registry().definition(name).is_some(), "{reference}");
                    }
                    fields.values().for_each(check);
                }
                Value::Array(items) => items.iter().for_each(check),
                _ => {}
            }
        }
        for name in registry().names() {
            check(registry().definition(name).unwrap());
        }
        assert!(registry().names().count() > 400);
    }
}
