//! Records of other servers. These servers are not trusted: they never describe names of the
//! cluster, or names that were not queried. Pure.

use domain::{
    base::{
        Message, Name, Record, Rtype, ToName,
        name::{ParsedName, ToLabelIter},
    },
    rdata::AllRecordData,
};

use super::name::{in_zone, labels_of};

/// The maximum number of aliases that are followed.
const MAX_ALIASES: usize = 16;

/// A record of another server.
pub(super) type ForeignRecord<'a> =
    Record<ParsedName<&'a [u8]>, AllRecordData<&'a [u8], ParsedName<&'a [u8]>>>;

/// Returns true if a name is in the zone of the cluster.
fn is_ours(name: &impl ToLabelIter) -> bool {
    in_zone(&labels_of(name)).is_some()
}

/// Returns true if a reply has records of names in the zone of the cluster. Clients might keep them.
pub(super) fn claims_zone(reply: &[u8]) -> bool {
    let Ok(reply) = Message::from_octets(reply) else {
        return false;
    };
    let sections = [reply.answer(), reply.authority(), reply.additional()];
    let mut records = sections.into_iter().flatten().flatten().flatten();
    records.any(|record| is_ours(&record.owner()))
}

/// Returns the records of a type that a reply has for a name, and the aliases that lead to them. An
/// alias of a name of the cluster ends the chain, because the cluster itself has the records of
/// this name.
pub(super) fn chain<'a>(
    reply: &'a Message<&'a [u8]>,
    target: &Name<Vec<u8>>,
    rtype: Rtype,
) -> Vec<ForeignRecord<'a>> {
    let Ok(section) = reply.answer() else {
        return Vec::new();
    };
    let records = section.limit_to::<AllRecordData<_, ParsedName<_>>>();
    let mut records: Vec<Option<ForeignRecord<'a>>> =
        records.map_while(Result::ok).map(Some).collect();
    let mut chain = Vec::new();
    let mut name = target.clone();
    for _ in 0..MAX_ALIASES {
        if is_ours(&name) {
            break;
        }
        let mut next = None;
        for slot in &mut records {
            let wanted = |record: &mut ForeignRecord<'a>| {
                let is_alias = record.rtype() == Rtype::CNAME;
                let is_wanted = is_alias || rtype == Rtype::ANY || record.rtype() == rtype;
                is_wanted && record.owner().name_eq(&name)
            };
            let Some(record) = slot.take_if(wanted) else {
                continue;
            };
            if let AllRecordData::Cname(alias) = record.data()
                && rtype != Rtype::CNAME
            {
                next = Some(alias.cname().to_vec());
            }
            chain.push(record);
        }
        let Some(found) = next else { break };
        name = found;
    }
    chain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::str::FromStr as _;

    use domain::{
        base::{MessageBuilder, iana::Rcode},
        rdata::{A, Cname},
    };
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Name<Vec<u8>> {
        Name::from_str(text).unwrap()
    }

    /// A reply with records in its answer and its additional section: addresses, and aliases, whose
    /// value is a name.
    fn reply(answer: &[(&str, &str)], additional: &[(&str, &str)]) -> Vec<u8> {
        let mut question = MessageBuilder::new_vec().question();
        question.push((name("asked.example"), Rtype::A)).unwrap();
        let query = question.into_message();
        let builder = MessageBuilder::new_vec().start_answer(&query, Rcode::NOERROR);
        let mut builder = builder.unwrap();
        for (owner, value) in answer {
            match value.parse() {
                Ok(address) => builder.push((name(owner), 60, A::new(address))).unwrap(),
                Err(_) => builder
                    .push((name(owner), 60, Cname::new(name(value))))
                    .unwrap(),
            }
        }
        let mut builder = builder.additional();
        for (owner, value) in additional {
            let address = A::new(value.parse().unwrap());
            builder.push((name(owner), 60, address)).unwrap();
        }
        builder.finish()
    }

    fn chained(answer: &[(&str, &str)], rtype: Rtype) -> Vec<String> {
        let reply = reply(answer, &[]);
        let message = Message::from_octets(&reply[..]).unwrap();
        let records = chain(&message, &name("asked.example"), rtype);
        records
            .iter()
            .map(|record| format!("{} {}", record.owner(), record.data()))
            .collect()
    }

    #[test]
    fn only_the_chain_of_the_name_is_kept() {
        let answer = [
            ("kubernetes.default.svc.cluster.local", "192.0.2.66"),
            ("bank.example", "192.0.2.66"),
            ("b.example", "192.0.2.2"),
            ("ASKED.example", "b.example"),
            ("b.example", "192.0.2.3"),
        ];
        let expected = [
            "ASKED.example b.example.",
            "b.example 192.0.2.2",
            "b.example 192.0.2.3",
        ];
        assert_eq!(chained(&answer, Rtype::A), expected);
        assert_eq!(chained(&answer, Rtype::CNAME), ["ASKED.example b.example."]);
        assert_eq!(chained(&answer, Rtype::AAAA), ["ASKED.example b.example."]);
    }

    #[test]
    fn an_alias_of_a_name_of_the_cluster_ends_the_chain() {
        let answer = [
            ("asked.example", "web.n.svc.cluster.local"),
            ("web.n.svc.cluster.local", "192.0.2.66"),
        ];
        let expected = ["asked.example web.n.svc.cluster.local."];
        assert_eq!(chained(&answer, Rtype::A), expected);
    }

    #[test]
    fn loops_and_long_chains_end() {
        assert_eq!(
            chained(&[("asked.example", "asked.example")], Rtype::A).len(),
            1
        );
        let names: Vec<String> = (0..500)
            .map(|number| format!("n{number}.example"))
            .collect();
        let mut answer = vec![("asked.example", names[0].as_str())];
        answer.extend(
            names
                .windows(2)
                .map(|pair| (pair[0].as_str(), pair[1].as_str())),
        );
        assert_eq!(chained(&answer, Rtype::A).len(), MAX_ALIASES);
    }

    #[test]
    fn replies_about_names_of_the_cluster_are_recognized() {
        let own = ("A.b.svc.Cluster.Local", "192.0.2.66");
        let other = ("a.example", "192.0.2.1");
        assert!(!claims_zone(&reply(&[other], &[other])));
        assert!(claims_zone(&reply(&[other, own], &[])));
        assert!(claims_zone(&reply(&[other], &[other, own])));
        assert!(claims_zone(&reply(&[("cluster.local", "192.0.2.66")], &[])));
        // An alias that points to such a name is not a record of the name.
        assert!(!claims_zone(&reply(
            &[("a.example", "web.n.svc.cluster.local")],
            &[]
        )));
        assert!(!claims_zone(&reply(
            &[("acluster.local", "192.0.2.1")],
            &[]
        )));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = claims_zone(&bytes);
            if let Ok(message) = Message::from_octets(&bytes[..]) {
                let _ = chain(&message, &name("asked.example"), Rtype::A);
            }
        }
    }
}
