//! The scope of a write for field ownership: type, version, subresource, and
//! the fields that it can change.

use std::borrow::Cow;

use longshore_builtin::json::Object;
use longshore_schema::OwnedType;

use super::{
    compare::{self, Changes},
    entry::{Manager, Operation},
    set::FieldSet,
};

/// The manager of fields that existed before ownership was tracked.
pub(super) const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager into which the oldest managers are merged.
pub(super) const ANCIENT: &str = "ancient-changes";

const SPEC: &str = "f:spec";
const STATUS: &str = "f:status";
const CONDITIONS: &str = "f:conditions";

/// Metadata fields without owners.
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

/// The scope of a write.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The type of the object in the version of the request.
    pub(crate) root: OwnedType<'a>,
    /// The version of the request, for example `apps/v1`.
    pub(crate) api_version: &'a str,
    /// `status`, or empty.
    pub(crate) subresource: &'a str,
    /// True if the status is a subresource that other writes cannot change.
    pub(crate) has_status: bool,
    /// True if only the server writes the spec, without a manager.
    pub(crate) has_fixed_spec: bool,
    /// Metadata fields that a status update changes.
    pub(crate) status_metadata: &'a [&'a str],
    /// Looks up the type of the object in another served version.
    pub(crate) versions: &'a dyn Fn(&str) -> Option<Version<'a>>,
}

/// Keeps only the resources of containers.
fn retain_resources(containers: &mut FieldSet) {
    containers.owned = false;
    containers.inside.retain_mut(|(_, container)| {
        container.owned = false;
        let mut fields = std::mem::take(&mut container.inside);
        fields.retain(|(field, _)| matches!(&**field, "f:resources" | "f:resizePolicy"));
        container.inside = fields;
        !container.inside.is_empty()
    });
}

/// Another version of the kind.
#[derive(Clone, Copy)]
pub(crate) struct Version<'a> {
    /// The type of the objects.
    pub(crate) root: OwnedType<'a>,
    /// Converts an object from the version of the request, if field names
    /// differ between the versions.
    pub(crate) form: Option<fn(Object) -> Object>,
}

impl Version<'_> {
    /// Converts an object from the version of the request to this version.
    pub(super) fn converted<'o>(&self, object: &'o Object) -> Cow<'o, Object> {
        match self.form {
            Some(form) => Cow::Owned(form(object.clone())),
            None => Cow::Borrowed(object),
        }
    }
}

impl<'a> Scope<'a> {
    /// Looks up a version; `None` if it is not served.
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

    /// The manager that performs this write.
    pub(super) fn manager(&self, name: &str, operation: Operation) -> Manager {
        Manager {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }

    /// The part of a set that this write can change.
    pub(super) fn writable_part(&self, mut set: FieldSet) -> FieldSet {
        if self.has_fixed_spec {
            set.inside.retain(|(element, _)| &**element != SPEC);
        }
        // Each of these subresources writes a part of the status.
        if self.has_fixed_spec && matches!(self.subresource, "status" | "approval") {
            let conditions = self.subresource == "approval";
            let statuses = set.inside.iter_mut();
            for (_, inner) in statuses.filter(|(element, _)| &**element == STATUS) {
                let is_it = |element: &str| (element == CONDITIONS) == conditions;
                inner.inside.retain(|(element, _)| is_it(element));
            }
        }
        if self.subresource == "ephemeralcontainers" {
            set.inside.retain_mut(|(element, inner)| {
                inner
                    .inside
                    .retain(|(field, _)| &**field == "f:ephemeralContainers");
                &**element == SPEC && !inner.inside.is_empty()
            });
        } else if self.subresource == "resize" {
            set.inside.retain_mut(|(element, inner)| {
                inner.inside.retain_mut(|(field, value)| match &**field {
                    "f:containers" | "f:initContainers" => {
                        retain_resources(value);
                        !value.inside.is_empty()
                    }
                    _ => false,
                });
                &**element == SPEC && !inner.inside.is_empty()
            });
        } else if self.subresource == "approval" {
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

    /// The changes, expressed in another version of the object.
    pub(super) fn changes_in(
        &self,
        version: &Version<'_>,
        before: &Object,
        after: &Object,
    ) -> Changes {
        let (before, after) = (version.converted(before), version.converted(after));
        self.changes(version.root, &before, &after)
    }

    /// The changes in a version of the object, restricted to the fields that
    /// this write can change.
    pub(super) fn changes(&self, root: OwnedType<'_>, before: &Object, after: &Object) -> Changes {
        let Changes { changed, removed } = compare::objects(root, before, after);
        Changes {
            changed: self.writable_part(changed),
            removed: self.writable_part(removed),
        }
    }
}

/// Removes fields that only the server sets.
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
    fn rule_18_server_set_fields_have_no_owner() {
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
    fn rule_15_each_endpoint_owns_only_its_part() {
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
                scope(subresource, has_status).writable_part(set()).paths(),
                paths
            );
        }
    }
}
