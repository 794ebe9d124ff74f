//! Services and pods for the unit tests.
#![allow(clippy::unwrap_used)]

use jiff::{Timestamp, ToSpan};

use super::{
    pod::PodFacts,
    service::{Family, Service, ServicePort, TargetPort},
};
use crate::key::Key;

/// A time of the tests.
pub(super) fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    start + second.seconds()
}

/// The Service `web`, which leads to port 8080.
pub(super) fn service() -> Service {
    Service {
        key: Key::new("a", "web"),
        uid: "s".into(),
        labels: [("team".into(), "x".into())].into(),
        created: Some(at(0)),
        deleting: false,
        headless: false,
        selector: [("app".into(), "web".into())].into(),
        publish_not_ready: false,
        families: vec![Family::V4],
        ports: vec![port("http", TargetPort::Number(8080))],
    }
}

/// A port of a Service.
pub(super) fn port(name: &str, target_port: TargetPort) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: "TCP".into(),
        app_protocol: None,
        target_port,
    }
}

/// A ready pod that the Service selects. Its UID is its name; the address is derived
/// from the name.
pub(super) fn pod(name: &str) -> PodFacts {
    let number = name.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    let [_, b, c, d] = number.to_be_bytes();
    PodFacts {
        namespace: "a".into(),
        name: name.into(),
        uid: name.into(),
        labels: [("app".into(), "web".into())].into(),
        addresses: vec![[10, b, c, d].into()],
        node: "n".into(),
        hostname: String::new(),
        subdomain: String::new(),
        ready: true,
        ready_changed: Some(at(1)),
        terminating: false,
        ended: false,
        ports: Vec::new(),
    }
}
