//! Values of the Kubernetes libraries.

use std::{net::IpAddr, sync::Arc};

use super::{Decimal, Url};
use crate::{
    authorizer::{AccessDecision, AccessRequest, Authorizer},
    types::Opaque as Kind,
};

/// A value of a Kubernetes library.
#[derive(Debug, Clone)]
pub(crate) enum Opaque {
    Quantity(Decimal),
    Url(Url),
    Ip(IpAddr),
    Cidr(Cidr),
    Semver(Semver),
    Format(Format),
    Authorizer(Access),
    PathCheck(Access),
    GroupCheck(Access),
    ResourceCheck(Access),
    Decision(AccessDecision),
}

/// A question to an authorizer.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) request: AccessRequest,
}

/// An address with the length of its network prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

/// A semantic version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    pub(crate) numbers: [u64; 3],
    pub(crate) pre: Vec<String>,
    pub(crate) build: Vec<String>,
}

/// A format of the library `format`, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format(pub(crate) usize);

impl Opaque {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => Kind::Quantity,
            Self::Url(_) => Kind::Url,
            Self::Ip(_) => Kind::Ip,
            Self::Cidr(_) => Kind::Cidr,
            Self::Semver(_) => Kind::Semver,
            Self::Format(_) => Kind::Format,
            Self::Authorizer(_) => Kind::Authorizer,
            Self::PathCheck(_) => Kind::PathCheck,
            Self::GroupCheck(_) => Kind::GroupCheck,
            Self::ResourceCheck(_) => Kind::ResourceCheck,
            Self::Decision(_) => Kind::Decision,
        }
        .name()
    }

    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => u64::from(cidr.prefix.div_ceil(8)),
            _ => 1,
        }
    }

    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => (a.numbers, &a.pre) == (b.numbers, &b.pre),
            (Self::Format(a), Self::Format(b)) => a == b,
            (Self::Decision(a), Self::Decision(b)) => a == b,
            _ => false,
        }
    }
}
