//! Objects within objects (`x-kubernetes-embedded-resource`).

use serde_json::{Map, Value};

use super::Structural;

impl Structural {
    /// Calls `visit` with each object within `object` that has its own type and metadata, and with
    /// its path. Objects within these come later.
    pub fn visit_embedded(
        &self,
        object: &mut Value,
        visit: &mut dyn FnMut(&str, &mut Map<String, Value>),
    ) {
        if self.has_embedded {
            walk(self, object, "", visit);
        }
    }

    /// Returns true if objects within objects are possible here or below.
    pub(super) fn find_embedded(&self) -> bool {
        let additional = match &self.additional {
            super::Additional::Of(schema) => Some(&**schema),
            _ => None,
        };
        let mut below = self
            .properties
            .values()
            .chain(additional)
            .chain(self.items.as_deref());
        self.embedded || below.any(|schema| schema.has_embedded)
    }
}

fn walk(
    schema: &Structural,
    value: &mut Value,
    path: &str,
    visit: &mut dyn FnMut(&str, &mut Map<String, Value>),
) {
    match value {
        Value::Object(fields) => {
            if schema.embedded && !schema.root {
                visit(path, fields);
            }
            for (name, value) in fields {
                let Some(inner) = schema.at_key(name).filter(|inner| inner.has_embedded) else {
                    continue;
                };
                let path = match (path, schema.properties.contains_key(name)) {
                    ("", true) => name.clone(),
                    (_, true) => format!("{path}.{name}"),
                    (_, false) => format!("{path}[{name}]"),
                };
                walk(inner, value, &path, visit);
            }
        }
        Value::Array(items) => {
            let inner = schema.items.as_deref().filter(|inner| inner.has_embedded);
            let Some(inner) = inner else { return };
            for (index, item) in items.iter_mut().enumerate() {
                walk(inner, item, &format!("{path}[{index}]"), visit);
            }
        }
        _ => {}
    }
}
