//! Merges OpenAPI v2 documents of other API servers into this server's document, as kube-aggregator
//! does. These documents are not trusted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::extension::KIND;

/// The prefix of references to definitions in v2.
pub(super) const DEFINITIONS: &str = "#/definitions/";
/// The prefix of references to parameters.
const PARAMETERS: &str = "#/parameters/";

/// The part of a document that describes some paths, with the definitions that they use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct V2Part {
    pub(super) paths: Map<String, Value>,
    pub(super) definitions: Map<String, Value>,
}

impl V2Part {
    /// Returns the paths of a document that start with a prefix; `None` if no path does.
    #[must_use]
    pub fn below(mut document: Value, prefix: &str) -> Option<Self> {
        let parameters = take_map(&mut document, "parameters");
        let mut part = Self {
            paths: take_map(&mut document, "paths"),
            definitions: take_map(&mut document, "definitions"),
        };
        for path in part.paths.values_mut() {
            inline_parameters(path, &parameters);
        }
        part.keep_paths(|path| path.starts_with(prefix));
        (!part.paths.is_empty()).then_some(part)
    }

    /// Removes the other paths, and the definitions that only they use.
    fn keep_paths(&mut self, keeps: impl Fn(&str) -> bool) {
        let before = self.used();
        self.paths.retain(|path, _| keeps(path));
        let used = self.used();
        self.definitions
            .retain(|name, _| used.contains(name) || !before.contains(name));
    }

    /// The names of the definitions to which the paths refer, directly or not.
    fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        let mut open: Vec<&Value> = self.paths.values().collect();
        while let Some(value) = open.pop() {
            each_reference(value, &mut |name| {
                if !used.contains(name) {
                    used.insert(name.to_owned());
                    open.extend(self.definitions.get(name));
                }
            });
        }
        used
    }

    fn rename(&mut self, names: &BTreeMap<String, String>) {
        if names.is_empty() {
            return;
        }
        self.paths
            .values_mut()
            .chain(self.definitions.values_mut())
            .for_each(|value| rename_references(value, names));
        let definitions = std::mem::take(&mut self.definitions).into_iter();
        let renamed = definitions.map(|(name, value)| match names.get(&name) {
            Some(new) => (new.clone(), value),
            None => (name, value),
        });
        self.definitions = renamed.collect();
    }
}

/// Merges parts into a document, in their order. Paths that the document already has are skipped. A
/// definition whose name is used by another definition gets a new name. Returns the added parts.
pub(super) fn merge(document: &mut Value, parts: &[impl AsRef<V2Part>]) -> V2Part {
    let mut whole = V2Part {
        paths: take_map(document, "paths"),
        definitions: take_map(document, "definitions"),
    };
    let mut added = V2Part::default();
    for part in parts {
        let mut part = part.as_ref().clone();
        if part.paths.keys().any(|path| whole.paths.contains_key(path)) {
            part.keep_paths(|path| !whole.paths.contains_key(path));
        }
        if part.paths.is_empty() {
            continue;
        }
        let names = new_names(&whole, &part);
        part.rename(&names);
        for (name, definition) in part.definitions {
            let changed = match whole.definitions.get_mut(&name) {
                Some(existing) => {
                    if !add_kinds(existing, &definition) {
                        continue;
                    }
                    existing.clone()
                }
                None => {
                    whole.definitions.insert(name.clone(), definition.clone());
                    definition
                }
            };
            added.definitions.insert(name, changed);
        }
        added.paths.extend(part.paths.clone());
        whole.paths.extend(part.paths);
    }
    document["paths"] = whole.paths.into();
    document["definitions"] = whole.definitions.into();
    added
}

/// Returns new names for the definitions of a part that differ from existing definitions with the
/// same name.
fn new_names(whole: &V2Part, part: &V2Part) -> BTreeMap<String, String> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (name, definition) in &part.definitions {
        let is_free = |name: &str| match whole.definitions.get(name) {
            Some(existing) => is_same(existing, definition),
            None => true,
        };
        if is_free(name) {
            continue;
        }
        let taken: BTreeSet<&String> = names.values().collect();
        let candidates = (2_u32..).map(|number| format!("{name}_v{number}"));
        let new = candidates.into_iter().find(|new| {
            let is_known = whole.definitions.contains_key(new);
            is_free(new)
                && (is_known || !part.definitions.contains_key(new) && !taken.contains(new))
        });
        names.extend(new.map(|new| (name.clone(), new)));
    }
    names
}

/// Returns true if two definitions differ at most in their kinds.
fn is_same(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return a == b;
    };
    let others =
        |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key(KIND));
    others(a) == others(b)
        && a.iter()
            .all(|(name, value)| name == KIND || b.get(name) == Some(value))
}

/// Adds the kinds of a definition to an equal definition. Returns true if there are new kinds.
fn add_kinds(existing: &mut Value, other: &Value) -> bool {
    let Some(kinds) = other[KIND].as_array() else {
        return false;
    };
    let known = existing[KIND].as_array().cloned().unwrap_or_default();
    let mut all = known.clone();
    for kind in kinds {
        if !all.contains(kind) {
            all.push(kind.clone());
        }
    }
    if all.len() == known.len() {
        return false;
    }
    all.sort_by_cached_key(|kind| {
        let text = |field: &str| kind[field].as_str().unwrap_or_default().to_owned();
        format!("{}/{}.{}", text("group"), text("version"), text("kind"))
    });
    existing[KIND] = all.into();
    true
}

fn take_map(document: &mut Value, field: &str) -> Map<String, Value> {
    match document.get_mut(field).map(Value::take) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Replaces references to common parameters of a path and its operations.
fn inline_parameters(path: &mut Value, parameters: &Map<String, Value>) {
    let replace = |list: &mut Value| {
        for parameter in list.as_array_mut().into_iter().flatten() {
            let name = parameter["$ref"].as_str();
            let name = name.and_then(|name| name.strip_prefix(PARAMETERS));
            if let Some(found) = name.and_then(|name| parameters.get(name)) {
                *parameter = found.clone();
            }
        }
    };
    for (name, value) in path.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "parameters" => replace(value),
            _ => {
                if let Some(list) = value.get_mut("parameters") {
                    replace(list);
                }
            }
        }
    }
}

/// Calls `work` with the name of each definition to which a value refers directly.
fn each_reference<'a>(value: &'a Value, work: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value
                    .as_str()
                    .and_then(|text| text.strip_prefix(DEFINITIONS))
                {
                    Some(definition) if name == "$ref" => work(definition),
                    _ => each_reference(value, work),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_reference(item, work)),
        _ => {}
    }
}

fn rename_references(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let reference = value.as_str().filter(|_| name == "$ref");
                let definition = reference.and_then(|text| text.strip_prefix(DEFINITIONS));
                match definition.and_then(|definition| names.get(definition)) {
                    Some(new) => *value = format!("{DEFINITIONS}{new}").into(),
                    None => rename_references(value, names),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| rename_references(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn get(definition: &str) -> Value {
        json!({"get": {"responses": {"200": {
            "schema": {"$ref": format!("{DEFINITIONS}{definition}")}}}}})
    }

    fn kind(group: &str) -> Value {
        json!({"group": group, "version": "v1", "kind": "Status"})
    }

    /// A document with a path below `/apis/g/v1/`, and another path.
    fn document() -> Value {
        json!({
            "paths": {"/apis/g/v1/fish": get("Fish"), "/apis/": get("Groups"),
                "/apis/g/v1/boats": {
                    "parameters": [{"$ref": "#/parameters/pretty"}],
                    "get": {"parameters": [{"$ref": "#/parameters/none"}]}}},
            "definitions": {
                "Fish": {"properties": {"meta": {"$ref": "#/definitions/Meta"}}},
                "Meta": {"type": "object", "properties": {"self": {"$ref": "#/definitions/Meta"}}},
                "Groups": {"type": "object"},
                "Unused": {"type": "object"},
            },
            "parameters": {"pretty": {"in": "query", "name": "pretty", "type": "string"}},
        })
    }

    fn part() -> Arc<V2Part> {
        Arc::new(V2Part::below(document(), "/apis/g/v1/").unwrap())
    }

    fn names(map: &Map<String, Value>) -> Vec<&str> {
        map.keys().map(String::as_str).collect()
    }

    #[test]
    fn a_part_has_the_definitions_of_its_paths() {
        let part = part();
        assert_eq!(names(&part.paths), ["/apis/g/v1/boats", "/apis/g/v1/fish"]);
        assert_eq!(names(&part.definitions), ["Fish", "Meta", "Unused"]);
        let boats = &part.paths["/apis/g/v1/boats"];
        assert_eq!(boats["parameters"][0]["name"], "pretty");
        assert_eq!(boats["get"]["parameters"][0]["$ref"], "#/parameters/none");
        assert_eq!(V2Part::below(document(), "/apis/other/"), None);
    }

    #[test]
    fn another_definition_of_the_same_name_gets_another_name() {
        let mut own = json!({
            "swagger": "2.0",
            "paths": {"/api/v1/pods": get("Meta")},
            "definitions": {"Meta": {"type": "string"}, "Meta_v2": {"type": "integer"}},
        });
        let added = merge(&mut own, &[part(), part()]);
        let definitions = own["definitions"].as_object().unwrap();
        assert_eq!(
            names(definitions),
            ["Fish", "Meta", "Meta_v2", "Meta_v3", "Unused"]
        );
        let reference = "/definitions/Fish/properties/meta/$ref";
        assert_eq!(own.pointer(reference).unwrap(), "#/definitions/Meta_v3");
        let own_reference = "/definitions/Meta_v3/properties/self/$ref";
        assert_eq!(own.pointer(own_reference).unwrap(), "#/definitions/Meta_v3");
        assert_eq!(own["paths"]["/api/v1/pods"], get("Meta"));
        assert_eq!(own["swagger"], "2.0");
        assert_eq!(names(&added.definitions), ["Fish", "Meta_v3", "Unused"]);
        assert_eq!(names(&added.paths), ["/apis/g/v1/boats", "/apis/g/v1/fish"]);
    }

    #[test]
    fn a_definition_that_was_renamed_before_is_used_again() {
        let mut own = json!({
            "paths": {},
            "definitions": {"A": {"type": "string"}, "A_v2": {"type": "object"}},
        });
        let source = json!({
            "paths": {"/apis/g/v1/a": get("A")},
            "definitions": {"A": {"type": "object", KIND: [kind("g")]}},
        });
        let source = Arc::new(V2Part::below(source, "/apis/g/").unwrap());
        merge(&mut own, &[source]);
        assert_eq!(own["paths"]["/apis/g/v1/a"], get("A_v2"));
        let second = json!({"type": "object", KIND: [kind("g")]});
        let definitions = json!({"A": {"type": "string"}, "A_v2": second});
        assert_eq!(own["definitions"], definitions);
    }

    #[test]
    fn existing_paths_remain_and_kinds_are_joined() {
        let mut own = json!({
            "paths": {"/apis/g/v1/fish": get("Status")},
            "definitions": {"Status": {"type": "object", KIND: [kind("z")]}},
        });
        let source = json!({
            "paths": {"/apis/g/v1/fish": get("Fish"), "/apis/g/v1/boats": get("Status")},
            "definitions": {"Fish": {"type": "object"},
                "Status": {"type": "object", KIND: [kind("z"), kind("a")]}},
        });
        let source = Arc::new(V2Part::below(source, "/apis/g/").unwrap());
        let added = merge(&mut own, &[source]);
        assert_eq!(own["paths"]["/apis/g/v1/fish"], get("Status"));
        assert_eq!(names(&added.paths), ["/apis/g/v1/boats"]);
        let joined = json!({"type": "object", KIND: [kind("a"), kind("z")]});
        assert_eq!(own["definitions"], json!({"Status": joined}));
        assert_eq!(added.definitions["Status"], joined);
    }

    proptest! {
        #[test]
        fn no_document_causes_a_panic(text in "[a-z\\[\\]{}\":,0-9/#$]{0,60}") {
            let inner: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let source = json!({
                "paths": {"/a": inner, "/b": {"parameters": inner, "get": {"parameters": [inner]}}},
                "definitions": {"a": inner, "b": {"$ref": "#/definitions/b"}, "c": {KIND: inner}},
                "parameters": inner,
            });
            let part = V2Part::below(source.clone(), "/").map(Arc::new);
            let mut whole = source;
            whole["paths"] = json!({"/a": 1});
            merge(&mut whole, &[part.clone().unwrap_or_default(), part.unwrap_or_default()]);
            let _ = V2Part::below(inner, "/");
        }
    }
}
