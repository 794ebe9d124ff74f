//! The operations of the clients.

use longshore_engine::Propagation;
use longshore_model::PatchKind;

use super::kind::{Key, Kind, Via};

/// An operation, and the version of the API it uses for custom objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub via: Via,
    pub operation: Operation,
}

/// What a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Label(u8),
    Value(u8),
    /// The finalizers, as bits.
    Finalizers(u8),
}

/// The version, or uid, a write sends along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    None,
    /// The one just read.
    Fresh,
    /// One that nothing has any more.
    Stale,
}

/// How a status is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Patch(PatchKind),
    /// As a whole, with what was read before.
    Put(Precondition),
}

/// Which state a read is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Latest,
    /// So many revisions ago.
    Ago(u8),
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Now,
    Ago(u8),
    /// With initial events whose end is told.
    Initial,
}

/// How fast a watcher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Eager,
    /// With pauses, in which it asks what a bookmark could say.
    Halting,
    /// Nothing until all is over.
    Asleep,
}

/// What a list or watch is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub kind: Kind,
    pub namespace: Option<&'static str>,
    pub selector: u8,
}

/// What a manager wants of a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub label: Option<u8>,
    pub value: Option<u8>,
}

/// What a client does.
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
        how: How,
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
    /// Lists, watches, and lists again when told to.
    Follow {
        scope: Scope,
        limit: Option<usize>,
    },
    /// Forget the history.
    Forget,
}

impl Operation {
    /// Whether nothing of it may be kept.
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

    /// The kind it is about.
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
            Self::Forget => None,
        }
    }
}
