//! Records and their encoding. Pure.

use std::{borrow::Cow, net::IpAddr};

use domain::{
    base::{
        Name, Rtype, Serial, Ttl,
        iana::Class,
        message_builder::{PushError, RecordSectionBuilder},
        wire::Composer,
    },
    rdata::{A, Aaaa, Cname, Ns, Ptr, Soa, Srv, Txt},
};

use super::name::ZONE;

/// The time for which clients may cache a record, in seconds.
const TTL: u32 = 5;
/// The version of the specification of the names.
const VERSION: &str = "1.1.0";
/// Times of the zone's authority record, in seconds; no other server reads them.
const REFRESH: u32 = 7200;
const RETRY: u32 = 1800;
const EXPIRE: u32 = 86_400;

/// The data of a record. Names have no final dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    Address(IpAddr),
    /// A port of a Service.
    Port {
        port: u16,
        weight: u16,
        target: String,
    },
    /// The name of an address.
    Pointer(String),
    /// The name that has the records.
    Alias(String),
    /// The zone's server.
    NameServer,
    /// The zone's authority.
    Authority,
    /// The version of the specification.
    Version,
}

impl Data {
    /// The type of the record.
    pub(super) fn rtype(&self) -> Rtype {
        match self {
            Self::Address(IpAddr::V4(_)) => Rtype::A,
            Self::Address(IpAddr::V6(_)) => Rtype::AAAA,
            Self::Port { .. } => Rtype::SRV,
            Self::Pointer(_) => Rtype::PTR,
            Self::Alias(_) => Rtype::CNAME,
            Self::NameServer => Rtype::NS,
            Self::Authority => Rtype::SOA,
            Self::Version => Rtype::TXT,
        }
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The name of the record, or `None` for the name in the question.
    pub(super) owner: Option<String>,
    pub(super) data: Data,
}

impl Record {
    pub(super) fn of_question(data: Data) -> Self {
        Self { owner: None, data }
    }

    pub(super) fn address(address: IpAddr) -> Self {
        Self::of_question(Data::Address(address))
    }

    pub(super) fn owned_by(self, owner: String) -> Self {
        Self {
            owner: Some(owner),
            ..self
        }
    }

    /// Appends the record to a section. A record with a name that cannot be encoded is left out.
    pub(super) fn push<T: Composer>(
        &self,
        section: &mut impl RecordSectionBuilder<T>,
        question: &Name<Vec<u8>>,
        serial: u32,
    ) -> Result<(), PushError> {
        let owner = match &self.owner {
            None => Cow::Borrowed(question),
            Some(owner) => match name(owner) {
                Some(owner) => Cow::Owned(owner),
                None => return Ok(()),
            },
        };
        let owner = &*owner;
        let ttl = Ttl::from_secs(TTL);
        match &self.data {
            Data::Address(IpAddr::V4(address)) => {
                section.push((owner, Class::IN, ttl, A::new(*address)))
            }
            Data::Address(IpAddr::V6(address)) => {
                section.push((owner, Class::IN, ttl, Aaaa::new(*address)))
            }
            Data::Port {
                port,
                weight,
                target,
            } => match name(target) {
                Some(target) => {
                    let data = Srv::new(0, *weight, *port, target);
                    section.push((owner, Class::IN, ttl, data))
                }
                None => Ok(()),
            },
            Data::Pointer(target) => match name(target) {
                Some(target) => section.push((owner, Class::IN, ttl, Ptr::new(target))),
                None => Ok(()),
            },
            Data::Alias(target) => match name(target) {
                Some(target) => section.push((owner, Class::IN, ttl, Cname::new(target))),
                None => Ok(()),
            },
            Data::NameServer => match name(&format!("ns.dns.{ZONE}")) {
                Some(server) => section.push((owner, Class::IN, ttl, Ns::new(server))),
                None => Ok(()),
            },
            Data::Version => match Txt::<Vec<u8>>::build_from_slice(VERSION.as_bytes()) {
                Ok(text) => section.push((owner, Class::IN, ttl, text)),
                Err(_) => Ok(()),
            },
            Data::Authority => {
                let names = (
                    name(&format!("ns.dns.{ZONE}")),
                    name(&format!("hostmaster.{ZONE}")),
                );
                let (Some(server), Some(mailbox)) = names else {
                    return Ok(());
                };
                let seconds = Ttl::from_secs;
                let data = Soa::new(
                    server,
                    mailbox,
                    Serial::from_be_bytes(serial.to_be_bytes()),
                    seconds(REFRESH),
                    seconds(RETRY),
                    seconds(EXPIRE),
                    ttl,
                );
                section.push((owner, Class::IN, ttl, data))
            }
        }
    }
}

/// Encodes a name.
pub(super) fn name(text: &str) -> Option<Name<Vec<u8>>> {
    Name::vec_from_str(text).ok()
}
