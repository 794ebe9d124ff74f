//! The operations of the clients.

use longshore_engine::Propagation;
use longshore_model::PatchKind;

use super::kind::{ApiVersion, Key, Kind};

/// An operation, and the API version that it uses for custom objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub api_version: ApiVersion,
    pub operation: Operation,
}

/// A change by a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Label(u8),
    Value(u8),
    /// The finalizers, as bits.
    Finalizers(u8),
}

/// The resource version or UID that a write sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    None,
    /// The version or UID that was just read.
    Fresh,
    /// An outdated version or UID.
    Stale,
}

/// The kind of request that writes a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusWrite {
    Patch(PatchKind),
    /// As a whole, based on an earlier read.
    Put(Precondition),
}

/// The state that a read requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Latest,
    /// This many revisions ago.
    Ago(u8),
}

/// The start of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Now,
    Ago(u8),
    /// With initial events and a bookmark at their end.
    Initial,
}

/// The speed at which a watcher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Eager,
    /// With pauses, in which it reads bookmarks.
    Pausing,
    /// Does not read until all operations are done.
    Idle,
}

/// The objects that a list or watch selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub kind: Kind,
    pub namespace: Option<&'static str>,
    pub selector: u8,
}

/// The ConfigMap that a manager applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub label: Option<u8>,
    pub value: Option<u8>,
}

/// An operation of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Create {
        key: Key,
        label: u8,
        value: u8,
        finalizer: bool,
        generated: bool,
        dry: bool,
    },
    Update {
        key: Key,
        change: Change,
        version: Precondition,
        dry: bool,
    },
    Patch {
        key: Key,
        sort: PatchKind,
        change: Change,
        version: Precondition,
        dry: bool,
    },
    /// Server-side apply.
    Apply {
        key: Key,
        manager: &'static str,
        config: Config,
        force: bool,
        version: Precondition,
        dry: bool,
    },
    Status {
        key: Key,
        how: StatusWrite,
        value: u8,
        dry: bool,
    },
    Delete {
        key: Key,
        propagation: Option<Propagation>,
        grace: Option<i64>,
        version: Precondition,
        uid: Precondition,
        dry: bool,
    },
    DeleteCollection {
        scope: Scope,
        grace: Option<i64>,
        dry: bool,
    },
    Bind {
        name: String,
        node: u8,
        dry: bool,
    },
    Finalize {
        name: String,
        dry: bool,
    },
    Get {
        key: Key,
        at: At,
    },
    List {
        scope: Scope,
        at: At,
        limit: Option<usize>,
    },
    Watch {
        scope: Scope,
        start: Start,
        pace: Pace,
    },
    /// Lists, watches, and lists again when the history has expired.
    Follow {
        scope: Scope,
        limit: Option<usize>,
    },
    /// Trims the history.
    ExpireHistory,
}

impl Operation {
    /// Returns true if the operation must not store anything.
    pub const fn is_dry(&self) -> bool {
        matches!(
            self,
            Self::Create { dry: true, .. }
                | Self::Update { dry: true, .. }
                | Self::Patch { dry: true, .. }
                | Self::Apply { dry: true, .. }
                | Self::Status { dry: true, .. }
                | Self::Delete { dry: true, .. }
                | Self::DeleteCollection { dry: true, .. }
                | Self::Bind { dry: true, .. }
                | Self::Finalize { dry: true, .. }
        )
    }

    /// The kind of the operation.
    pub const fn kind(&self) -> Option<Kind> {
        match self {
            Self::Create { key, .. }
            | Self::Update { key, .. }
            | Self::Patch { key, .. }
            | Self::Apply { key, .. }
            | Self::Status { key, .. }
            | Self::Delete { key, .. }
            | Self::Get { key, .. } => Some(key.kind),
            Self::DeleteCollection { scope, .. }
            | Self::List { scope, .. }
            | Self::Watch { scope, .. }
            | Self::Follow { scope, .. } => Some(scope.kind),
            Self::Bind { .. } => Some(Kind::Pod),
            Self::Finalize { .. } => Some(Kind::Namespace),
            Self::ExpireHistory => None,
        }
    }
}
