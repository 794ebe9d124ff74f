//! Replies to queries.
#![allow(clippy::unwrap_used)]

use std::{net::Ipv4Addr, str::FromStr};

use domain::{
    base::{iana::OptionCode, name::ParsedName},
    dep::octseq::OctetsBuilder as _,
    rdata::AllRecordData,
};
use proptest::prelude::*;

use super::{
    super::testing::{Pods, table},
    *,
};

/// A query.
#[derive(Debug, Clone)]
struct Ask<'a> {
    name: &'a str,
    rtype: Rtype,
    edns: Option<u16>,
    recursion: bool,
}

fn ask(name: &str, rtype: Rtype) -> Ask<'_> {
    Ask {
        name,
        rtype,
        edns: None,
        recursion: true,
    }
}

impl Ask<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(0x1234);
        builder.header_mut().set_rd(self.recursion);
        let mut question = builder.question();
        let name = Name::<Vec<u8>>::from_str(self.name).unwrap();
        question.push((name, self.rtype)).unwrap();
        let mut additional = question.additional();
        if let Some(size) = self.edns {
            let opt = additional.opt(|opt| {
                opt.set_udp_payload_size(size);
                opt.push_raw_option(OptionCode::COOKIE, 8, |target| target.append_slice(&[1; 8]))
            });
            opt.unwrap();
        }
        additional.finish()
    }
}

fn step(bytes: &[u8], transport: Transport) -> Step {
    let table = table();
    let zone = Zone {
        table: &table,
        pods: &Pods,
        server: Ipv4Addr::new(127, 8, 0, 10),
        serial: 7,
        turn: 0,
    };
    decide(bytes, transport, &zone)
}

fn reply(ask: &Ask<'_>, transport: Transport) -> Message<Vec<u8>> {
    match step(&ask.encode(), transport) {
        Step::Reply(bytes) => Message::from_octets(bytes).unwrap(),
        other => panic!("{ask:?}: {other:?}"),
    }
}

/// The code of a reply, and the records of the answer, authority and additional sections as words.
fn show(message: &Message<Vec<u8>>) -> String {
    let sections = [message.answer(), message.authority(), message.additional()];
    let sections = sections.map(|section| {
        let records = section
            .unwrap()
            .limit_to::<AllRecordData<_, ParsedName<_>>>()
            .map(Result::unwrap)
            .filter(|record| !matches!(record.data(), AllRecordData::Opt(_)));
        let words: Vec<String> = records
            .map(|record| {
                let text = format!("{} {}", record.owner(), record.data());
                // Some names are shown with the root.
                let words: Vec<&str> = text.split(' ').map(|w| w.trim_end_matches('.')).collect();
                words.join(" ")
            })
            .collect();
        words.join(", ")
    });
    let code = message.header().rcode();
    format!("{code}: {}", sections.join("; "))
}

const SOA: &str = "cluster.local ns.dns.cluster.local hostmaster.cluster.local 7 7200 1800 \
                   86400 5";

#[test]
fn answers_and_absence() {
    let a = Rtype::A;
    let web = "web.n.svc.cluster.local";
    for (name, rtype, expected) in [
        (web, a, format!("NOERROR: {web} 127.8.0.1; ; ")),
        (
            "WEB.n.SVC.cluster.local",
            a,
            "NOERROR: WEB.n.SVC.cluster.local 127.8.0.1; ; ".to_owned(),
        ),
        // The name exists, but has no record of the type.
        (web, Rtype::AAAA, format!("NOERROR: ; {SOA}; ")),
        (web, Rtype::MX, format!("NOERROR: ; {SOA}; ")),
        ("x.n.svc.cluster.local", a, format!("NXDOMAIN: ; {SOA}; ")),
        (
            "empty.n.svc.cluster.local",
            a,
            format!("NXDOMAIN: ; {SOA}; "),
        ),
        (
            "_http._tcp.web.n.svc.cluster.local",
            Rtype::SRV,
            format!("NOERROR: _http._tcp.{web} 0 100 80 {web}; ; {web} 127.8.0.1"),
        ),
        (
            "peers.n.svc.cluster.local",
            Rtype::AAAA,
            "NOERROR: peers.n.svc.cluster.local fd00::1; ; ".to_owned(),
        ),
        (
            "1.0.8.127.in-addr.arpa",
            Rtype::PTR,
            format!("NOERROR: 1.0.8.127.in-addr.arpa {web}; ; "),
        ),
        (
            "dns-version.cluster.local",
            Rtype::TXT,
            "NOERROR: dns-version.cluster.local \"1.1.0\"; ; ".to_owned(),
        ),
        (
            "out.n.svc.cluster.local",
            Rtype::CNAME,
            "NOERROR: out.n.svc.cluster.local www.example.com; ; ".to_owned(),
        ),
        (
            "in.n.svc.cluster.local",
            a,
            format!("NOERROR: in.n.svc.cluster.local {web}, {web} 127.8.0.1; ; "),
        ),
        (
            "gone.n.svc.cluster.local",
            a,
            format!("NXDOMAIN: gone.n.svc.cluster.local missing.n.svc.cluster.local; {SOA}; "),
        ),
        ("loop.n.svc.cluster.local", a, "SERVFAIL: ; ; ".to_owned()),
        (web, Rtype::AXFR, "REFUSED: ; ; ".to_owned()),
    ] {
        let message = reply(&ask(name, rtype), Transport::Udp);
        assert_eq!(show(&message), expected, "{name} {rtype}");
        assert_eq!(message.header().id(), 0x1234);
        assert!(message.header().qr() && message.header().ra() && message.header().rd());
        assert!(!message.header().tc());
    }
}

#[test]
fn other_names_are_forwarded_if_the_client_wants_recursion() {
    let bytes = ask("example.com", Rtype::A).encode();
    let Step::Forward(query) = step(&bytes, Transport::Tcp) else {
        panic!("not forwarded")
    };
    assert_eq!(query.as_bytes(), bytes);
    assert_eq!(query.transport(), Transport::Tcp);
    let ask = Ask {
        recursion: false,
        ..ask("example.com", Rtype::A)
    };
    assert_eq!(show(&reply(&ask, Transport::Udp)), "REFUSED: ; ; ");
}

#[test]
fn the_target_of_an_alias_is_asked_elsewhere() {
    let bytes = ask("out.n.svc.cluster.local", Rtype::A).encode();
    let Step::Follow(query, aliases, target) = step(&bytes, Transport::Udp) else {
        panic!("not followed")
    };
    assert_eq!(target.to_string(), "www.example.com");
    let asked = query.of(&target).unwrap();
    let asked = Message::from_octets(asked).unwrap();
    assert_eq!(
        asked.sole_question().unwrap().qname().to_string(),
        "www.example.com"
    );
    let builder = MessageBuilder::new_vec().start_answer(&asked, Rcode::NOERROR);
    let mut answer = builder.unwrap();
    let address = domain::rdata::A::from_octets(192, 0, 2, 1);
    answer.push((&target, 60, address.clone())).unwrap();
    // Records of other servers about these names are ignored.
    for name in ["web.n.svc.cluster.local", "other.example"] {
        let name = Name::<Vec<u8>>::from_str(name).unwrap();
        answer.push((name, 60, address.clone())).unwrap();
    }
    let alias = "out.n.svc.cluster.local www.example.com";
    let with = query.followed(aliases.clone(), &target, Some(&answer.finish()));
    let with = Message::from_octets(with).unwrap();
    let expected = format!("NOERROR: {alias}, www.example.com 192.0.2.1; ; ");
    assert_eq!(show(&with), expected);
    // Without a reply, the alias alone is the answer.
    let without = Message::from_octets(query.followed(aliases, &target, None)).unwrap();
    assert_eq!(show(&without), format!("NOERROR: {alias}; ; "));
}

#[test]
fn a_reply_that_is_too_large_is_truncated() {
    let name = "many.n.svc.cluster.local";
    let count = |edns: Option<u16>, transport| {
        let message = reply(
            &Ask {
                edns,
                ..ask(name, Rtype::A)
            },
            transport,
        );
        let counts = message.header_counts();
        let size = message.as_slice().len();
        assert_eq!(counts.arcount(), u16::from(edns.is_some()));
        (message.header().tc(), counts.ancount(), size)
    };
    let (truncated, plain, size) = count(None, Transport::Udp);
    assert!(truncated && plain < 256 && size <= 512, "{plain} {size}");
    let (truncated, more, size) = count(Some(1232), Transport::Udp);
    assert!(truncated && more > plain && size <= 1232, "{more} {size}");
    // A size below the minimum counts as the minimum.
    assert_eq!(count(Some(1), Transport::Udp).1, plain - 1);
    let (truncated, all, size) = count(Some(65_535), Transport::Udp);
    assert!(truncated && size <= 4096, "{all} {size}");
    let (truncated, all, _) = count(None, Transport::Tcp);
    assert_eq!((truncated, all), (false, 256));
}

#[test]
fn what_is_no_query_is_ignored_or_refused() {
    let bytes = ask("web.n.svc.cluster.local", Rtype::A).encode();
    for length in 0..12 {
        assert!(matches!(
            step(&bytes[..length], Transport::Udp),
            Step::Ignore
        ));
    }
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        match step(&bytes, Transport::Udp) {
            Step::Reply(reply) => show(&Message::from_octets(reply).unwrap()),
            Step::Ignore => "ignored".to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(changed(|bytes| bytes[2] |= 0x80), "ignored");
    assert_eq!(changed(|bytes| bytes[2] |= 0x28), "NOTIMP: ; ; ");
    assert_eq!(changed(|bytes| bytes[5] = 2), "FORMERR: ; ; ");
    assert_eq!(changed(|bytes| bytes[5] = 0), "FORMERR: ; ; ");
    assert_eq!(changed(|bytes| bytes.truncate(20)), "FORMERR: ; ; ");
    // The class CH.
    assert_eq!(
        changed(|bytes| *bytes.last_mut().unwrap() = 3),
        "REFUSED: ; ; "
    );
    let mut newer = Ask {
        edns: Some(1232),
        ..ask("web.n.svc.cluster.local", Rtype::A)
    }
    .encode();
    let version = newer.len() - 12 - 4 + 1 - 2;
    newer[version] = 1;
    let Step::Reply(reply) = step(&newer, Transport::Udp) else {
        panic!("no reply")
    };
    let reply = Message::from_octets(reply).unwrap();
    assert_eq!(reply.opt_rcode(), OptRcode::BADVERS);
}

/// Bytes near a valid query, and any bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let names = [
        "web.n.svc.cluster.local",
        "_http._tcp.web.n.svc.cluster.local",
        "many.n.svc.cluster.local",
        "in.n.svc.cluster.local",
        "1.0.8.127.in-addr.arpa",
        "a.b.pod.cluster.local",
        "example.com",
    ];
    let rtype = prop_oneof![
        Just(Rtype::A),
        Just(Rtype::SRV),
        Just(Rtype::ANY),
        any::<u16>().prop_map(Rtype::from_int),
    ];
    let edns = proptest::option::of(any::<u16>());
    let valid =
        (proptest::sample::select(names.to_vec()), rtype, edns).prop_map(|(name, rtype, edns)| {
            Ask {
                edns,
                ..ask(name, rtype)
            }
            .encode()
        });
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let changed = (valid, changes, any::<Option<prop::sample::Index>>()).prop_map(
        |(mut bytes, changes, end)| {
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Some(end) = end {
                bytes.truncate(end.index(bytes.len()));
            }
            bytes
        },
    );
    prop_oneof![4 => changed, 1 => proptest::collection::vec(any::<u8>(), 0..600)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_get_a_valid_reply_or_none(
        bytes in bytes(),
        upstream in bytes(),
        tcp: bool,
    ) {
        let transport = if tcp { Transport::Tcp } else { Transport::Udp };
        let (reply, limit) = match step(&bytes, transport) {
            Step::Ignore => return Ok(()),
            Step::Reply(reply) => (reply, if tcp { LARGEST } else { 4096 }),
            Step::Forward(query) => (query.refused(OptRcode::SERVFAIL), query.limit()),
            Step::Follow(query, aliases, target) => {
                let asked = Message::from_octets(query.of(&target).unwrap()).unwrap();
                prop_assert!(asked.sole_question().is_ok());
                (query.followed(aliases, &target, Some(&upstream)), query.limit())
            }
        };
        prop_assert!(reply.len() <= limit);
        prop_assert_eq!(&reply[..2], &bytes[..2]);
        let message = Message::from_octets(reply).unwrap();
        prop_assert!(message.header().qr());
        for section in [message.answer(), message.authority(), message.additional()] {
            prop_assert!(section.unwrap().all(|record| record.is_ok()));
        }
    }
}
