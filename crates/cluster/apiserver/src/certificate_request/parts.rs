//! The parts of a certificate request.

use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result};

use crate::distinguished_name::elements;

pub(super) fn invalid() -> ASN1Error {
    ASN1Error::new(ASN1ErrorKind::Invalid)
}

/// The parts of a request, encoded.
pub(super) struct Parts {
    /// The part that the signature covers.
    pub(super) signed: Vec<u8>,
    pub(super) public_key: Vec<u8>,
    pub(super) algorithm: Vec<u8>,
    pub(super) signature: Vec<u8>,
    pub(super) subject: Vec<u8>,
    pub(super) attributes: Option<Vec<u8>>,
}

impl Parts {
    pub(super) fn read(der: &[u8]) -> ASN1Result<Self> {
        let mut outer = elements(der)?.into_iter();
        let mut next = || outer.next().ok_or_else(invalid);
        let (signed, algorithm, signature) = (next()?, next()?, next()?);
        let mut inner = elements(&signed)?.into_iter().skip(1);
        let mut next = || inner.next().ok_or_else(invalid);
        let (subject, public_key) = (next()?, next()?);
        let attributes = inner.next();
        Ok(Self {
            signed,
            public_key,
            algorithm,
            signature,
            subject,
            attributes,
        })
    }
}
