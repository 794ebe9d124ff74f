//! Reads the discovery documents of aggregated API servers. The documents are untrusted.

use serde_json::{Map, Value, json};

/// The resources of a version in a document of aggregated discovery.
pub(super) fn of_aggregated(document: &Value, group: &str, version: &str) -> Option<Vec<Value>> {
    let mut groups = document["items"].as_array()?.iter();
    let found = groups.find(|found| found["metadata"]["name"] == group)?;
    let mut versions = found["versions"].as_array()?.iter();
    let found = versions.find(|found| found["version"] == version)?;
    let mut resources = found["resources"].as_array().cloned().unwrap_or_default();
    resources.retain(Value::is_object);
    for resource in &mut resources {
        // Old clients need this field.
        let subresources = resource["subresources"].as_array_mut();
        for subresource in subresources.into_iter().flatten() {
            if subresource.is_object() && subresource["responseKind"].is_null() {
                subresource["responseKind"] = json!({"group": "", "version": "", "kind": ""});
            }
        }
        if resource["responseKind"].is_null() {
            resource["responseKind"] = json!({"group": "", "version": "", "kind": ""});
        }
        if resource["subresources"].is_null()
            && let Some(resource) = resource.as_object_mut()
        {
            resource.remove("subresources");
        }
    }
    Some(resources)
}

/// The resources of a legacy document of a version, in the form of aggregated discovery.
pub(super) fn of_legacy(document: &Value, group: &str, version: &str) -> Option<Vec<Value>> {
    let list = document["resources"].as_array()?;
    let mut resources: Vec<Value> = Vec::new();
    let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
    for resource in list.iter().filter(|resource| !name(resource).contains('/')) {
        let mut shown = json!({
            "resource": name(resource),
            "responseKind": kind(resource, group, version),
            "scope": if resource["namespaced"] == true { "Namespaced" } else { "Cluster" },
            "singularResource": resource["singularName"],
            "verbs": resource["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if resource[field].is_array() {
                shown[field] = resource[field].clone();
            }
        }
        resources.push(shown);
    }
    for subresource in list {
        let whole = name(subresource);
        let Some((of, name)) = whole.split_once('/') else {
            continue;
        };
        let found = resources.iter_mut().find(|found| found["resource"] == of);
        let Some(found) = found.and_then(Value::as_object_mut) else {
            continue;
        };
        add_subresource(
            found,
            json!({
                "subresource": name,
                "responseKind": kind(subresource, group, version),
                "verbs": subresource["verbs"],
            }),
        );
    }
    Some(resources)
}

fn add_subresource(resource: &mut Map<String, Value>, subresource: Value) {
    let list = resource.entry("subresources").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(subresource);
    }
}

/// The group, version and kind of a resource in a legacy document.
fn kind(resource: &Value, group: &str, version: &str) -> Value {
    let or = |field: &str, default: &str| match resource[field].as_str() {
        None | Some("") => default.to_owned(),
        Some(own) => own.to_owned(),
    };
    json!({
        "group": or("group", group),
        "version": or("version", version),
        "kind": resource["kind"],
    })
}

/// The paths of a version in the index of OpenAPI v3.
pub(super) fn openapi_paths(index: &Value, group: &str, version: &str) -> Option<Value> {
    let path = format!("apis/{group}/{version}");
    let found = &index["paths"][path.as_str()];
    found.is_object().then(|| found.clone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_formats_say_the_same() {
        let legacy = json!({"resources": [
            {"name": "fish", "singularName": "fish", "namespaced": true, "kind": "Fish",
             "verbs": ["get"], "shortNames": ["f"]},
            {"name": "fish/status", "singularName": "", "namespaced": true, "kind": "Fish",
             "verbs": ["get"]},
            {"name": "fish/scale", "group": "autoscaling", "version": "v1", "kind": "Scale",
             "verbs": ["get"]},
        ]});
        let kind = json!({"group": "g", "version": "v1", "kind": "Fish"});
        let expected = json!([{
            "resource": "fish", "responseKind": kind, "scope": "Namespaced",
            "singularResource": "fish", "verbs": ["get"], "shortNames": ["f"],
            "subresources": [
                {"subresource": "status", "responseKind": kind, "verbs": ["get"]},
                {"subresource": "scale", "verbs": ["get"],
                 "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}},
            ],
        }]);
        assert_eq!(json!(of_legacy(&legacy, "g", "v1").unwrap()), expected);
        let aggregated = json!({"items": [{"metadata": {"name": "g"},
            "versions": [{"version": "v1", "resources": expected}]}]});
        assert_eq!(
            json!(of_aggregated(&aggregated, "g", "v1").unwrap()),
            expected
        );
        assert_eq!(of_aggregated(&aggregated, "g", "v2"), None);
    }

    proptest! {
        #[test]
        fn no_document_causes_a_panic(text in "[a-z\\[\\]{}\":,0-9/]{0,60}") {
            let inner: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let legacy = json!({"resources": [inner, {"name": "a/b"}, {"name": inner}]});
            let _ = of_legacy(&legacy, "g", "v1");
            let _ = of_aggregated(&json!({"items": [inner, {"metadata": {"name": "g"},
                "versions": [{"version": "v1", "resources": [inner, {"subresources": inner}]}]}]}), "g", "v1");
            let _ = openapi_paths(&inner, "g", "v1");
        }
    }
}
