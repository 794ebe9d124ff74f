//! OpenAPI v2 as JSON: the default format of `/openapi/v2`.

use longshore_model::release;
use serde_json::{Map, Value, json};

use super::{
    custom::Describe,
    merge::{self, V2Part},
    paths, schemas,
    v3::path_value,
};
use crate::definitions::DEFINITIONS;

/// The document of all kinds, with parts of the documents of aggregated API servers.
#[must_use]
pub fn v2_json<K: Describe>(kinds: &[K], parts: &[impl AsRef<V2Part>]) -> Value {
    merged(kinds, parts).0
}

/// The document, and the parts' additions to it.
pub(super) fn merged<K: Describe>(kinds: &[K], parts: &[impl AsRef<V2Part>]) -> (Value, V2Part) {
    let mut document = of_kinds(kinds);
    let added = match parts {
        [] => V2Part::default(),
        parts => merge::merge(&mut document, parts),
    };
    (document, added)
}

fn of_kinds<K: Describe>(kinds: &[K]) -> Value {
    let paths: Map<String, Value> = kinds
        .iter()
        .flat_map(paths::of_kind)
        .map(|path| (path.path.clone(), path_item(path_value(&path))))
        .collect();
    let mut document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release::VERSION},
        "paths": paths,
        "definitions": schemas::in_v2(kinds),
    });
    point_to_definitions(&mut document);
    document
}

/// Converts a path from v3 to v2.
fn path_item(mut path: Value) -> Value {
    for (name, value) in path.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "parameters" => parameters(value),
            _ => operation(value),
        }
    }
    path
}

/// In v2, the type of a parameter is next to its name.
fn parameters(list: &mut Value) {
    for parameter in list.as_array_mut().into_iter().flatten() {
        let Some(fields) = parameter.as_object_mut() else {
            continue;
        };
        if let Some(Value::Object(schema)) = fields.remove("schema") {
            fields.extend(schema);
        }
    }
}

/// In v2, the body is a parameter and the operation lists the media types.
fn operation(operation: &mut Value) {
    parameters(&mut operation["parameters"]);
    let Some(fields) = operation.as_object_mut() else {
        return;
    };
    if let Some(mut body) = fields.remove("requestBody") {
        let (types, schema) = content(&mut body);
        let parameter = json!({
            "in": "body", "name": "body", "required": body["required"], "schema": schema,
        });
        if let Some(Value::Array(parameters)) = fields.get_mut("parameters") {
            parameters.insert(0, parameter);
        }
        fields.insert("consumes".into(), types.into());
    }
    let mut produces = Vec::new();
    let answers = fields.get_mut("responses").and_then(Value::as_object_mut);
    for answer in answers.into_iter().flat_map(Map::values_mut) {
        let (types, schema) = content(answer);
        produces = types;
        answer["schema"] = schema;
    }
    fields.insert("produces".into(), produces.into());
}

/// Takes the media types and their common schema out of a request body or
/// response.
fn content(value: &mut Value) -> (Vec<String>, Value) {
    let content = value
        .as_object_mut()
        .and_then(|fields| fields.remove("content"));
    let Some(Value::Object(content)) = content else {
        return (Vec::new(), json!({"type": "object"}));
    };
    let types = content.keys().cloned().collect();
    let first = content.into_iter().next();
    (
        types,
        first.map_or_else(|| json!({}), |(_, mut value)| value["schema"].take()),
    )
}

/// Moves references to the location of definitions in v2; a description may be
/// next to a reference.
fn point_to_definitions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Array(all)) = fields.get_mut("allOf")
                && let [Value::Object(only)] = all.as_mut_slice()
                && only.contains_key("$ref")
            {
                let only = std::mem::take(only);
                fields.remove("allOf");
                fields.extend(only);
            }
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(DEFINITIONS)
            {
                *reference = format!("{}{name}", merge::DEFINITIONS);
                // Keywords next to a reference are ignored, except for the
                // description.
                fields.retain(|name, _| name == "$ref" || name == "description");
            }
            fields.values_mut().for_each(point_to_definitions);
        }
        Value::Array(items) => items.iter_mut().for_each(point_to_definitions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::kind::BUILTIN;

    use super::*;

    #[test]
    fn definitions_and_operations_use_the_syntax_of_v2() {
        let document = of_kinds(BUILTIN);
        let text = document.to_string();
        for word in ["#/components", "requestBody", "\"content\":"] {
            assert!(!text.contains(word), "{word}");
        }
        let definitions = &document["definitions"];
        let pod = &definitions["io.k8s.api.core.v1.Pod"];
        assert_eq!(
            pod["properties"]["spec"]["$ref"],
            "#/definitions/io.k8s.api.core.v1.PodSpec"
        );
        let quantity = &definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"];
        assert_eq!(quantity["type"], "string");
        let pods = &document["paths"]["/api/v1/namespaces/{namespace}/pods"];
        assert_eq!(pods["parameters"][0]["type"], "string");
        let post = &pods["post"];
        assert_eq!(
            post["parameters"][0]["schema"],
            json!({"$ref": "#/definitions/io.k8s.api.core.v1.Pod"})
        );
        assert_eq!(post["consumes"], json!(["*/*"]));
        assert_eq!(post["produces"], json!(["application/json"]));
        assert_eq!(
            post["responses"]["201"]["schema"]["$ref"],
            "#/definitions/io.k8s.api.core.v1.Pod"
        );
    }

    #[test]
    fn every_reference_resolves() {
        fn check(value: &Value, definitions: &Value) {
            if let Some(reference) = value["$ref"].as_str() {
                let name = reference.rsplit('/').next().unwrap_or_default();
                assert!(definitions[name].is_object(), "{reference}");
            }
            let inner = value.as_object().into_iter().flat_map(Map::values);
            let items = value.as_array().into_iter().flatten();
            inner
                .chain(items)
                .for_each(|value| check(value, definitions));
        }
        let document = of_kinds(BUILTIN);
        check(&document, &document["definitions"]);
    }
}
