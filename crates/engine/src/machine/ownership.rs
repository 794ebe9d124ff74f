//! Who manages which fields, in the writes of the machine.

use serde_json::Value;

use crate::{
    Object, Subresource, WriteOptions,
    kinds::Entry as Kind,
    managed::{self, Entry, Scope, Version},
    view::View,
};

use super::Draftable;

/// Who makes a write, and what it says of managed fields.
#[derive(Debug, Clone)]
pub(super) enum Author {
    /// What the write changes is this manager's.
    Manager {
        name: String,
        /// `metadata.managedFields`, if it was sent.
        sent: Option<Value>,
    },
    /// The entries after an apply are known already.
    Applied(Vec<Entry>),
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

    /// The entries of a new object; their time is yet to come.
    pub(super) fn of_new(&self, kind: &Kind, view: &View, object: &Draftable) -> Vec<Entry> {
        match self {
            Self::Applied(entries) => entries.clone(),
            Self::Manager { name, sent } => with_scope(kind, view, Subresource::None, |scope| {
                let base = managed::base(sent.as_ref(), "");
                managed::record(scope, base, None, object, name, "")
            }),
        }
    }

    /// The entries after an update.
    pub(super) fn of_update(
        self,
        place: (&Kind, &View, Subresource),
        old: &Object,
        states: (&Draftable, &Draftable),
        now: &str,
    ) -> Vec<Entry> {
        let (kind, view, subresource) = place;
        let (before, after) = states;
        match self {
            Self::Applied(entries) => entries,
            Self::Manager { name, sent } => {
                // A subresource does not change managed fields by hand.
                let sent = sent.filter(|_| subresource == Subresource::None);
                let mut base = managed::base(sent.as_ref(), old.managed());
                with_scope(kind, view, subresource, |scope| {
                    // A kind's types change with its definition only.
                    if view.is_newer_than(old) {
                        managed::realign(scope, &mut base, before);
                    }
                    managed::record(scope, base, Some(before), after, &name, now)
                })
            }
        }
    }

    /// Whether a write that changes nothing else may change managed fields.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Manager { sent: None, .. })
    }
}

/// Gives the entries that have none yet their time.
pub(super) fn date(entries: &mut [Entry], now: &str) {
    for time in entries.iter_mut().filter_map(|entry| entry.time.as_mut()) {
        if time.is_empty() {
            now.clone_into(time);
        }
    }
}

/// Calls `work` with what a write to a kind is about.
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
                form: view.form_of(other),
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
        },
        has_status: view.info.has_subresource("status"),
        has_fixed_spec: kind.facts.has_fixed_spec,
        status_metadata: kind.facts.status_metadata,
        versions: &versions,
    })
}
