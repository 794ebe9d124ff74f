//! The conditions of a namespace in deletion: its remaining objects and the obstacles to their
//! deletion. Types, reasons and messages are the same as in Kubernetes' namespace controller.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The maximum number of kinds, finalizers or errors in a message, so that the
/// status stays small.
const MAX_LISTED: usize = 100;

/// The remaining objects of a namespace.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// The number of objects by `RESOURCE.GROUP`.
    objects: BTreeMap<String, usize>,
    /// The number of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// The versions whose kinds could not be discovered, with the errors.
    pub(super) undiscovered: Vec<String>,
    /// The kinds whose objects could not be deleted, with the errors.
    pub(super) failures: Vec<String>,
}

impl Remaining {
    /// Adds an object of a kind, `RESOURCE.GROUP`.
    pub(super) fn add(&mut self, resource: &str, finalizers: &[String]) {
        *self.objects.entry(resource.to_owned()).or_default() += 1;
        for finalizer in finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// Returns the number of objects.
    pub(super) fn count(&self) -> usize {
        self.objects.values().sum()
    }

    /// Removes the counts. As in Kubernetes, nothing else is deleted while there
    /// are pods, and the conditions do not contain counts yet.
    pub(super) fn uncounted(self) -> Self {
        Self {
            undiscovered: self.undiscovered,
            failures: self.failures,
            ..Self::default()
        }
    }

    /// Returns the reason and the message of a condition whose status is True.
    fn problem(&self, kind: &str) -> Option<(&'static str, String)> {
        let (reason, start, mut parts): (_, _, Vec<String>) = match kind {
            "NamespaceDeletionDiscoveryFailure" => (
                "DiscoveryFailed",
                format!(
                    "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs",
                    self.undiscovered.len()
                ),
                self.undiscovered.clone(),
            ),
            "NamespaceDeletionContentFailure" => (
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining",
                    self.failures.len()
                ),
                self.failures.clone(),
            ),
            "NamespaceContentRemaining" => {
                let parts = self.objects.iter();
                let parts = parts.map(|(kind, n)| format!("{kind} has {n} resource instances"));
                let start = "Some resources are remaining";
                ("SomeResourcesRemain", start.to_owned(), parts.collect())
            }
            "NamespaceFinalizersRemaining" => {
                let parts = self.finalizers.iter();
                let parts = parts.map(|(name, n)| format!("{name} in {n} resource instances"));
                let start = "Some content in the namespace has finalizers remaining";
                ("SomeFinalizersRemain", start.to_owned(), parts.collect())
            }
            _ => return None,
        };
        parts.sort();
        let more = parts.len().saturating_sub(MAX_LISTED);
        parts.truncate(MAX_LISTED);
        parts.extend((more > 0).then(|| format!("and {more} more")));
        (!parts.is_empty()).then(|| (reason, format!("{start}: {}", parts.join(", "))))
    }
}

/// The conditions in order, with their reasons and messages for status False.
const CONDITIONS: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        "NamespaceContentRemaining",
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

/// Returns the updated conditions, or `None` if they equal `old`.
pub(super) fn conditions(old: &[Value], remaining: &Remaining, now: &str) -> Option<Vec<Value>> {
    let mut new = old.to_vec();
    for (kind, reason, message) in CONDITIONS {
        let (status, reason, message) = match remaining.problem(kind) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let index = new.iter().position(|condition| condition["type"] == kind);
        let since = index
            .map(|index| &new[index])
            .filter(|condition| condition["status"] == status)
            .map_or_else(|| now.into(), |old| old["lastTransitionTime"].clone());
        let condition = json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since,
        });
        match index {
            Some(index) => new[index] = condition,
            None => new.push(condition),
        }
    }
    (new != old).then_some(new)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05Z";

    fn of<'a>(conditions: &'a [Value], kind: &str) -> &'a Value {
        conditions.iter().find(|c| c["type"] == kind).unwrap()
    }

    #[test]
    fn an_empty_namespace_has_no_problems() {
        let found = conditions(&[], &Remaining::default(), NOW).unwrap();
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|condition| condition["status"] == "False"));
        assert_eq!(conditions(&found, &Remaining::default(), "later"), None);
    }

    #[test]
    fn the_length_of_a_message_is_limited() {
        let mut remaining = Remaining::default();
        let finalizers: Vec<String> = (0..5000).map(|n| format!("a.b/{n:04}")).collect();
        remaining.add("configmaps.", &finalizers);
        let found = conditions(&[], &remaining, NOW).unwrap();
        let message = of(&found, "NamespaceFinalizersRemaining")["message"].clone();
        let message = message.as_str().unwrap();
        assert!(message.ends_with("a.b/0099 in 1 resource instances, and 4900 more"));
    }

    #[test]
    fn remaining_objects_are_counted() {
        let mut remaining = Remaining::default();
        remaining.add("configmaps.", &["a.b/c".to_owned()]);
        remaining.add("configmaps.", &[]);
        remaining.add("jobs.batch", &["a.b/c".to_owned()]);
        remaining.failures.push("no".to_owned());
        remaining.undiscovered.push("g/v1: gone".to_owned());
        assert_eq!(remaining.count(), 3);
        let before = conditions(&[], &Remaining::default(), NOW).unwrap();
        let found = conditions(&before, &remaining, "later").unwrap();
        assert_eq!(
            *of(&found, "NamespaceContentRemaining"),
            json!({
                "type": "NamespaceContentRemaining", "status": "True",
                "reason": "SomeResourcesRemain", "lastTransitionTime": "later",
                "message": "Some resources are remaining: configmaps. has 2 resource instances, jobs.batch has 1 resource instances",
            })
        );
        assert_eq!(
            of(&found, "NamespaceFinalizersRemaining")["message"],
            "Some content in the namespace has finalizers remaining: a.b/c in 2 resource instances"
        );
        assert_eq!(
            of(&found, "NamespaceDeletionContentFailure")["message"],
            "Failed to delete all resource types, 1 remaining: no"
        );
        let discovery = of(&found, "NamespaceDeletionDiscoveryFailure");
        assert_eq!(
            (&discovery["status"], &discovery["reason"]),
            (&json!("True"), &json!("DiscoveryFailed"))
        );
        assert_eq!(
            discovery["message"],
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: g/v1: gone"
        );
        // A condition that has not changed keeps its time.
        let parsing = of(&found, "NamespaceDeletionGroupVersionParsingFailure");
        assert_eq!(parsing["lastTransitionTime"], NOW);
        let uncounted = conditions(&[], &remaining.uncounted(), NOW).unwrap();
        assert_eq!(
            of(&uncounted, "NamespaceContentRemaining")["status"],
            "False"
        );
    }
}
