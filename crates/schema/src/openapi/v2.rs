//! OpenAPI v2 as protobuf: `/openapi/v2` with `Accept:
//! application/com.github.proto-openapi.spec.v2@v1.0+protobuf`.

use std::collections::BTreeMap;

use longshore_model::release;
use prost::Message;
use serde_json::Value;

use super::{
    custom::{self, Describe},
    extension::{KIND, kind_value},
    gnostic::{
        AdditionalProperties, AnyValue, Document, Info, Items, NamedAny, NamedPathItem,
        NamedSchema, NamedSchemas, NonBodyParameter, Operation, ParameterLocation, ParameterValue,
        ParametersItem, PathItem, PathParameter, Paths, QueryParameter, Schema, TypeItem,
    },
    paths, schemas,
};
use crate::definitions::reference;

/// The content type of the response. The type that clients request contains an
/// `@`, which is invalid in a content type; kubectl itself cannot parse such a
/// response.
pub const V2_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document of all kinds as gnostic's message `openapi.v2.Document`.
#[must_use]
pub fn v2_protobuf<K: Describe>(kinds: &[K]) -> Vec<u8> {
    let definitions = v2_definitions(kinds)
        .into_iter()
        .map(|(name, definition)| NamedSchema {
            value: Some(schema_of(&definition)),
            name,
        })
        .collect();
    // Sorted by path, as in the JSON documents.
    let paths: BTreeMap<_, _> = kinds
        .iter()
        .flat_map(paths::of_kind)
        .map(|path| (path.path.clone(), path_item(&path)))
        .collect();
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

/// Converts the definitions to v2, which does not support `oneOf`: a type with
/// alternatives becomes a string or is omitted.
pub(super) fn v2_definitions<K: Describe>(kinds: &[K]) -> BTreeMap<String, Value> {
    let definitions = schemas::of_kinds(kinds).into_iter();
    let in_v2 = definitions.map(|(name, definition)| {
        let mut definition = custom::definition_for_v2(&definition);
        if matches!(name.rsplit('.').next(), Some("Quantity" | "IntOrString")) {
            definition["type"] = "string".into();
        }
        (name, definition)
    });
    in_v2.collect()
}

fn schema_of(value: &Value) -> Schema {
    let text = |word: &str| value[word].as_str().unwrap_or_default().to_owned();
    let vendor_extension = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(word, _)| word.starts_with("x-"))
        .map(|(word, value)| extension(word, value))
        .collect();
    let description = text("description");
    if let Some(name) = reference(value) {
        let reference = format!("#/definitions/{name}");
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

/// JSON is valid YAML.
fn extension(name: &str, value: &Value) -> NamedAny {
    NamedAny {
        name: name.to_owned(),
        value: Some(AnyValue {
            yaml: format!("{value}\n"),
        }),
    }
}

fn path_item(path: &paths::Path) -> PathItem {
    let mut item = PathItem {
        parameters: path
            .variables
            .iter()
            .map(|name| {
                parameter(ParameterLocation::Path(PathParameter {
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
                parameter(ParameterLocation::Query(QueryParameter {
                    location: "query".to_owned(),
                    description: (*description).to_owned(),
                    name: (*name).to_owned(),
                    kind: (*kind).to_owned(),
                }))
            })
            .collect(),
        vendor_extension: vec![
            extension("x-kubernetes-action", &operation.action.into()),
            extension(KIND, &kind_value(group, version, kind)),
        ],
    }
}

fn parameter(location: ParameterLocation) -> ParametersItem {
    let non_body_parameter = Some(NonBodyParameter {
        location: Some(location),
    });
    ParametersItem {
        parameter: Some(ParameterValue { non_body_parameter }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::kind::BUILTIN;

    use super::*;

    fn document() -> Document {
        Document::decode(v2_protobuf(BUILTIN).as_slice()).unwrap()
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
}
