//! Decides whether to reply to a query or to ask other servers. Pure.

use domain::base::{
    Message, MessageBuilder, Name, Rtype, StaticCompressor, ToName,
    iana::{Class, Opcode, OptRcode, Rcode},
    message_builder::AdditionalBuilder,
};

use super::{
    foreign::{self, ForeignRecord},
    name::{ZONE, labels_of},
    record::{Data, Record, name},
    zone::{Found, Zone},
};

/// The largest message over UDP without EDNS, in bytes.
const PLAIN: usize = 512;
/// The largest message over UDP that the server sends, in bytes.
const LARGEST_PACKET: u16 = 4096;
/// The largest message over TCP, in bytes.
const LARGEST: usize = 65_535;
/// The size of an OPT record without options, in bytes.
const OPT: usize = 11;
/// The maximum number of aliases that are followed within the zone.
const MAX_ALIASES: usize = 8;

/// The transport protocol of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Transport {
    Udp,
    Tcp,
}

/// The next step for a query.
#[derive(Debug)]
pub(super) enum Step {
    /// The message is not a query. Replies to it could cause further replies.
    Ignore,
    /// Send this reply.
    Reply(Vec<u8>),
    /// Other servers answer it.
    Forward(Query),
    /// The name is an alias of this name, which is in the zone of other servers.
    Follow(Query, Vec<Record>, Name<Vec<u8>>),
}

/// A query with one question.
#[derive(Debug)]
pub(super) struct Query {
    message: Message<Vec<u8>>,
    name: Name<Vec<u8>>,
    rtype: Rtype,
    transport: Transport,
    edns: Option<Edns>,
}

/// The EDNS options of a query.
#[derive(Debug, Clone, Copy)]
struct Edns {
    size: u16,
    version: u8,
    dnssec: bool,
}

/// The content of a reply.
#[derive(Debug, Default)]
struct Content {
    rcode: Option<OptRcode>,
    answers: Vec<Record>,
    /// The name of the zone whose authority record states how long a negative answer is valid.
    authority: Option<String>,
    additional: Vec<Record>,
    serial: u32,
    is_authoritative: bool,
}

/// Decides about a query.
pub(super) fn decide(bytes: &[u8], transport: Transport, zone: &Zone<'_>) -> Step {
    let query = match Query::read(bytes, transport) {
        Ok(query) => query,
        Err(refusal) => return refusal,
    };
    let Query { edns, rtype, .. } = query;
    if edns.is_some_and(|edns| edns.version != 0) {
        return Step::Reply(query.refused(OptRcode::BADVERS));
    }
    let mut labels = labels_of(&query.name);
    let with_ports = rtype == Rtype::SRV;
    let mut content = Content {
        serial: zone.serial,
        is_authoritative: true,
        ..Content::default()
    };
    let mut owner: Option<String> = None;
    for _ in 0..MAX_ALIASES {
        let (own, additional) = match zone.find(&labels, with_ports) {
            Found::Elsewhere => {
                let target = owner.as_deref().and_then(name);
                return match (target, query.wants_recursion()) {
                    (Some(target), true) => Step::Follow(query, content.answers, target),
                    (Some(_), false) => Step::Reply(query.encode(&content, Vec::new())),
                    (None, true) => Step::Forward(query),
                    (None, false) => Step::Reply(query.refused(OptRcode::REFUSED)),
                };
            }
            Found::Missing => {
                content.rcode = Some(OptRcode::NXDOMAIN);
                content.authority = Some(authority(&labels));
                return Step::Reply(query.encode(&content, Vec::new()));
            }
            Found::Records { own, additional } => (own, additional),
        };
        let own = own.into_iter().map(|record| Record {
            owner: owner.clone(),
            ..record
        });
        let matches = |record: &Record| rtype == Rtype::ANY || record.data.rtype() == rtype;
        let mut alias = None;
        for record in own {
            if let Data::Alias(target) = &record.data {
                let is_answer = matches(&record);
                if !is_answer {
                    alias = Some(target.trim_end_matches('.').to_ascii_lowercase());
                }
                content.answers.push(record);
            } else if matches(&record) {
                content.answers.push(record);
            }
        }
        let Some(target) = alias else {
            let has_answer = content.answers.iter().any(matches);
            if has_answer {
                content.additional = additional;
            } else {
                content.authority = Some(authority(&labels));
            }
            return Step::Reply(query.encode(&content, Vec::new()));
        };
        let Some(encoded) = name(&target) else {
            return Step::Reply(query.refused(OptRcode::SERVFAIL));
        };
        labels = labels_of(&encoded);
        owner = Some(target);
    }
    Step::Reply(query.refused(OptRcode::SERVFAIL))
}

/// Returns the name of the zone that contains a missing name.
fn authority(labels: &[String]) -> String {
    match labels.last().map(String::as_str) {
        Some("arpa") => "127.in-addr.arpa".to_owned(),
        _ => ZONE.to_owned(),
    }
}

impl Query {
    fn read(bytes: &[u8], transport: Transport) -> Result<Self, Step> {
        let message = Message::from_octets(bytes.to_vec()).map_err(|_| Step::Ignore)?;
        let header = message.header();
        if header.qr() {
            return Err(Step::Ignore);
        }
        let fail = |rcode| Err(Step::Reply(without_question(&message, rcode)));
        if header.opcode() != Opcode::QUERY {
            return fail(Rcode::NOTIMP);
        }
        let (name, rtype, class) = match message.sole_question() {
            Ok(question) => (
                question.qname().to_vec(),
                question.qtype(),
                question.qclass(),
            ),
            Err(_) => return fail(Rcode::FORMERR),
        };
        let edns = message.opt().map(|opt| Edns {
            size: opt.udp_payload_size(),
            version: opt.version(),
            dnssec: opt.dnssec_ok(),
        });
        let is_refused =
            matches!(rtype, Rtype::AXFR | Rtype::IXFR) || !matches!(class, Class::IN | Class::ANY);
        let query = Self {
            message,
            name,
            rtype,
            transport,
            edns,
        };
        match is_refused {
            true => Err(Step::Reply(query.refused(OptRcode::REFUSED))),
            false => Ok(query),
        }
    }

    fn wants_recursion(&self) -> bool {
        self.message.header().rd()
    }

    pub(super) fn transport(&self) -> Transport {
        self.transport
    }

    /// The query as it arrived.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.message.as_slice()
    }

    /// Returns a query for another name, with the same type.
    pub(super) fn of(&self, target: &Name<Vec<u8>>) -> Option<Vec<u8>> {
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_rd(true);
        let mut question = builder.question();
        question.push((target, self.rtype)).ok()?;
        let mut additional = question.additional();
        let opt = additional.opt(|opt| {
            opt.set_udp_payload_size(LARGEST_PACKET);
            Ok(())
        });
        opt.ok()?;
        Some(additional.finish())
    }

    /// Encodes a reply with an error code.
    pub(super) fn refused(&self, rcode: OptRcode) -> Vec<u8> {
        let content = Content {
            rcode: Some(rcode),
            ..Content::default()
        };
        self.encode(&content, Vec::new())
    }

    /// Encodes the reply to a query for an alias: the aliases, and the records of other servers for
    /// their target.
    pub(super) fn followed(
        &self,
        aliases: Vec<Record>,
        target: &Name<Vec<u8>>,
        answer: Option<&[u8]>,
    ) -> Vec<u8> {
        let content = Content {
            answers: aliases,
            is_authoritative: true,
            ..Content::default()
        };
        let answer = answer.and_then(|answer| Message::from_octets(answer).ok());
        let records = answer
            .as_ref()
            .map(|answer| foreign::chain(answer, target, self.rtype));
        self.encode(&content, records.unwrap_or_default())
    }

    /// The largest reply, in bytes.
    pub(super) fn limit(&self) -> usize {
        match (self.transport, self.edns) {
            (Transport::Tcp, _) => LARGEST,
            (Transport::Udp, None) => PLAIN,
            (Transport::Udp, Some(edns)) => usize::from(edns.size.min(LARGEST_PACKET)).max(PLAIN),
        }
    }

    /// Encodes a reply. Records of other servers follow the answers. Records that do not fit are
    /// left out, and the reply is marked as truncated.
    fn encode(&self, content: &Content, from: Vec<ForeignRecord<'_>>) -> Vec<u8> {
        let rcode = content.rcode.unwrap_or(OptRcode::NOERROR);
        let Ok(builder) = MessageBuilder::from_target(StaticCompressor::new(Vec::new()));
        let mut answer = builder.start_error(&self.message, rcode.rcode());
        answer.header_mut().set_ra(true);
        answer.header_mut().set_aa(content.is_authoritative);
        let reserved = if self.edns.is_some() { OPT } else { 0 };
        answer.set_push_limit(self.limit().saturating_sub(reserved));
        let serial = content.serial;
        let mut is_whole = content
            .answers
            .iter()
            .all(|record| record.push(&mut answer, &self.name, serial).is_ok());
        is_whole = is_whole && from.into_iter().all(|record| answer.push(record).is_ok());
        let mut authority = answer.authority();
        if let Some(zone) = content.authority.as_deref().and_then(name) {
            let record = Record::of_question(Data::Authority);
            is_whole &= record.push(&mut authority, &zone, serial).is_ok();
        }
        let mut additional = authority.additional();
        // Additional records that do not fit do not count as truncation.
        let _ = content
            .additional
            .iter()
            .all(|record| record.push(&mut additional, &self.name, serial).is_ok());
        additional.clear_push_limit();
        if let Some(edns) = self.edns {
            let pushed = additional.opt(|opt| {
                opt.set_udp_payload_size(LARGEST_PACKET);
                opt.set_dnssec_ok(edns.dnssec);
                opt.set_rcode(rcode);
                Ok(())
            });
            is_whole &= pushed.is_ok();
        }
        additional.header_mut().set_tc(!is_whole);
        finish(additional)
    }
}

type Builder = AdditionalBuilder<StaticCompressor<Vec<u8>>>;

fn finish(builder: Builder) -> Vec<u8> {
    builder.finish().into_target()
}

/// Encodes an error without the question, which could not be read.
fn without_question(query: &Message<Vec<u8>>, rcode: Rcode) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    let header = builder.header_mut();
    header.set_id(query.header().id());
    header.set_qr(true);
    header.set_opcode(query.header().opcode());
    header.set_rd(query.header().rd());
    header.set_rcode(rcode);
    builder.finish()
}

#[cfg(test)]
mod tests;
