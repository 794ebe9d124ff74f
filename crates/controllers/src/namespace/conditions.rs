//! What the conditions of a namespace say while it is being deleted: what is left in it and
//! what stands in the way. Types, reasons and messages are those of Kubernetes' namespace
//! controller.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// How many kinds, finalizers or errors a message names: a status must not grow with what
/// objects say.
const NAMED: usize = 100;

/// What is left in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// Numbers of objects by `RESOURCE.GROUP`.
    objects: BTreeMap<String, usize>,
    /// Numbers of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// Kinds whose objects could not be deleted, each with the reason.
    pub(super) failures: Vec<String>,
}

impl Remaining {
    /// Counts an object of a kind, `RESOURCE.GROUP`.
    pub(super) fn add(&mut self, resource: &str, finalizers: &[String]) {
        *self.objects.entry(resource.to_owned()).or_default() += 1;
        for finalizer in finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// The number of objects.
    pub(super) fn count(&self) -> usize {
        self.objects.values().sum()
    }

    /// Without the numbers. While there are pods, nothing else is deleted, and as in
    /// Kubernetes the conditions count nothing yet.
    pub(super) fn uncounted(self) -> Self {
        Self {
            failures: self.failures,
            ..Self::default()
        }
    }

    /// The reason and the message of a condition that holds.
    fn problem(&self, kind: &str) -> Option<(&'static str, String)> {
        let (reason, start, mut parts): (_, _, Vec<String>) = match kind {
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
        let more = parts.len().saturating_sub(NAMED);
        parts.truncate(NAMED);
        parts.extend((more > 0).then(|| format!("and {more} more")));
        (!parts.is_empty()).then(|| (reason, format!("{start}: {}", parts.join(", "))))
    }
}

/// The conditions in their order, with what they say when nothing is wrong.
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

/// The conditions as they should be now; nothing when `old` says the same.
pub(super) fn conditions(old: &[Value], remaining: &Remaining, now: &str) -> Option<Vec<Value>> {
    let mut new = old.to_vec();
    for (kind, reason, message) in CONDITIONS {
        let (status, reason, message) = match remaining.problem(kind) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let place = new.iter().position(|condition| condition["type"] == kind);
        let since = place
            .map(|place| &new[place])
            .filter(|condition| condition["status"] == status)
            .map_or_else(|| now.into(), |old| old["lastTransitionTime"].clone());
        let condition = json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since,
        });
        match place {
            Some(place) => new[place] = condition,
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
    fn an_empty_namespace_has_no_problem() {
        let found = conditions(&[], &Remaining::default(), NOW).unwrap();
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|condition| condition["status"] == "False"));
        assert_eq!(conditions(&found, &Remaining::default(), "later"), None);
    }

    #[test]
    fn a_message_stays_short() {
        let mut remaining = Remaining::default();
        let finalizers: Vec<String> = (0..5000).map(|n| format!("a.b/{n:04}")).collect();
        remaining.add("configmaps.", &finalizers);
        let found = conditions(&[], &remaining, NOW).unwrap();
        let message = of(&found, "NamespaceFinalizersRemaining")["message"].clone();
        let message = message.as_str().unwrap();
        assert!(message.ends_with("a.b/0099 in 1 resource instances, and 4900 more"));
    }

    #[test]
    fn what_is_left_is_counted() {
        let mut remaining = Remaining::default();
        remaining.add("configmaps.", &["a.b/c".to_owned()]);
        remaining.add("configmaps.", &[]);
        remaining.add("jobs.batch", &["a.b/c".to_owned()]);
        remaining.failures.push("no".to_owned());
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
        // What has not changed keeps its time.
        let discovery = of(&found, "NamespaceDeletionDiscoveryFailure");
        assert_eq!(discovery["lastTransitionTime"], NOW);
        let uncounted = conditions(&[], &remaining.uncounted(), NOW).unwrap();
        assert_eq!(
            of(&uncounted, "NamespaceContentRemaining")["status"],
            "False"
        );
    }
}
