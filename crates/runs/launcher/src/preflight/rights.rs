//! The permissions that a run needs.

use std::collections::{BTreeMap, BTreeSet};

use longshore_client::Cluster;
use longshore_diagnosis::explain::Cause;
use serde_json::{Value, json};

use super::{Addon, Finding, Needs, Purpose, role};
use crate::owner::Owner;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The group and the resource of Kueue's Workloads, which are deactivated to stop a run.
const WORKLOADS: (&str, &str) = ("kueue.x-k8s.io", "workloads");

/// The groups and resources of the objects for the pod that notifies about a run.
const NOTIFIER: [(&str, &str); 3] = [
    ("", "serviceaccounts"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
];

/// A permission in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    /// The verb, such as `create`.
    pub(crate) verb: &'static str,
    /// The API group. Empty for the core group.
    pub(crate) group: &'static str,
    /// The resource, such as `pods`.
    pub(crate) resource: &'static str,
    /// The subresource, such as `log`, or an empty text.
    pub(crate) subresource: &'static str,
}

impl Right {
    pub(super) const fn new(
        verb: &'static str,
        group: &'static str,
        resource: &'static str,
    ) -> Self {
        Self {
            verb,
            group,
            resource,
            subresource: "",
        }
    }

    /// All permissions. If the user has it, the others do not have to be checked.
    pub(super) const EVERYTHING: Self = Self::new("*", "*", "*");

    /// The permission to find a Secret, as an alternative to [`Right::GET_SECRETS`].
    pub(super) const LIST_SECRETS: Self = Self::new("list", "", "secrets");
    /// The permission to find a Secret, as an alternative to [`Right::LIST_SECRETS`].
    pub(super) const GET_SECRETS: Self = Self::new("get", "", "secrets");

    /// Returns true if the user has the permission. `None` if the server does not report it.
    pub(super) async fn is_given(self, cluster: &Cluster, namespace: &str) -> Option<bool> {
        let review = self.review(namespace);
        let answer = cluster.proxy().post(REVIEWS, &[], &review).await.ok()?;
        answer["status"]["allowed"].as_bool()
    }

    /// The access review for the permission.
    fn review(self, namespace: &str) -> Value {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace, "verb": self.verb, "group": self.group,
                "resource": self.resource, "subresource": self.subresource,
            }},
        })
    }

    fn is_of_queue(self) -> bool {
        (self.group, self.resource) == WORKLOADS
    }

    /// The resource and the subresource, as in a rule of a Role.
    pub(super) fn name(self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.resource, self.subresource)
    }

    /// The resource with its group, in the notation of `kubectl create role --resource`.
    fn target(self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let Self {
            group,
            resource,
            subresource,
            ..
        } = self;
        format!("{resource}{dot}{group}{slash}{subresource}")
    }
}

/// The permissions that a plan needs.
pub(super) fn needed(needs: &Needs, purpose: Purpose) -> Vec<Right> {
    let mut rights = Vec::new();
    for (group, resource) in [
        ("batch", "jobs"),
        ("batch", "cronjobs"),
        ("jobset.x-k8s.io", "jobsets"),
        ("", "secrets"),
        ("", "services"),
    ] {
        let dot = if group.is_empty() { "" } else { "." };
        if needs
            .objects
            .contains_key(&format!("{resource}{dot}{group}"))
        {
            // Owner references are added after creation.
            rights.push(Right::new("create", group, resource));
            rights.push(Right::new("patch", group, resource));
        }
    }
    for (group, resource) in NOTIFIER {
        let dot = if group.is_empty() { "" } else { "." };
        let name = format!("{resource}{dot}{group}");
        if needs.objects.contains_key(&name) {
            rights.push(Right::new("create", group, resource));
        }
    }
    let grants = needs
        .objects
        .contains_key("roles.rbac.authorization.k8s.io");
    if grants {
        // Users can only grant permissions that they have.
        rights.push(Right::new("list", "", "events"));
    }
    if grants || purpose == Purpose::Follow {
        for verb in ["get", "list", "watch"] {
            rights.push(Right::new(verb, "", "pods"));
            rights.push(Right::new(verb, "batch", "jobs"));
        }
    }
    if purpose == Purpose::Follow {
        rights.push(Right {
            subresource: "log",
            ..Right::new("get", "", "pods")
        });
    }
    if needs.has_bundle {
        // Another run may have created it.
        rights.push(Right::LIST_SECRETS);
    }
    // Sessions are WebSockets, requests to GET, for which newer servers also require `create`.
    let sessions = [(needs.executes, "exec"), (needs.attaches, "attach")];
    for (_, subresource) in sessions.into_iter().filter(|(is_used, _)| *is_used) {
        for verb in ["get", "create"] {
            rights.push(Right {
                subresource,
                ..Right::new(verb, "", "pods")
            });
        }
    }
    let has_set = needs.addons.contains(&Addon::JobSet);
    if has_set && purpose != Purpose::Follow && !grants {
        // The submission waits for the Jobs of the JobSet.
        rights.push(Right::new("list", "batch", "jobs"));
    }
    if needs
        .addons
        .iter()
        .any(|addon| matches!(addon, Addon::Queue(_)))
    {
        rights.push(Right::new("list", WORKLOADS.0, WORKLOADS.1));
        rights.push(Right::new("patch", WORKLOADS.0, WORKLOADS.1));
    }
    rights
}

/// A finding for missing permissions that only the end of a queued run needs.
pub(super) fn check_queue(
    namespace: &str,
    lacks: &[Right],
    user: Option<&Owner>,
) -> Option<Finding> {
    let lacks: Vec<Right> = lacks
        .iter()
        .copied()
        .filter(|right| right.is_of_queue())
        .collect();
    let mut finding = missing(namespace, &lacks, user)?;
    finding
        .problem
        .push_str(", so the run cannot be cancelled, and a failed task does not stop the others");
    Some(finding)
}

/// A single finding for all missing permissions without which the run does not work.
pub(super) fn check(namespace: &str, lacks: &[Right], user: Option<&Owner>) -> Option<Finding> {
    let lacks: Vec<Right> = lacks
        .iter()
        .copied()
        .filter(|right| !right.is_of_queue())
        .collect();
    let is_of_webhook = |right: &Right| NOTIFIER.contains(&(right.group, right.resource));
    let mut finding = missing(namespace, &lacks, user)?;
    if lacks.iter().any(is_of_webhook) {
        finding.remedy.push_str(
            "; or name a service account that may get, list and watch jobs.batch and pods, and list events, in `webhook_account`; or remove `webhook`",
        );
    }
    Some(finding)
}

/// A single finding for missing permissions, with a manifest that grants them.
fn missing(namespace: &str, lacks: &[Right], user: Option<&Owner>) -> Option<Finding> {
    let mut by_target: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for right in lacks {
        by_target
            .entry(right.target())
            .or_default()
            .insert(right.verb);
    }
    // Group resources with the same missing verbs.
    let mut by_verbs: BTreeMap<BTreeSet<&str>, Vec<String>> = BTreeMap::new();
    for (target, verbs) in by_target {
        by_verbs.entry(verbs).or_default().push(target);
    }
    if by_verbs.is_empty() {
        return None;
    }
    let what: Vec<String> = by_verbs
        .iter()
        .map(|(verbs, targets)| {
            let verbs: Vec<&str> = verbs.iter().copied().collect();
            format!("{} {}", verbs.join(", "), targets.join(", "))
        })
        .collect();
    let whom = user.map_or_else(|| "you".to_owned(), ToString::to_string);
    let mut finding = Finding::new(
        Cause::Rights,
        format!(
            "you are not allowed to {} in the namespace {namespace:?}",
            what.join("; ")
        ),
        format!(
            "ask an administrator of the cluster for a Role with these permissions, bound to {whom}"
        ),
    );
    let permissions = lacks
        .iter()
        .map(|right| (right.verb, right.group, right.name()));
    let permissions: Vec<role::Permission> = permissions.collect();
    finding.manifest = user.map(|user| role::manifest(namespace, user, &permissions));
    Some(finding)
}
