//! The `AdmissionReview` that a webhook receives.

use serde_json::{Map, Value, json};

use super::{
    attributes::{Attributes, Operation, Resource},
    client,
};

/// A version of `AdmissionReview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// The objects of a request in one version.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    pub(super) object: Option<Value>,
    pub(super) old_object: Option<Value>,
}

impl Objects {
    /// The size of the objects as JSON.
    pub(super) fn size(&self) -> usize {
        client::size(&[&self.object, &self.old_object])
    }
}

/// Creates a review. `resource` is the version in which the webhook receives
/// the objects.
pub(super) fn review(
    (version, uid): (ReviewVersion, &str),
    attributes: &Attributes,
    operation: Operation,
    resource: &Resource,
    objects: Objects,
) -> Value {
    let mut request = request(attributes, operation, resource);
    request.insert("uid".to_owned(), uid.into());
    request.insert("object".to_owned(), objects.object.unwrap_or_default());
    request.insert(
        "oldObject".to_owned(),
        objects.old_object.unwrap_or_default(),
    );
    json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": request})
}

/// Describes a request, without its objects.
pub(super) fn request(
    attributes: &Attributes,
    operation: Operation,
    resource: &Resource,
) -> Map<String, Value> {
    let kind = |resource: &Resource| {
        let kind = &resource.kind;
        json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
    };
    let names =
        |of: &Resource| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let mut request = Map::new();
    let mut put = |field: &str, value: Value| {
        if value.as_str() != Some("") {
            request.insert(field.to_owned(), value);
        }
    };
    put("kind", kind(resource));
    put("resource", names(resource));
    put("subResource", attributes.subresource.as_str().into());
    put("requestKind", kind(&attributes.resource));
    put("requestResource", names(&attributes.resource));
    put("requestSubResource", attributes.subresource.as_str().into());
    put("name", attributes.name.as_str().into());
    put("namespace", attributes.namespace.as_str().into());
    put("operation", operation.as_str().into());
    put("userInfo", attributes.user.info());
    put("dryRun", attributes.dry_run.into());
    put("options", attributes.options_of(operation));
    request
}

impl ReviewVersion {
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}
