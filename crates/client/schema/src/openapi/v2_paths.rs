//! Paths of documents of other API servers, as protobuf. Nothing in them is trusted.

use serde_json::Value;

use super::gnostic::{
    NamedAny, Operation, ParameterLocation, ParametersItem, PathItem, PathParameter, QueryParameter,
};

/// A path of a document in JSON.
pub(super) fn path_item(value: &Value) -> PathItem {
    let operation = |method: &str| {
        let value = value.get(method).filter(|value| value.is_object());
        value.map(operation)
    };
    PathItem {
        get: operation("get"),
        put: operation("put"),
        post: operation("post"),
        delete: operation("delete"),
        patch: operation("patch"),
        parameters: parameters(value),
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn operation(value: &Value) -> Operation {
    let fields = value.as_object().into_iter().flatten();
    let extensions = fields.filter(|(name, _)| name.starts_with("x-"));
    let extensions: Vec<NamedAny> = extensions
        .map(|(name, value)| NamedAny::json(name, value))
        .collect();
    Operation {
        description: text(value, "description"),
        operation_id: text(value, "operationId"),
        parameters: parameters(value),
        vendor_extension: extensions,
    }
}

/// The parameters in the query and in the path.
fn parameters(value: &Value) -> Vec<ParametersItem> {
    let list = value["parameters"].as_array().into_iter().flatten();
    let locations = list.filter_map(|value| match value["in"].as_str()? {
        "query" => Some(ParameterLocation::Query(QueryParameter {
            location: "query".to_owned(),
            description: text(value, "description"),
            name: text(value, "name"),
            kind: text(value, "type"),
        })),
        "path" => Some(ParameterLocation::Path(PathParameter {
            required: true,
            location: "path".to_owned(),
            name: text(value, "name"),
            kind: text(value, "type"),
        })),
        _ => None,
    });
    locations.map(ParametersItem::at).collect()
}
