//! The subset of gnostic's protobuf messages for OpenAPI v2 (`openapi.v2`) that
//! API servers use.

use prost::{Message, Oneof};
use serde_json::Value;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Document {
    #[prost(string, tag = "1")]
    pub(super) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(super) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(super) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(super) definitions: Option<NamedSchemas>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(super) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathItem {
    #[prost(message, optional, tag = "2")]
    pub(super) get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    pub(super) put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    pub(super) post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    pub(super) delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    pub(super) patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    pub(super) parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "5")]
    pub(super) operation_id: String,
    #[prost(message, repeated, tag = "8")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, repeated, tag = "13")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(super) parameter: Option<ParameterValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParameterValue {
    #[prost(message, optional, tag = "2")]
    pub(super) non_body_parameter: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NonBodyParameter {
    #[prost(oneof = "ParameterLocation", tags = "3, 4")]
    pub(super) location: Option<ParameterLocation>,
}

/// The location of a parameter in a request.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum ParameterLocation {
    #[prost(message, tag = "3")]
    Query(QueryParameter),
    #[prost(message, tag = "4")]
    Path(PathParameter),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryParameter {
    #[prost(string, tag = "2")]
    pub(super) location: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "6")]
    pub(super) kind: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) location: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) kind: String,
}

/// `Definitions` and `Properties`, which have the same format.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schema {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(string, repeated, tag = "19")]
    pub(super) required: Vec<String>,
    #[prost(message, optional, boxed, tag = "21")]
    pub(super) additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    pub(super) kind: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    pub(super) items: Option<Items>,
    #[prost(message, optional, tag = "25")]
    pub(super) properties: Option<NamedSchemas>,
    #[prost(message, repeated, tag = "31")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) schema: Option<Box<Schema>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    pub(super) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Items {
    #[prost(message, repeated, tag = "1")]
    pub(super) schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// Any value, encoded as YAML.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(string, tag = "2")]
    pub(super) yaml: String,
}

impl NamedAny {
    /// An extension. JSON is valid YAML.
    pub(super) fn json(name: &str, value: &Value) -> Self {
        Self {
            name: name.to_owned(),
            value: Some(AnyValue {
                yaml: format!("{value}\n"),
            }),
        }
    }
}

impl ParametersItem {
    /// A parameter that is not in the body.
    pub(super) fn at(location: ParameterLocation) -> Self {
        let non_body_parameter = Some(NonBodyParameter {
            location: Some(location),
        });
        Self {
            parameter: Some(ParameterValue { non_body_parameter }),
        }
    }
}
