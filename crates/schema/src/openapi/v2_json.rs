//! OpenAPI v2 as JSON: what `/openapi/v2` answers to who asks for no other form.

use longshore_model::release;
use serde_json::{Map, Value, json};

use super::{custom::Describe, paths, v2::v2_definitions, v3::path_value};
use crate::definitions::DEFINITIONS;

/// The document for all kinds.
#[must_use]
pub fn v2_json<K: Describe>(kinds: &[K]) -> Value {
    let paths: Map<String, Value> = kinds
        .iter()
        .flat_map(paths::of_kind)
        .map(|path| (path.path.clone(), path_item(path_value(&path))))
        .collect();
    let mut document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release::VERSION},
        "paths": paths,
        "definitions": v2_definitions(kinds),
    });
    point_to_definitions(&mut document);
    document
}

/// A path of v3 in the words of v2.
fn path_item(mut path: Value) -> Value {
    for (name, value) in path.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "parameters" => parameters(value),
            _ => operation(value),
        }
    }
    path
}

/// The type of a parameter stands beside its name.
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

/// The body is a parameter, and its media types are those of the operation.
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

/// Takes the media types out of a body or an answer, and the schema, which is the same for
/// all of them.
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

/// Definitions have another place than in v3, and stand beside their description.
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
            if let Some(Value::String(place)) = fields.get_mut("$ref")
                && let Some(name) = place.strip_prefix(DEFINITIONS)
            {
                *place = format!("#/definitions/{name}");
                // Beside a reference nothing else than a description counts.
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
    fn definitions_and_operations_are_in_the_words_of_v2() {
        let document = v2_json(BUILTIN);
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
    fn every_reference_leads_somewhere() {
        fn check(value: &Value, definitions: &Value) {
            if let Some(place) = value["$ref"].as_str() {
                let name = place.rsplit('/').next().unwrap_or_default();
                assert!(definitions[name].is_object(), "{place}");
            }
            let inner = value.as_object().into_iter().flat_map(Map::values);
            let items = value.as_array().into_iter().flatten();
            inner
                .chain(items)
                .for_each(|value| check(value, definitions));
        }
        let document = v2_json(BUILTIN);
        check(&document, &document["definitions"]);
    }
}
