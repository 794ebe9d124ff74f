//! The rights that a run needs.

use std::collections::{BTreeMap, BTreeSet};

use longshore_client::Cluster;
use serde_json::{Value, json};

use super::{Finding, Needs, Purpose};
use crate::explain::Cause;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A right in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The verb, as `create`.
    pub verb: &'static str,
    /// The API group; empty for the oldest kinds.
    pub group: &'static str,
    /// The kind's plural, as `pods`.
    pub resource: &'static str,
    /// A part of it, as `log`; or nothing.
    pub subresource: &'static str,
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

    /// All of them at once: who has it need not be asked for the others.
    pub(super) const EVERYTHING: Self = Self::new("*", "*", "*");

    /// Whether the user has it; `None` where the server does not say.
    pub(super) async fn is_given(self, cluster: &Cluster, namespace: &str) -> Option<bool> {
        let review = self.review(namespace);
        let answer = cluster.proxy().post(REVIEWS, &[], &review).await.ok()?;
        answer["status"]["allowed"].as_bool()
    }

    /// The review that asks for it.
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

    /// As `kubectl create role --resource` takes it.
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

/// The rights that a plan needs.
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
            // What was created is then given its owner.
            rights.push(Right::new("create", group, resource));
            rights.push(Right::new("patch", group, resource));
        }
    }
    if purpose == Purpose::Follow {
        for verb in ["get", "list", "watch"] {
            rights.push(Right::new(verb, "", "pods"));
            rights.push(Right::new(verb, "batch", "jobs"));
        }
        rights.push(Right {
            subresource: "log",
            ..Right::new("get", "", "pods")
        });
    }
    rights
}

/// All that is missing, in one sentence.
pub(super) fn judge(namespace: &str, lacks: &[Right]) -> Option<Finding> {
    let mut by_target: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for right in lacks {
        by_target
            .entry(right.target())
            .or_default()
            .insert(right.verb);
    }
    // Kinds that lack the same verbs are one role.
    let mut by_verbs: BTreeMap<BTreeSet<&str>, Vec<String>> = BTreeMap::new();
    for (target, verbs) in by_target {
        by_verbs.entry(verbs).or_default().push(target);
    }
    if by_verbs.is_empty() {
        return None;
    }
    let list = |verbs: &BTreeSet<&str>, between: &str| {
        let verbs: Vec<&str> = verbs.iter().copied().collect();
        verbs.join(between)
    };
    let what: Vec<String> = by_verbs
        .iter()
        .map(|(verbs, targets)| format!("{} {}", list(verbs, ", "), targets.join(", ")))
        .collect();
    let several = by_verbs.len() > 1;
    let roles: Vec<String> = by_verbs
        .iter()
        .enumerate()
        .map(|(n, (verbs, targets))| {
            let number = if several { format!("-{}", n + 1) } else { String::new() };
            format!(
                "`kubectl create role longshore{number} --namespace {namespace} --verb={} --resource={}`",
                list(verbs, ","),
                targets.join(",")
            )
        })
        .collect();
    let bind = if several { "each with" } else { "with" };
    Some(Finding::new(
        Cause::Rights,
        format!(
            "you may not {} in the namespace {namespace:?}",
            what.join("; ")
        ),
        format!(
            "have an administrator run {}, and bind it to you, {bind} `kubectl create rolebinding`",
            roles.join(" and ")
        ),
    ))
}
