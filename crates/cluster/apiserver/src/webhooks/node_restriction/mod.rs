//! Kubernetes' admission plugin NodeRestriction: a node may change only its own Node, Lease,
//! CSINode and ResourceSlices, and the pods that are bound to it. It gets tokens and certificates
//! only for itself and these pods.

mod certificate;
mod compare;
mod node;
mod pod;
mod token;

use longshore_engine::{Engine, Error, ReadVersion, Subject};
use serde_json::Value;

use super::{
    attributes::{Attributes, Operation},
    write_rules::Dependencies,
};
use crate::user::User;

/// The namespace of the Leases of nodes.
const LEASES: &str = "kube-node-lease";

/// Restricts the changes of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeRestriction {
    /// The name of the node; empty if it is not known.
    node: String,
}

/// A change that a node requests.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) engine: &'a Engine,
    /// Collects the objects that are read.
    pub(super) dependencies: &'a Dependencies,
    pub(super) attributes: &'a Attributes,
    pub(super) operation: Operation,
    /// The name of the object; empty if it will be generated.
    pub(super) name: &'a str,
    /// The new object; null for a delete.
    pub(super) object: &'a Value,
    /// The stored object; null for a create.
    pub(super) old_object: &'a Value,
}

impl NodeRestriction {
    /// The restriction of a user; `None` if the user is not a node.
    pub(crate) fn of(user: &User) -> Option<Self> {
        let node = user.node()?.to_owned();
        Some(Self { node })
    }

    /// Checks a change.
    ///
    /// # Errors
    /// 403 if the node may not request the change; 404 if an object that it names does not exist.
    pub(super) fn check(&self, change: &Change<'_>) -> Result<(), Error> {
        if change.operation == Operation::Connect {
            return Ok(());
        }
        let node = self.node.as_str();
        if node.is_empty() {
            let user = &change.attributes.user.name;
            return Err(change.forbidden(format!("could not determine node from user {user:?}")));
        }
        let Attributes {
            resource,
            subresource,
            ..
        } = change.attributes;
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "pods") => match subresource.as_str() {
                "" => pod::check(node, change),
                "status" => pod::check_status(node, change),
                "eviction" => pod::check_eviction(node, change),
                other => Err(change.forbidden(format!(
                    "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
                ))),
            },
            ("", "nodes") => node::check(node, change),
            ("", "persistentvolumeclaims") => match subresource.as_str() {
                "status" => check_claim_status(node, change),
                _ => Err(change.forbidden("may only update PVC status")),
            },
            ("", "serviceaccounts") => token::check(node, change),
            ("certificates.k8s.io", "certificatesigningrequests") => {
                certificate::check(node, change)
            }
            ("certificates.k8s.io", "podcertificaterequests") => {
                certificate::check_of_pod(node, change)
            }
            ("coordination.k8s.io", "leases") => check_lease(node, change),
            ("storage.k8s.io", "csinodes") => change.check_own(node, "CSINode"),
            ("resource.k8s.io", "resourceslices") => check_slice(node, change),
            _ => Ok(()),
        }
    }
}

impl Change<'_> {
    /// 403 for the object of the request.
    fn forbidden(&self, reason: impl Into<String>) -> Error {
        let metadata = &self.object["metadata"];
        let names = [
            self.name,
            metadata["name"].as_str().unwrap_or_default(),
            metadata["generateName"].as_str().unwrap_or_default(),
        ];
        let name = names.into_iter().find(|name| !name.is_empty());
        let resource = &self.attributes.resource;
        Error::Forbidden {
            subject: Subject {
                group: resource.group.as_str().into(),
                resource: resource.plural.as_str().into(),
                kind: resource.kind.kind.to_string().into(),
                name: name.unwrap_or("Unknown").into(),
            },
            reason: reason.into(),
            causes: Vec::new(),
        }
    }

    fn unexpected(&self) -> Error {
        let operation = self.operation.as_str();
        self.forbidden(format!("unexpected operation {operation:?}"))
    }

    /// Checks that an object has the name of the node.
    fn check_own(&self, node: &str, what: &str) -> Result<(), Error> {
        match self.name == node {
            true => Ok(()),
            false => Err(self.forbidden(format!(
                "can only access {what} with the same name as the requesting node"
            ))),
        }
    }

    /// Reads another object of the core group. The error has the form that Kubernetes'
    /// caches use.
    fn read(&self, plural: &str, namespace: &str, name: &str) -> Result<Value, Error> {
        self.read_of_group("", plural, namespace, name)
    }

    fn read_of_group(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, Error> {
        let missing = || {
            let singular = plural.trim_end_matches('s');
            Error::NotFound(Subject {
                group: group.into(),
                resource: singular.into(),
                kind: singular.into(),
                name: name.into(),
            })
        };
        let kind = self.engine.find(group, "v1", plural).ok_or_else(missing)?;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let found = self.engine.get(&kind, namespace, name, ReadVersion::Latest);
        let object = found.as_ref().ok().map(|object| &**object);
        let at = (namespace, name);
        self.dependencies.add_object(&kind, at, object);
        let found = found.map_err(|error| match error {
            Error::NotFound(_) => missing(),
            error => error,
        })?;
        Ok(found.value())
    }
}

/// The text at a path; empty if it does not exist.
fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    let found = value.pointer(path).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Checks the change of a claim's status. A node may report its size and conditions.
fn check_claim_status(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.operation != Operation::Update {
        return Err(change.unexpected());
    }
    const REPORTED: [&str; 4] = [
        "capacity",
        "conditions",
        "allocatedResourceStatuses",
        "allocatedResources",
    ];
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        if let Some(Value::Object(status)) = claim.get_mut("status") {
            status.retain(|field, _| !REPORTED.contains(&field.as_str()));
        }
        if let Some(Value::Object(metadata)) = claim.get_mut("metadata") {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        claim
    };
    match compare::differing(&rest(change.old_object), &rest(change.object)) {
        None => Ok(()),
        Some(fields) => Err(change.forbidden(format!(
            "node {node:?} is not allowed to update fields other than status.quantity and status.conditions: {fields}"
        ))),
    }
}

fn check_lease(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.attributes.namespace != LEASES {
        return Err(change.forbidden(format!(
            "can only access leases in the {LEASES:?} system namespace"
        )));
    }
    change.check_own(node, "node lease")
}

fn check_slice(node: &str, change: &Change<'_>) -> Result<(), Error> {
    let (slice, verb) = match change.operation {
        Operation::Create => (change.object, "create"),
        Operation::Delete => (change.old_object, "delete"),
        Operation::Update | Operation::Connect => return Ok(()),
    };
    match text(slice, "/spec/nodeName") == node {
        true => Ok(()),
        false => Err(change.forbidden(format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        ))),
    }
}
