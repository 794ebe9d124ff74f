//! The rules of the node authorizer. Pure.

use std::{borrow::Cow, sync::LazyLock};

use crate::authorization::{attributes::Attributes, policy, rule::Rule};

/// The decision of the node authorizer about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::authorization) enum Verdict {
    Allowed,
    /// Other authorizers decide. The reason may be empty.
    NoOpinion(Cow<'static, str>),
}

/// A kind of objects that a node may read because they are related to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Related {
    Secret,
    ConfigMap,
    /// A PersistentVolumeClaim.
    Claim,
    /// A PersistentVolume.
    Volume,
    ResourceClaim,
    ServiceAccount,
    /// A VolumeAttachment.
    Attachment,
    /// A ResourceSlice.
    Slice,
    Pod,
    /// A PodCertificateRequest.
    CertificateRequest,
}

const STORAGE: &str = "storage.k8s.io";
const DEVICES: &str = "resource.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
/// The namespace of the Leases of nodes.
const LEASES: &str = "kube-node-lease";
/// The field of pods, ResourceSlices and PodCertificateRequests with their node.
const NODE_FIELD: &str = "spec.nodeName";

/// A request of a node.
struct Request<'a, F> {
    node: &'a str,
    of: &'a Attributes,
    is_related: F,
}

/// Decides whether a node may send a request. `is_related` returns true if an object, given by
/// namespace and name, is related to the node.
pub(super) fn decide(
    node: &str,
    request: &Attributes,
    is_related: impl Fn(Related, &str, &str) -> bool,
) -> Verdict {
    if node.is_empty() {
        return denied("unknown node for user \"system:node:\"");
    }
    let of = request;
    let request = Request {
        node,
        of,
        is_related,
    };
    if of.path.is_some() {
        return request.by_role();
    }
    match (of.group.as_str(), of.resource.as_str()) {
        ("", "secrets") => request.read_one(Related::Secret),
        ("", "configmaps") => request.read_one(Related::ConfigMap),
        ("", "persistentvolumeclaims") if of.subresource == "status" => {
            request.update_status(Related::Claim)
        }
        ("", "persistentvolumeclaims") => request.get(Related::Claim),
        ("", "persistentvolumes") => request.get(Related::Volume),
        (DEVICES, "resourceclaims") => request.get(Related::ResourceClaim),
        (STORAGE, "volumeattachments") => request.get(Related::Attachment),
        ("", "serviceaccounts") => request.service_account(),
        (COORDINATION, "leases") => request.lease(),
        (STORAGE, "csinodes") => request.csi_node(),
        (DEVICES, "resourceslices") => request.slice(),
        ("", "nodes") => request.node(),
        ("", "pods") => request.pod(),
        (CERTIFICATES, "podcertificaterequests") => request.certificate_request(),
        _ => request.by_role(),
    }
}

/// Returns true if the decision about a request depends on the pods of a node.
pub(super) fn needs_graph(request: &Attributes) -> bool {
    let resource = (request.group.as_str(), request.resource.as_str());
    matches!(
        resource,
        (
            "",
            "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "persistentvolumes"
                | "serviceaccounts"
        ) | (DEVICES, "resourceclaims")
    )
}

fn denied(reason: impl Into<Cow<'static, str>>) -> Verdict {
    Verdict::NoOpinion(reason.into())
}

impl<F: Fn(Related, &str, &str) -> bool> Request<'_, F> {
    /// Decides by the rules of the role `system:node`.
    fn by_role(&self) -> Verdict {
        static RULES: LazyLock<Vec<Rule>> = LazyLock::new(policy::node_rules);
        match RULES.iter().any(|rule| rule.allows(self.of)) {
            true => Verdict::Allowed,
            false => denied(""),
        }
    }

    /// Allows the request if its object is related to the node.
    fn if_related(&self, related: Related) -> Verdict {
        if self.of.name.is_empty() {
            return denied("No Object name found");
        }
        if (self.is_related)(related, &self.of.namespace, &self.of.name) {
            return Verdict::Allowed;
        }
        denied(format!(
            "no relationship found between node '{}' and this object",
            self.node
        ))
    }

    fn get(&self, related: Related) -> Verdict {
        if self.of.verb != "get" {
            return denied("can only get individual resources of this type");
        }
        if !self.of.subresource.is_empty() {
            return denied("cannot get subresource");
        }
        self.if_related(related)
    }

    /// Allows gets, and lists and watches that select one object.
    fn read_one(&self, related: Related) -> Verdict {
        if !matches!(self.of.verb.as_str(), "get" | "list" | "watch") {
            return denied("can only read resources of this type");
        }
        if !self.of.subresource.is_empty() {
            return denied("cannot read subresource");
        }
        if self.of.namespace.is_empty() {
            return denied("can only read namespaced object of this type");
        }
        self.if_related(related)
    }

    fn update_status(&self, related: Related) -> Verdict {
        match self.of.verb.as_str() {
            "update" | "patch" => self.if_related(related),
            _ => denied("can only get/update/patch this type"),
        }
    }

    fn service_account(&self) -> Verdict {
        let of = self.of;
        match (of.verb.as_str(), of.subresource.as_str()) {
            ("get", "") => self.read_one(Related::ServiceAccount),
            ("create", _) if of.name.is_empty() => {
                denied("can only create tokens for individual service accounts")
            }
            ("create", "token") => self.if_related(Related::ServiceAccount),
            ("create", _) => denied("can only create token subresource of serviceaccount"),
            _ => denied("can only create tokens for individual service accounts"),
        }
    }

    fn lease(&self) -> Verdict {
        let of = self.of;
        if !self.writes_own() {
            return denied("can only get, create, update, patch, or delete a node lease");
        }
        if of.namespace != LEASES {
            return denied(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        // Admission checks the name of a new object.
        if of.verb != "create" && of.name != self.node {
            return denied("can only access node lease with the same name as the requesting node");
        }
        Verdict::Allowed
    }

    fn csi_node(&self) -> Verdict {
        let of = self.of;
        match of.subresource.as_str() {
            "" if self.writes_own() => {}
            "" => return denied("can only get, create, update, patch, or delete a CSINode"),
            "status" => return denied("CSINode status access requires CSIVolumeHealth feature"),
            _ => return denied("cannot authorize CSINode subresources"),
        }
        // Admission checks the name of a new object.
        if of.verb != "create" && of.name != self.node {
            return denied("can only access CSINode with the same name as the requesting node");
        }
        Verdict::Allowed
    }

    /// Returns true if the verb is permitted for the node's own objects.
    fn writes_own(&self) -> bool {
        let verb = self.of.verb.as_str();
        matches!(verb, "get" | "create" | "update" | "patch" | "delete")
    }

    /// Returns true if the request selects objects of the node.
    fn selects_own(&self) -> bool {
        self.of.fields.requires(NODE_FIELD, self.node)
    }

    fn slice(&self) -> Verdict {
        let of = self.of;
        if !of.subresource.is_empty() {
            return denied("cannot authorize ResourceSlice subresources");
        }
        match of.verb.as_str() {
            // Admission checks the node in a new object.
            "create" => Verdict::Allowed,
            "get" | "update" | "patch" | "delete" => self.if_related(Related::Slice),
            "watch" | "list" | "deletecollection" if self.selects_own() => Verdict::Allowed,
            "watch" | "list" | "deletecollection" => denied(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => denied(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn certificate_request(&self) -> Verdict {
        let of = self.of;
        if !of.subresource.is_empty() {
            return denied("nodes may not access the status subresource of PodCertificateRequests");
        }
        match of.verb.as_str() {
            // Admission checks the node in a new object.
            "create" => Verdict::Allowed,
            "get" => self.if_related(Related::CertificateRequest),
            "list" | "watch" if self.selects_own() => Verdict::Allowed,
            "list" | "watch" => {
                denied("can only list/watch podcertificaterequests with nodeName field selector")
            }
            verb => denied(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn node(&self) -> Verdict {
        let of = self.of;
        let node = self.node;
        match (of.subresource.as_str(), of.verb.as_str()) {
            // Admission checks the name.
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => {
                Verdict::Allowed
            }
            ("", "get" | "list" | "watch") if of.name == node => Verdict::Allowed,
            ("", "get" | "list" | "watch") if of.name.is_empty() => denied(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            ("", "get" | "list" | "watch") => denied(format!(
                "node '{node}' cannot read '{}', only its own Node object",
                of.name
            )),
            _ => denied(""),
        }
    }

    fn pod(&self) -> Verdict {
        let of = self.of;
        match (of.subresource.as_str(), of.verb.as_str()) {
            ("", "get") => self.if_related(Related::Pod),
            ("", "list" | "watch") if self.selects_own() => Verdict::Allowed,
            ("", "list" | "watch") if !of.name.is_empty() => self.if_related(Related::Pod),
            ("", "list" | "watch") => {
                denied("can only list/watch pods with spec.nodeName field selector")
            }
            // Admission checks the pod.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Verdict::Allowed
            }
            _ => denied(""),
        }
    }
}
