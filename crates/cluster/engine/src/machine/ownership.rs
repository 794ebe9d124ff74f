//! Updates managed fields as part of the machine's writes.

use serde_json::Value;

use crate::{
    Object, Subresource, WriteOptions,
    kinds::Entry as Kind,
    managed::{self, Entry, Scope, Version},
    view::View,
};

use super::JsonObject;

/// The author of a write and its managed fields.
#[derive(Debug, Clone)]
pub(super) enum Author {
    /// This manager owns the fields that the write changes.
    Manager {
        name: String,
        /// `metadata.managedFields` of the request, if present.
        sent: Option<Value>,
    },
    /// The entries that an apply has already computed.
    Applied(Vec<Entry>),
    /// The entries of any other write, computed before admission changed the
    /// object.
    Recorded(Vec<Entry>),
}

impl Author {
    pub(super) fn new(options: &WriteOptions, sent: Option<Value>) -> Self {
        let agent = options.user_agent.as_deref();
        Self::Manager {
            name: managed::manager_name(options.field_manager.as_deref(), agent),
            sent,
        }
    }

    /// The API server itself.
    pub(super) fn server() -> Self {
        Self::Manager {
            name: "kube-apiserver".into(),
            sent: None,
        }
    }

    /// The entries of a new object; the writer sets their time.
    pub(super) fn entries_of_new(
        &self,
        kind: &Kind,
        view: &View,
        object: &JsonObject,
    ) -> Vec<Entry> {
        match self {
            Self::Applied(entries) | Self::Recorded(entries) => entries.clone(),
            Self::Manager { name, sent } => with_scope(kind, view, Subresource::None, |scope| {
                let base = managed::base(sent.as_ref(), "");
                managed::record(scope, base, None, object, name, "")
            }),
        }
    }

    /// The entries after an update.
    pub(super) fn entries_of_update(
        self,
        place: (&Kind, &View, Subresource),
        old: &Object,
        states: (&JsonObject, &JsonObject),
        now: &str,
    ) -> Vec<Entry> {
        let (kind, view, subresource) = place;
        let (before, after) = states;
        match self {
            Self::Applied(entries) | Self::Recorded(entries) => entries,
            Self::Manager { name, sent } => {
                // A write to a subresource cannot edit managed fields directly.
                let sent = sent.filter(|_| subresource == Subresource::None);
                let mut base = managed::base(sent.as_ref(), old.managed());
                with_scope(kind, view, subresource, |scope| {
                    // Field ownership of a kind changes only with its
                    // definition.
                    if view.is_newer_than(old) {
                        managed::reconcile_entries(scope, &mut base, before);
                    }
                    managed::record(scope, base, Some(before), after, &name, now)
                })
            }
        }
    }

    /// Returns true if the write cannot change managed fields without changing other fields.
    pub(super) fn leaves_managed_fields(&self) -> bool {
        matches!(self, Self::Manager { sent: None, .. })
    }
}

/// Sets the time of entries without a time.
pub(super) fn set_times(entries: &mut [Entry], now: &str) {
    for time in entries.iter_mut().filter_map(|entry| entry.time.as_mut()) {
        if time.is_empty() {
            now.clone_into(time);
        }
    }
}

/// Calls `work` with the scope of a write to a kind.
pub(super) fn with_scope<T>(
    kind: &Kind,
    view: &View,
    subresource: Subresource,
    work: impl FnOnce(&Scope<'_>) -> T,
) -> T {
    let api_version = view.info.api_version();
    let versions = |version: &str| {
        kind.views
            .iter()
            .find(|other| other.info.api_version() == version)
            .map(|other| Version {
                root: other.owned_type(),
                form: view.conversion_to(other),
            })
    };
    work(&Scope {
        root: view.owned_type(),
        api_version: &api_version,
        subresource: match subresource {
            Subresource::None => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Finalize => "finalize",
            Subresource::Approval => "approval",
            Subresource::EphemeralContainers => "ephemeralcontainers",
            Subresource::Resize => "resize",
        },
        has_status: view.info.has_subresource("status"),
        has_fixed_spec: kind.rules.has_fixed_spec,
        status_metadata: kind.rules.status_metadata,
        versions: &versions,
    })
}
