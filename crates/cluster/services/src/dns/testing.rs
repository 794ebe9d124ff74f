//! Services, endpoints and pods for tests.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use serde_json::{Value, from_value, json};

use super::zone::PodNames;
use crate::{
    objects::{RawService, RawSlice},
    table::{Key, Table},
};

/// A single pod with the hostname `w-0` and the subdomain `peers`.
pub(super) struct Pods;

impl PodNames for Pods {
    fn addresses(&self, namespace: &str, subdomain: &str, hostname: &str) -> Vec<Ipv4Addr> {
        match (namespace, subdomain, hostname) {
            ("n", "peers", "w-0") => vec![Ipv4Addr::new(127, 16, 0, 9)],
            _ => Vec::new(),
        }
    }

    fn has_address(&self, namespace: &str, address: Ipv4Addr) -> bool {
        namespace == "n" && address == Ipv4Addr::new(127, 16, 0, 9)
    }
}

pub(super) fn labels(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

/// Services of the namespace `n`: with a cluster IP, headless, and ExternalName.
pub(super) fn table() -> Table {
    let mut table = Table::default();
    let mut service = |name: &str, spec: Value| {
        let raw: RawService = from_value(json!({"spec": spec})).unwrap();
        table.put_service(Key::new(Some("n"), name), raw.read("u"));
    };
    let ports = json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]);
    service("web", json!({"clusterIP": "127.8.0.1", "ports": ports}));
    service("peers", json!({"clusterIP": "None"}));
    service("empty", json!({"clusterIP": "None"}));
    service("many", json!({"clusterIP": "None"}));
    let mut external = |name: &str, target: &str| {
        service(
            name,
            json!({"type": "ExternalName", "externalName": target}),
        );
    };
    external("out", "www.example.com");
    external("in", "web.n.svc.cluster.local.");
    external("gone", "missing.n.svc.cluster.local");
    external("loop", "loop.n.svc.cluster.local");
    let mut slice = |name: &str, service: &str, slice: Value| {
        let raw: RawSlice = from_value(slice).unwrap();
        table.put_slice(&Key::new(Some("n"), name), Some(service), raw.read());
    };
    let v4 = json!({
        "addressType": "IPv4",
        "ports": [{"name": "db", "port": 5432, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["127.16.0.1"], "hostname": "a"},
            {"addresses": ["127.16.0.2"]},
            {"addresses": ["127.16.0.3"], "conditions": {"ready": false}},
        ],
    });
    slice("peers-4", "peers", v4);
    let v6 = json!({"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}]});
    slice("peers-6", "peers", v6);
    let many: Vec<Value> = (0..=255_u8)
        .map(|last| json!({"addresses": [format!("127.17.0.{last}")]}))
        .collect();
    let many = json!({
        "addressType": "IPv4", "endpoints": many, "ports": [{"name": "p", "port": 1}],
    });
    slice("many-4", "many", many);
    table
}
