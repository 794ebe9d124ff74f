//! The operations of the clients, and how they are made up.

use longshore_engine::Propagation;
use longshore_model::PatchKind;
use proptest::prelude::*;

use super::thing::{Key, Kind};

/// What a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Label(u8),
    Value(u8),
    /// The finalizers, as bits.
    Finalizers(u8),
}

/// The version a write sends along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    None,
    /// The one just read.
    Fresh,
    /// One that nothing has any more.
    Stale,
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

/// A call of a client.
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
    Status {
        key: Key,
        sort: PatchKind,
        value: u8,
    },
    Delete {
        key: Key,
        propagation: Option<Propagation>,
        grace: Option<i64>,
        version: Precondition,
    },
    DeleteCollection {
        scope: Scope,
        grace: Option<i64>,
    },
    Bind {
        name: String,
        node: u8,
    },
    Finalize {
        name: String,
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
    /// Forget the history.
    Forget,
}

pub const NAMESPACES: [&str; 2] = ["default", "n1"];

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![4 => Just(Kind::ConfigMap), 3 => Just(Kind::Pod), 1 => Just(Kind::Job), 1 => Just(Kind::Namespace)]
}

fn key() -> impl Strategy<Value = Key> {
    (kind(), 0..5_usize, 0..4_u8).prop_map(|(kind, place, name)| match kind {
        Kind::Namespace => Key::new(kind, "", NAMESPACES[1]),
        kind => Key::new(kind, NAMESPACES[place / 4], &format!("o{name}")),
    })
}

fn scope() -> impl Strategy<Value = Scope> {
    let namespace = prop_oneof![Just(None), Just(Some("default")), Just(Some("n1"))];
    (kind(), namespace, 0..6_u8).prop_map(|(kind, namespace, selector)| Scope {
        kind,
        namespace: namespace.filter(|_| kind != Kind::Namespace),
        selector: selector.saturating_sub(1),
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => (0..3_u8).prop_map(Change::Label),
        2 => (0..3_u8).prop_map(Change::Value),
        1 => (0..4_u8).prop_map(Change::Finalizers),
    ]
}

fn precondition() -> impl Strategy<Value = Precondition> {
    prop_oneof![3 => Just(Precondition::None), 3 => Just(Precondition::Fresh), 1 => Just(Precondition::Stale)]
}

fn sort() -> impl Strategy<Value = PatchKind> {
    prop_oneof![
        Just(PatchKind::Json),
        Just(PatchKind::Merge),
        Just(PatchKind::Strategic)
    ]
}

fn at() -> impl Strategy<Value = At> {
    prop_oneof![Just(At::Latest), any::<u8>().prop_map(At::Ago)]
}

fn seldom() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.15)
}

fn grace() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![2 => Just(None), 1 => Just(Some(0)), 1 => (1..40_i64).prop_map(Some)]
}

fn propagation() -> impl Strategy<Value = Option<Propagation>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(Propagation::Background)),
        1 => Just(Some(Propagation::Foreground)),
        1 => Just(Some(Propagation::Orphan)),
    ]
}

/// A write of one client.
pub fn write() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (key(), 0..3_u8, 0..3_u8, seldom(), seldom(), seldom()).prop_map(
            |(key, label, value, finalizer, generated, dry)| Operation::Create { key, label, value, finalizer, generated, dry }),
        5 => (key(), change(), precondition(), seldom()).prop_map(
            |(key, change, version, dry)| Operation::Update { key, change, version, dry }),
        6 => (key(), sort(), change(), precondition(), seldom()).prop_map(
            |(key, sort, change, version, dry)| Operation::Patch { key, sort, change, version, dry }),
        2 => (key(), sort(), 0..3_u8).prop_map(|(key, sort, value)| Operation::Status {
            key: Key { kind: if key.kind == Kind::Job { Kind::Job } else { Kind::Pod },
                namespace: if key.kind == Kind::Namespace { "default".into() } else { key.namespace }, ..key }, sort, value }),
        5 => (key(), propagation(), grace(), precondition()).prop_map(
            |(key, propagation, grace, version)| Operation::Delete { key, propagation, grace, version }),
        1 => (scope(), grace()).prop_map(|(scope, grace)| Operation::DeleteCollection {
            scope: Scope { kind: if scope.kind == Kind::Namespace { Kind::Pod } else { scope.kind }, ..scope }, grace }),
        2 => (0..4_u8, 0..2_u8).prop_map(|(name, node)| Operation::Bind { name: format!("o{name}"), node }),
        1 => Just(Operation::Finalize { name: NAMESPACES[1].to_owned() }),
    ]
}

/// Any call of one client.
pub fn any_operation() -> impl Strategy<Value = Operation> {
    let pace =
        prop_oneof![2 => Just(Pace::Eager), 2 => Just(Pace::Halting), 1 => Just(Pace::Asleep)];
    let start = prop_oneof![
        Just(Start::Now),
        any::<u8>().prop_map(Start::Ago),
        Just(Start::Initial)
    ];
    let limit = prop_oneof![Just(None), (1..4_usize).prop_map(Some)];
    prop_oneof![
        16 => write(),
        2 => (key(), at()).prop_map(|(key, at)| Operation::Get { key, at }),
        3 => (scope(), at(), limit).prop_map(|(scope, at, limit)| Operation::List { scope, at, limit }),
        2 => (scope(), start, pace).prop_map(|(scope, start, pace)| Operation::Watch { scope, start, pace }),
    ]
}
