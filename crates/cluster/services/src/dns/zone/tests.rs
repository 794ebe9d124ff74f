//! The records of names.
#![allow(clippy::unwrap_used)]

use super::{
    super::testing::{Pods, labels, table},
    *,
};

fn find(name: &str, with_ports: bool) -> Found {
    let table = table();
    let zone = Zone {
        table: &table,
        pods: &Pods,
        server: Ipv4Addr::new(127, 8, 0, 10),
        serial: 1,
        turn: 0,
    };
    zone.find(&labels(name), with_ports)
}

/// The records of a name as words, or the word for their absence.
fn show(found: Found) -> String {
    let records = match found {
        Found::Elsewhere => return "elsewhere".to_owned(),
        Found::Missing => return "missing".to_owned(),
        Found::Records { own, additional } => own.into_iter().chain(additional),
    };
    let words: Vec<String> = records
        .map(|Record { owner, data }| {
            let data = match data {
                Data::Address(address) => address.to_string(),
                Data::Port {
                    port,
                    weight,
                    target,
                } => format!("{port}/{weight}={target}"),
                Data::Pointer(name) | Data::Alias(name) => name,
                other => format!("{other:?}"),
            };
            owner.map_or(data.clone(), |owner| format!("{owner}:{data}"))
        })
        .collect();
    words.join(" ")
}

#[test]
fn the_records_of_names() {
    for (name, expected) in [
        ("cluster.local", "Authority NameServer"),
        ("dns-version.cluster.local", "Version"),
        ("ns.dns.cluster.local", "127.8.0.10"),
        ("svc.cluster.local", ""),
        ("n.svc.cluster.local", ""),
        ("other.svc.cluster.local", "missing"),
        ("web.n.svc.cluster.local", "127.8.0.1"),
        ("_http._tcp.web.n.svc.cluster.local", "127.8.0.1"),
        ("_http._udp.web.n.svc.cluster.local", "missing"),
        ("_tcp.web.n.svc.cluster.local", ""),
        ("_udp.web.n.svc.cluster.local", "missing"),
        ("web.other.svc.cluster.local", "missing"),
        ("peers.n.svc.cluster.local", "127.16.0.1 127.16.0.2 fd00::1"),
        (
            "_db._tcp.peers.n.svc.cluster.local",
            "127.16.0.1 127.16.0.2",
        ),
        ("empty.n.svc.cluster.local", "missing"),
        ("a.peers.n.svc.cluster.local", "127.16.0.1"),
        ("127-16-0-1.peers.n.svc.cluster.local", "missing"),
        ("127-16-0-2.peers.n.svc.cluster.local", "127.16.0.2"),
        // This endpoint is not ready.
        ("127-16-0-3.peers.n.svc.cluster.local", "missing"),
        // The node knows this pod.
        ("w-0.peers.n.svc.cluster.local", "127.16.0.9"),
        ("127-16-0-9.n.pod.cluster.local", "127.16.0.9"),
        ("127-16-0-8.n.pod.cluster.local", "missing"),
        ("out.n.svc.cluster.local", "www.example.com"),
        ("_http._tcp.out.n.svc.cluster.local", "missing"),
        ("x.y.z.cluster.local", "missing"),
        ("1.0.8.127.in-addr.arpa", "web.n.svc.cluster.local"),
        ("1.0.16.127.in-addr.arpa", "a.peers.n.svc.cluster.local"),
        ("9.9.9.127.in-addr.arpa", "missing"),
        ("8.8.8.8.in-addr.arpa", "elsewhere"),
        ("example.com", "elsewhere"),
        ("web", "elsewhere"),
    ] {
        assert_eq!(show(find(name, false)), expected, "{name}");
    }
}

#[test]
fn the_records_of_ports() {
    let web = "web.n.svc.cluster.local";
    assert_eq!(
        show(find(&format!("_http._tcp.{web}"), true)),
        format!("127.8.0.1 80/100={web} {web}:127.8.0.1")
    );
    assert_eq!(
        show(find(web, true)),
        format!("127.8.0.1 80/50={web} 443/50={web} {web}:127.8.0.1")
    );
    let peers = "peers.n.svc.cluster.local";
    assert_eq!(
        show(find(&format!("_db._tcp.{peers}"), true)),
        format!(
            "127.16.0.1 127.16.0.2 5432/50=127-16-0-2.{peers} 5432/50=a.{peers} \
             127-16-0-2.{peers}:127.16.0.2 a.{peers}:127.16.0.1"
        )
    );
}

#[test]
fn each_address_has_its_turn() {
    let table = table();
    let first = |turn: usize| {
        let zone = Zone {
            table: &table,
            pods: &Pods,
            server: Ipv4Addr::new(127, 8, 0, 10),
            serial: 1,
            turn,
        };
        match zone.find(&labels("_db._tcp.peers.n.svc.cluster.local"), false) {
            Found::Records { own, .. } => show(Found::records(vec![own[0].clone()])),
            other => show(other),
        }
    };
    assert_eq!(first(0), "127.16.0.1");
    assert_eq!(first(1), "127.16.0.2");
    assert_eq!(first(usize::MAX - 1), "127.16.0.1");
}
