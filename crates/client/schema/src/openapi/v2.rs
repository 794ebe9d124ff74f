//! OpenAPI v2 as protobuf: `/openapi/v2` with `Accept:
//! application/com.github.proto-openapi.spec.v2@v1.0+protobuf`.

use std::collections::BTreeMap;

use longshore_model::release;
use prost::Message;
use serde_json::Value;

use super::{
    custom::Describe,
    extension::{KIND, kind_value},
    gnostic::{
        AdditionalProperties, Document, Info, Items, NamedAny, NamedPathItem, NamedSchema,
        NamedSchemas, Operation, ParameterLocation, ParametersItem, PathItem, PathParameter, Paths,
        QueryParameter, Schema, TypeItem,
    },
    merge::{DEFINITIONS, V2Part},
    paths, schemas, v2_json, v2_paths,
};
use crate::definitions;

/// The content type of the response. The type that clients request contains an
/// `@`, which is invalid in a content type; kubectl itself cannot parse such a
/// response.
pub const V2_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document of all kinds as gnostic's message `openapi.v2.Document`, with parts of the
/// documents of aggregated API servers.
#[must_use]
pub fn v2_protobuf<K: Describe>(kinds: &[K], parts: &[impl AsRef<V2Part>]) -> Vec<u8> {
    let added = match parts {
        [] => V2Part::default(),
        parts => v2_json::merged(kinds, parts).1,
    };
    let mut definitions = schemas::in_v2(kinds);
    definitions.extend(added.definitions);
    let definitions = definitions
        .into_iter()
        .map(|(name, definition)| NamedSchema {
            value: Some(schema_of(&definition)),
            name,
        })
        .collect();
    // Sorted by path, as in the JSON documents.
    let mut paths: BTreeMap<_, _> = kinds
        .iter()
        .flat_map(paths::of_kind)
        .map(|path| (path.path.clone(), path_item(&path)))
        .collect();
    for (path, value) in added.paths {
        let item = v2_paths::path_item(&value);
        paths.entry(path).or_insert(item);
    }
    let path = paths
        .into_iter()
        .map(|(name, value)| NamedPathItem {
            name,
            value: Some(value),
        })
        .collect();
    let document = Document {
        swagger: "2.0".to_owned(),
        info: Some(Info {
            title: "Kubernetes".to_owned(),
            version: release::VERSION.to_owned(),
        }),
        paths: Some(Paths { path }),
        definitions: Some(NamedSchemas {
            additional_properties: definitions,
        }),
    };
    document.encode_to_vec()
}

fn schema_of(value: &Value) -> Schema {
    let text = |word: &str| value[word].as_str().unwrap_or_default().to_owned();
    let vendor_extension = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(word, _)| word.starts_with("x-"))
        .map(|(word, value)| NamedAny::json(word, value))
        .collect();
    let description = text("description");
    let in_v2 = || value["$ref"].as_str()?.strip_prefix(DEFINITIONS);
    if let Some(name) = definitions::reference(value).or_else(in_v2) {
        let reference = format!("{DEFINITIONS}{name}");
        return Schema {
            reference,
            description,
            vendor_extension,
            ..Schema::default()
        };
    }
    let schema_at = |word: &str| value.get(word).filter(|v| v.is_object()).map(schema_of);
    Schema {
        reference: String::new(),
        format: text("format"),
        description,
        required: value["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        additional_properties: schema_at("additionalProperties").map(|schema| {
            Box::new(AdditionalProperties {
                schema: Some(Box::new(schema)),
            })
        }),
        kind: value["type"].as_str().map(|kind| TypeItem {
            value: vec![kind.to_owned()],
        }),
        items: schema_at("items").map(|schema| Items {
            schema: vec![schema],
        }),
        properties: value["properties"]
            .as_object()
            .map(|properties| NamedSchemas {
                additional_properties: properties
                    .iter()
                    .map(|(name, value)| NamedSchema {
                        name: name.clone(),
                        value: Some(schema_of(value)),
                    })
                    .collect(),
            }),
        vendor_extension,
    }
}

fn path_item(path: &paths::Path) -> PathItem {
    let mut item = PathItem {
        parameters: path
            .variables
            .iter()
            .map(|name| {
                ParametersItem::at(ParameterLocation::Path(PathParameter {
                    required: true,
                    location: "path".to_owned(),
                    name: (*name).to_owned(),
                    kind: "string".to_owned(),
                }))
            })
            .collect(),
        ..PathItem::default()
    };
    for operation in &path.operations {
        let slot = match operation.method {
            "get" => &mut item.get,
            "put" => &mut item.put,
            "post" => &mut item.post,
            "delete" => &mut item.delete,
            _ => &mut item.patch,
        };
        *slot = Some(operation_of(operation));
    }
    item
}

fn operation_of(operation: &paths::Operation) -> Operation {
    let (group, version, kind) = &operation.kind;
    Operation {
        description: operation.description.clone(),
        operation_id: operation.id.clone(),
        parameters: operation
            .parameters
            .iter()
            .map(|(name, kind, description)| {
                ParametersItem::at(ParameterLocation::Query(QueryParameter {
                    location: "query".to_owned(),
                    description: (*description).to_owned(),
                    name: (*name).to_owned(),
                    kind: (*kind).to_owned(),
                }))
            })
            .collect(),
        vendor_extension: vec![
            NamedAny::json("x-kubernetes-action", &operation.action.into()),
            NamedAny::json(KIND, &kind_value(group, version, kind)),
        ],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use longshore_model::kind::BUILTIN;
    use serde_json::json;

    use super::*;
    use crate::openapi::gnostic::NonBodyParameter;

    const NONE: &[Arc<V2Part>] = &[];

    fn document() -> Document {
        Document::decode(v2_protobuf(BUILTIN, NONE).as_slice()).unwrap()
    }

    fn definition(name: &str) -> Schema {
        let definitions = document().definitions.unwrap().additional_properties;
        definitions
            .into_iter()
            .find(|named| named.name == name)
            .unwrap()
            .value
            .unwrap()
    }

    fn property(schema: &Schema, name: &str) -> Schema {
        let properties = schema.properties.clone().unwrap().additional_properties;
        properties
            .into_iter()
            .find(|named| named.name == name)
            .unwrap()
            .value
            .unwrap()
    }

    fn yaml(extensions: &[NamedAny], name: &str) -> String {
        let found = extensions.iter().find(|named| named.name == name).unwrap();
        found.value.clone().unwrap().yaml
    }

    #[test]
    fn definitions_carry_kinds_and_patch_rules() {
        let pod = definition("io.k8s.api.core.v1.Pod");
        assert_eq!(
            yaml(&pod.vendor_extension, KIND),
            "[{\"group\":\"\",\"kind\":\"Pod\",\"version\":\"v1\"}]\n"
        );
        assert_eq!(
            property(&pod, "spec").reference,
            "#/definitions/io.k8s.api.core.v1.PodSpec"
        );
        let spec = definition("io.k8s.api.core.v1.PodSpec");
        assert_eq!(spec.required, ["containers"]);
        let volumes = property(&spec, "volumes");
        assert_eq!(volumes.kind.unwrap().value, ["array"]);
        assert_eq!(
            volumes.items.unwrap().schema[0].reference,
            "#/definitions/io.k8s.api.core.v1.Volume"
        );
        let extensions = volumes.vendor_extension;
        assert_eq!(
            yaml(&extensions, "x-kubernetes-patch-strategy"),
            "\"merge,retainKeys\"\n"
        );
        assert_eq!(
            yaml(&extensions, "x-kubernetes-patch-merge-key"),
            "\"name\"\n"
        );
        let quantity = definition("io.k8s.apimachinery.pkg.api.resource.Quantity");
        assert_eq!(quantity.kind.unwrap().value, ["string"]);
    }

    #[test]
    fn references_have_no_type() {
        fn check(schema: &Schema) {
            if !schema.reference.is_empty() {
                assert!(
                    schema.kind.is_none() && schema.properties.is_none(),
                    "{schema:?}"
                );
            }
            let properties = schema
                .properties
                .iter()
                .flat_map(|p| &p.additional_properties);
            properties.flat_map(|named| &named.value).for_each(check);
            schema
                .items
                .iter()
                .flat_map(|items| &items.schema)
                .for_each(check);
        }
        for named in document().definitions.unwrap().additional_properties {
            check(&named.value.unwrap());
        }
    }

    #[test]
    fn patches_list_the_parameters_that_kubectl_looks_for() {
        let paths = document().paths.unwrap().path;
        for info in BUILTIN {
            let gvk = &info.gvk;
            let kind = format!("{}\n", kind_value(&gvk.group, &gvk.version, &gvk.kind));
            let patch = paths
                .iter()
                .filter_map(|path| path.value.as_ref()?.patch.as_ref())
                .find(|patch| yaml(&patch.vendor_extension, KIND) == kind)
                .unwrap_or_else(|| panic!("no PATCH of {gvk}"));
            let names: Vec<_> = patch
                .parameters
                .iter()
                .filter_map(
                    |item| match item.parameter.as_ref()?.non_body_parameter.as_ref()? {
                        NonBodyParameter {
                            location: Some(ParameterLocation::Query(query)),
                        } => Some(&query.name),
                        _ => None,
                    },
                )
                .collect();
            assert_eq!(
                names,
                ["dryRun", "fieldManager", "fieldValidation", "force"]
            );
        }
    }

    #[test]
    fn parts_of_other_servers_are_added() {
        let parameter =
            |location: &str| json!({"in": location, "name": location, "type": "string"});
        let part = json!({
            "paths": {"/apis/g/v1/fish/{name}": {
                "parameters": [parameter("path"), parameter("query")],
                "patch": {
                    "operationId": "patchFish",
                    "parameters": [parameter("body"), parameter("query"), 7],
                    KIND: {"group": "g", "version": "v1", "kind": "Fish"},
                    "responses": {"200": {"schema": {"$ref": "#/definitions/g.Fish"}}},
                },
            }},
            "definitions": {"g.Fish": {"type": "object", "properties": {
                "next": {"$ref": "#/definitions/g.Fish"}}}},
        });
        let part = Arc::new(V2Part::below(part, "/apis/g/v1/").unwrap());
        let bytes = v2_protobuf(BUILTIN, &[part]);
        let document = Document::decode(bytes.as_slice()).unwrap();
        let definitions = document.definitions.unwrap().additional_properties;
        let fish = definitions
            .iter()
            .find(|named| named.name == "g.Fish")
            .unwrap();
        let next = property(fish.value.as_ref().unwrap(), "next");
        assert_eq!(next.reference, "#/definitions/g.Fish");
        let paths = document.paths.unwrap().path;
        let path = paths
            .iter()
            .find(|path| path.name == "/apis/g/v1/fish/{name}")
            .unwrap();
        let item = path.value.as_ref().unwrap();
        assert_eq!(item.parameters.len(), 2);
        let patch = item.patch.as_ref().unwrap();
        assert_eq!(
            (patch.operation_id.as_str(), patch.parameters.len()),
            ("patchFish", 1)
        );
        let kind = "{\"group\":\"g\",\"kind\":\"Fish\",\"version\":\"v1\"}\n";
        assert_eq!(yaml(&patch.vendor_extension, KIND), kind);
        assert!(
            paths
                .iter()
                .any(|path| path.name == "/api/v1/namespaces/{namespace}/pods")
        );
    }
}
