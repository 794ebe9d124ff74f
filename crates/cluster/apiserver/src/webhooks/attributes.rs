//! The attributes of a request that rules and webhooks use.

use std::sync::Arc;

use longshore_cel::{AccessRequest, Authorizer};
use longshore_model::{Gvk, KindInfo};
use serde_json::{Map, Value};

use crate::{audit::Record, user::User};

/// The operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A resource and the kind of its objects, in a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// The kind of the objects of the request. The kind of a subresource can have another group.
    pub(crate) kind: Gvk,
}

impl Resource {
    /// The resource of a kind, with the kind's own objects.
    pub(crate) fn of(info: &KindInfo) -> Self {
        Self {
            group: info.gvk.group.to_string(),
            version: info.gvk.version.to_string(),
            plural: info.plural.to_string(),
            kind: info.gvk.clone(),
        }
    }

    pub(crate) fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.plural == "namespaces"
    }
}

/// The attributes of a request for admission.
#[derive(Debug, Clone)]
pub(crate) struct Attributes {
    /// The resource of the request.
    pub(crate) resource: Resource,
    /// The same objects in other versions.
    pub(crate) equivalents: Vec<Resource>,
    /// True if a subresource has objects of a different kind.
    pub(crate) has_own_kind: bool,
    /// Empty if the request has no subresource.
    pub(crate) subresource: String,
    /// The namespace of the request. For a Namespace, it is the object's name.
    pub(crate) namespace: String,
    /// The name in the request.
    pub(crate) name: String,
    pub(crate) user: Arc<User>,
    /// Decides about the user's permissions, for expressions that ask.
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) dry_run: bool,
    /// The fields of the request's options; `None` if it has no options.
    pub(crate) options: Option<Map<String, Value>>,
    /// The record of the audit log, if it contains the request.
    pub(crate) audit: Option<Arc<Record>>,
}

impl Attributes {
    /// The authorizer, and the question whether the user may send this request.
    pub(super) fn authorization(&self) -> (Arc<dyn Authorizer>, AccessRequest) {
        let request = AccessRequest {
            group: self.resource.group.clone(),
            version: self.resource.version.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..AccessRequest::default()
        };
        (self.authorizer.clone(), request)
    }

    /// Returns true if the request changes the configuration of admission. Webhooks cannot prevent
    /// such changes.
    pub(super) fn configures_admission(&self) -> bool {
        self.resource.group == "admissionregistration.k8s.io"
    }

    /// Returns true if the request is about policies or their bindings. Policies cannot prevent
    /// such changes.
    pub(super) fn is_about_policies(&self) -> bool {
        self.configures_admission() && self.resource.plural.contains("admissionpolic")
    }

    /// The options of the operation that a request has become.
    pub(super) fn options_of(&self, operation: Operation) -> Value {
        let kind = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => return Value::Null,
        };
        let Some(mut options) = self.options.clone() else {
            return Value::Null;
        };
        options.insert("kind".into(), kind.into());
        options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
        Value::Object(options)
    }
}
