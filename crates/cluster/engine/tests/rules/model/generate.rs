//! Random operations.

use longshore_engine::Propagation;
use longshore_model::PatchKind;
use proptest::prelude::*;

use super::{
    kind::{ApiVersion, Key, Kind, SHOES},
    operation::{
        At, Call, Change, Config, Operation, Pace, Precondition, Scope, Start, StatusWrite,
    },
};

/// The namespaces that the operations use; the second one is created and deleted.
const NAMESPACES: [&str; 2] = ["default", "n1"];

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::ConfigMap),
        3 => Just(Kind::Pod),
        1 => Just(Kind::Job),
        1 => Just(Kind::Namespace),
        3 => Just(Kind::Shoe),
        1 => Just(Kind::Definition),
    ]
}

fn key_of(kind: Kind, place: usize, name: u8) -> Key {
    match kind {
        Kind::Namespace => Key::new(kind, "", NAMESPACES[1]),
        Kind::Definition => Key::new(kind, "", SHOES),
        kind => Key::new(kind, NAMESPACES[place / 4], &format!("o{name}")),
    }
}

fn key() -> impl Strategy<Value = Key> {
    (kind(), 0..5_usize, 0..4_u8).prop_map(|(kind, place, name)| key_of(kind, place, name))
}

/// A key of any of the given kinds.
fn key_among(kinds: &'static [Kind]) -> impl Strategy<Value = Key> {
    let kind = prop::sample::select(kinds);
    (kind, 0..5_usize, 0..4_u8).prop_map(|(kind, place, name)| key_of(kind, place, name))
}

fn scope() -> impl Strategy<Value = Scope> {
    let namespace = prop_oneof![Just(None), Just(Some("default")), Just(Some("n1"))];
    (kind(), namespace, 0..6_u8).prop_map(|(kind, namespace, selector)| Scope {
        kind,
        namespace: namespace.filter(|_| kind.is_namespaced()),
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
    prop_oneof![
        3 => Just(Precondition::None),
        3 => Just(Precondition::Fresh),
        1 => Just(Precondition::Stale),
    ]
}

fn sort() -> impl Strategy<Value = PatchKind> {
    prop_oneof![
        Just(PatchKind::Json),
        Just(PatchKind::Merge),
        Just(PatchKind::Strategic)
    ]
}

fn at() -> impl Strategy<Value = At> {
    prop_oneof![
        Just(At::Latest),
        any::<u8>().prop_map(|ago| At::Ago(ago % 64))
    ]
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

fn create() -> impl Strategy<Value = Operation> {
    (key(), 0..3_u8, 0..3_u8, seldom(), seldom(), seldom()).prop_map(
        |(key, label, value, finalizer, generated, dry)| Operation::Create {
            // A definition has a fixed name.
            generated: generated && key.kind != Kind::Definition,
            key,
            label,
            value,
            finalizer,
            dry,
        },
    )
}

fn apply() -> impl Strategy<Value = Operation> {
    let wanted = || prop::option::weighted(0.7, 0..3_u8);
    let manager = prop::sample::select(&["m1", "m2"]);
    let config = (wanted(), wanted()).prop_map(|(label, value)| Config { label, value });
    (
        key_among(&[Kind::ConfigMap]),
        manager,
        config,
        prop::bool::weighted(0.3),
        prop_oneof![4 => Just(Precondition::None), 1 => precondition()],
        seldom(),
    )
        .prop_map(
            |(key, manager, config, force, version, dry)| Operation::Apply {
                key,
                manager,
                config,
                force,
                version,
                dry,
            },
        )
}

fn status() -> impl Strategy<Value = Operation> {
    let how = prop_oneof![
        sort().prop_map(StatusWrite::Patch),
        precondition().prop_map(StatusWrite::Put)
    ];
    let key = key_among(&[Kind::Pod, Kind::Job, Kind::Shoe]);
    (key, how, 0..3_u8, seldom()).prop_map(|(key, how, value, dry)| Operation::Status {
        key,
        how,
        value,
        dry,
    })
}

fn delete() -> impl Strategy<Value = Operation> {
    let uid = prop_oneof![4 => Just(Precondition::None), 1 => precondition()];
    (key(), propagation(), grace(), precondition(), uid, seldom()).prop_map(
        |(key, propagation, grace, version, uid, dry)| Operation::Delete {
            key,
            propagation,
            grace,
            version,
            uid,
            dry,
        },
    )
}

fn delete_collection() -> impl Strategy<Value = Operation> {
    (scope(), grace(), seldom()).prop_map(|(scope, grace, dry)| {
        let kind = match scope.kind {
            Kind::Namespace | Kind::Definition => Kind::Pod,
            kind => kind,
        };
        let scope = Scope { kind, ..scope };
        Operation::DeleteCollection { scope, grace, dry }
    })
}

fn an_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => create(),
        5 => (key(), change(), precondition(), seldom()).prop_map(
            |(key, change, version, dry)| Operation::Update { key, change, version, dry }),
        6 => (key(), sort(), change(), precondition(), seldom()).prop_map(
            |(key, sort, change, version, dry)| Operation::Patch { key, sort, change, version, dry }),
        5 => apply(),
        3 => status(),
        5 => delete(),
        1 => delete_collection(),
        2 => (0..4_u8, 0..2_u8, seldom()).prop_map(
            |(name, node, dry)| Operation::Bind { name: format!("o{name}"), node, dry }),
        1 => seldom().prop_map(
            |dry| Operation::Finalize { name: NAMESPACES[1].to_owned(), dry }),
    ]
}

fn api_version() -> impl Strategy<Value = ApiVersion> {
    prop_oneof![Just(ApiVersion::V1), Just(ApiVersion::V2)]
}

/// A write by a client.
pub fn write() -> impl Strategy<Value = Call> {
    (api_version(), an_operation()).prop_map(|(api_version, operation)| Call {
        api_version,
        operation,
    })
}

/// Any call of a client.
pub fn any_call() -> impl Strategy<Value = Call> {
    let pace = prop_oneof![2 => Just(Pace::Eager), 2 => Just(Pace::Pausing), 1 => Just(Pace::Idle)];
    let start = prop_oneof![
        Just(Start::Now),
        any::<u8>().prop_map(|ago| Start::Ago(ago % 64)),
        Just(Start::Initial)
    ];
    let limit = || prop_oneof![Just(None), (1..4_usize).prop_map(Some)];
    let operation = prop_oneof![
        17 => an_operation(),
        2 => (key(), at()).prop_map(|(key, at)| Operation::Get { key, at }),
        3 => (scope(), at(), limit()).prop_map(|(scope, at, limit)| Operation::List { scope, at, limit }),
        2 => (scope(), start, pace).prop_map(|(scope, start, pace)| Operation::Watch { scope, start, pace }),
        1 => (scope(), limit()).prop_map(|(scope, limit)| Operation::Follow { scope, limit }),
    ];
    (api_version(), operation).prop_map(|(api_version, operation)| Call {
        api_version,
        operation,
    })
}
