//! The listeners and names depend only on the objects that exist, not on their history.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::objects::{Endpoint, SlicePort};

/// A change of an object. Names and addresses come from few values, so that changes concern
/// the same objects.
#[derive(Debug, Clone)]
enum Change {
    Service(u8, Option<Service>),
    Slice(u8, Option<(u8, Slice)>),
}

fn key(name: u8) -> Key {
    Key::new(Some("n"), &format!("s{name}"))
}

fn service() -> impl Strategy<Value = Service> {
    let address = prop_oneof![
        (1_u8..4).prop_map(|last| Address::Cluster(Ipv4Addr::new(127, 8, 0, last))),
        Just(Address::Headless),
        Just(Address::None),
    ];
    let node_port = proptest::option::of(30_000_u16..30_003);
    (address, 80_u16..82, node_port).prop_map(|(address, port, node_port)| Service {
        uid: "u".to_owned(),
        address,
        ports: vec![ServicePort {
            name: String::new(),
            protocol: Protocol::Tcp,
            port,
            node_port,
        }],
        affinity: None,
    })
}

fn slice() -> impl Strategy<Value = Slice> {
    let endpoint =
        (1_u8..4, any::<bool>(), any::<bool>()).prop_map(|(last, ready, drains)| Endpoint {
            addresses: vec![Ipv4Addr::new(127, 16, 0, last).into()],
            hostname: None,
            ready,
            draining: !ready && drains,
        });
    proptest::collection::vec(endpoint, 0..3).prop_map(|endpoints| Slice {
        endpoints,
        ports: vec![SlicePort {
            name: String::new(),
            protocol: Protocol::Tcp,
            port: 8080,
        }],
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0_u8..3, proptest::option::of(service()))
            .prop_map(|(name, service)| Change::Service(name, service)),
        (0_u8..4, proptest::option::of((0_u8..3, slice())))
            .prop_map(|(name, slice)| Change::Slice(name, slice)),
    ]
}

fn apply(table: &mut Table, change: Change) {
    match change {
        Change::Service(name, Some(service)) => table.put_service(key(name), service),
        Change::Service(name, None) => table.remove_service(&key(name)),
        Change::Slice(name, Some((owner, slice))) => {
            table.put_slice(&key(name), Some(&key(owner).name), slice);
        }
        Change::Slice(name, None) => table.remove_slice(&key(name)),
    }
}

proptest! {
    #[test]
    fn only_the_last_state_of_each_object_matters(
        changes in proptest::collection::vec(change(), 0..30),
        shuffle in any::<prop::sample::Index>(),
    ) {
        let mut table = Table::default();
        let mut services = BTreeMap::new();
        let mut slices = BTreeMap::new();
        for change in changes {
            match &change {
                Change::Service(name, _) => services.insert(*name, change.clone()),
                Change::Slice(name, _) => slices.insert(*name, change.clone()),
            };
            apply(&mut table, change);
        }
        let mut last: Vec<Change> = services.into_values().chain(slices.into_values()).collect();
        if !last.is_empty() {
            let at = shuffle.index(last.len());
            last.rotate_left(at);
        }
        let mut fresh = Table::default();
        for change in last {
            apply(&mut fresh, change);
        }
        prop_assert_eq!(table.names(), fresh.names());
        for name in 0..3 {
            let listeners = table.listeners(&key(name), &[Ipv4Addr::LOCALHOST]);
            prop_assert_eq!(&listeners, &fresh.listeners(&key(name), &[Ipv4Addr::LOCALHOST]));
            for target in listeners.values() {
                prop_assert!(!target.endpoints.is_empty());
            }
        }
    }
}

fn port(name: &str) -> ServicePort {
    ServicePort {
        name: name.to_owned(),
        protocol: Protocol::Tcp,
        port: 80,
        node_port: None,
    }
}

fn endpoints(ready: &[u8], draining: &[u8]) -> Slice {
    let endpoint = |last: u8, ready: bool| Endpoint {
        addresses: vec![Ipv4Addr::new(127, 16, 0, last).into()],
        hostname: None,
        ready,
        draining: !ready,
    };
    let ready = ready.iter().map(|last| endpoint(*last, true));
    let draining = draining.iter().map(|last| endpoint(*last, false));
    Slice {
        endpoints: ready.chain(draining).collect(),
        ports: vec![SlicePort {
            name: "http".to_owned(),
            protocol: Protocol::Tcp,
            port: 8080,
        }],
    }
}

#[test]
fn terminating_endpoints_serve_until_others_are_ready() {
    let mut table = Table::default();
    let service = Service {
        uid: "u".to_owned(),
        address: Address::Cluster(Ipv4Addr::new(127, 8, 0, 1)),
        ports: vec![port("http"), port("other")],
        affinity: None,
    };
    table.put_service(key(0), service);
    let behind = |table: &Table| {
        let listeners = table.listeners(&key(0), &[Ipv4Addr::LOCALHOST]);
        let targets = listeners.into_values();
        let endpoints: Vec<String> = targets
            .flat_map(|target| target.endpoints.to_vec())
            .map(|endpoint| endpoint.to_string())
            .collect();
        endpoints
    };
    let put = |table: &mut Table, slice: &str, endpoints: Slice| {
        table.put_slice(&Key::new(Some("n"), slice), Some("s0"), endpoints);
    };
    put(&mut table, "a", endpoints(&[], &[1]));
    assert_eq!(behind(&table), ["127.16.0.1:8080"]);
    // An endpoint in two slices counts once.
    put(&mut table, "a", endpoints(&[2], &[1]));
    put(&mut table, "b", endpoints(&[2, 3], &[]));
    assert_eq!(behind(&table), ["127.16.0.2:8080", "127.16.0.3:8080"]);
}
