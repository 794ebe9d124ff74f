//! What a write is about, as far as ownership goes: the type, the version, the
//! part of the object, and which fields count there.

use std::borrow::Cow;

use longshore_schema::OwnedType;

use super::{
    compare::{self, Changes},
    entry::{Manager, Operation},
    set::FieldSet,
};
use crate::json::Object;

/// The manager that stands for what was there before anything was tracked.
pub(super) const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that takes over from those that are too many.
pub(super) const ANCIENT: &str = "ancient-changes";

const SPEC: &str = "f:spec";
const STATUS: &str = "f:status";
const CONDITIONS: &str = "f:conditions";

/// Fields of metadata that nobody owns.
const UNOWNED: &[&str] = &[
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:clusterName",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
];

/// What a write is about.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The type of the object in the version of the request.
    pub(crate) root: OwnedType<'a>,
    /// That version, as `apps/v1`.
    pub(crate) api_version: &'a str,
    /// `status`, or nothing.
    pub(crate) subresource: &'a str,
    /// Whether the kind's status is a subresource, which other writes do not
    /// change.
    pub(crate) has_status: bool,
    /// Whether the spec is the server's own, without a manager.
    pub(crate) has_fixed_spec: bool,
    /// The fields of the metadata that a write of the status changes.
    pub(crate) status_metadata: &'a [&'a str],
    /// The type of the object in another version that is served.
    pub(crate) versions: &'a dyn Fn(&str) -> Option<Version<'a>>,
}

/// Another version of the kind.
#[derive(Clone, Copy)]
pub(crate) struct Version<'a> {
    /// The type of its objects.
    pub(crate) root: OwnedType<'a>,
    /// What brings an object of the request's version into its form, where
    /// fields have other names there.
    pub(crate) form: Option<fn(Object) -> Object>,
}

impl Version<'_> {
    /// An object of the request's version in the form of this one.
    pub(super) fn formed<'o>(&self, object: &'o Object) -> Cow<'o, Object> {
        match self.form {
            Some(form) => Cow::Owned(form(object.clone())),
            None => Cow::Borrowed(object),
        }
    }
}

impl<'a> Scope<'a> {
    /// A version; `None` when it is not served.
    pub(super) fn version(&self, api_version: &str) -> Option<Version<'a>> {
        if api_version == self.api_version {
            Some(Version {
                root: self.root,
                form: None,
            })
        } else {
            (self.versions)(api_version)
        }
    }

    /// A manager of this write.
    pub(super) fn manager(&self, name: &str, operation: Operation) -> Manager {
        Manager {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }

    /// What of a set this write can change.
    pub(super) fn in_reach(&self, mut set: FieldSet) -> FieldSet {
        if self.has_fixed_spec {
            set.inside.retain(|(element, _)| &**element != SPEC);
        }
        // Of a status each of these writes a part.
        if self.has_fixed_spec && matches!(self.subresource, "status" | "approval") {
            let conditions = self.subresource == "approval";
            let statuses = set.inside.iter_mut();
            for (_, inner) in statuses.filter(|(element, _)| &**element == STATUS) {
                let is_it = |element: &str| (element == CONDITIONS) == conditions;
                inner.inside.retain(|(element, _)| is_it(element));
            }
        }
        if self.subresource == "approval" {
            set.inside
                .retain(|(element, inner)| &**element != STATUS || !inner.inside.is_empty());
        } else if self.subresource == "status" {
            set.inside.retain_mut(|(element, inner)| match &**element {
                STATUS => true,
                "f:metadata" => {
                    inner.inside.retain(|(element, _)| {
                        let name = element.strip_prefix("f:");
                        name.is_some_and(|name| self.status_metadata.contains(&name))
                    });
                    !inner.inside.is_empty()
                }
                _ => false,
            });
        } else if self.has_status {
            set.inside.retain(|(element, _)| &**element != STATUS);
        }
        set
    }

    /// What changed in another version of the object.
    pub(super) fn changes_in(
        &self,
        version: &Version<'_>,
        before: &Object,
        after: &Object,
    ) -> Changes {
        let (before, after) = (version.formed(before), version.formed(after));
        self.changes(version.root, &before, &after)
    }

    /// What changed in a version of the object, as far as this write can
    /// change it.
    pub(super) fn changes(&self, root: OwnedType<'_>, before: &Object, after: &Object) -> Changes {
        let Changes { changed, removed } = compare::objects(root, before, after);
        Changes {
            changed: self.in_reach(changed),
            removed: self.in_reach(removed),
        }
    }
}

/// Without what the server alone sets.
pub(super) fn ownable(mut set: FieldSet) -> FieldSet {
    set.inside.retain_mut(|(element, inner)| match &**element {
        "f:apiVersion" | "f:kind" => false,
        "f:metadata" => {
            inner.owned = false;
            inner
                .inside
                .retain(|(element, _)| !UNOWNED.contains(&&**element));
            !inner.is_empty()
        }
        _ => true,
    });
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_18_what_only_the_server_sets_is_nobodys() {
        let set = FieldSet::default()
            .with(&["f:apiVersion"])
            .with(&["f:metadata"])
            .with(&["f:metadata", "f:name"])
            .with(&["f:metadata", "f:uid"]);
        assert!(ownable(set.clone()).is_empty());
        let labels = ["f:metadata", "f:labels", "f:a"];
        assert_eq!(
            ownable(set.with(&labels)),
            FieldSet::default().with(&labels)
        );
    }

    #[test]
    fn rule_15_each_endpoint_owns_its_part() {
        let scope = |subresource, has_status| Scope {
            root: OwnedType::Any,
            api_version: "v1",
            subresource,
            has_status,
            has_fixed_spec: false,
            status_metadata: &["labels"],
            versions: &|_| None,
        };
        let set = || {
            FieldSet::default()
                .with(&["f:metadata", "f:annotations", "f:c"])
                .with(&["f:metadata", "f:labels", "f:b"])
                .with(&["f:spec"])
                .with(&["f:status", "f:a"])
        };
        let (annotation, label) = (".metadata.annotations.c", ".metadata.labels.b");
        for (subresource, has_status, paths) in [
            ("", true, vec![".spec", annotation, label]),
            ("", false, vec![".spec", annotation, label, ".status.a"]),
            ("status", true, vec![label, ".status.a"]),
        ] {
            assert_eq!(
                scope(subresource, has_status).in_reach(set()).paths(),
                paths
            );
        }
    }
}
