//! The usages of keys, with the names of certificates.k8s.io.

use super::error::RequestError;

/// Usages that are bits of the extension for key usage: name and bit.
const BITS: [(&str, u8); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Usages that are identifiers of the extension for extended key usage.
const IDENTIFIERS: [(&str, &[u64]); 13] = [
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113730, 4, 1]),
];

/// The usages of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Usages {
    /// The bits of the key usage, the first one highest.
    pub(super) bits: u16,
    /// The identifiers of the extended key usage.
    pub(super) identifiers: Vec<&'static [u64]>,
}

impl Usages {
    pub(super) fn read(names: &[String]) -> Result<Self, RequestError> {
        let mut usages = Self::default();
        let mut unknown = Vec::new();
        for name in names {
            let bit = BITS.iter().find(|(known, _)| known == name);
            let is_identifier = IDENTIFIERS.iter().any(|(known, _)| known == name);
            match bit {
                Some((_, bit)) => usages.bits |= 0x8000 >> bit,
                None if is_identifier => {}
                None => unknown.push(name.clone()),
            }
        }
        // In the order of the table.
        for (name, identifier) in IDENTIFIERS {
            if names.iter().any(|one| one == name) && !usages.identifiers.contains(&identifier) {
                usages.identifiers.push(identifier);
            }
        }
        match unknown.is_empty() {
            true => Ok(usages),
            false => Err(RequestError::Usages(unknown)),
        }
    }

    /// The bytes of the key usage and the number of bits, without trailing zeros.
    pub(super) fn bit_string(&self) -> (Vec<u8>, usize) {
        let length = 16_usize.saturating_sub(self.bits.trailing_zeros() as usize);
        let bytes = self.bits.to_be_bytes();
        (bytes[..length.div_ceil(8)].to_vec(), length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn usages(names: &[&str]) -> Result<Usages, RequestError> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        Usages::read(&names)
    }

    #[test]
    fn names_become_bits_and_identifiers() {
        let found = usages(&["client auth", "digital signature", "server auth"]).unwrap();
        assert_eq!(found.bit_string(), (vec![0x80], 1));
        let last: Vec<_> = found.identifiers.iter().map(|id| id.last()).collect();
        assert_eq!(last, [Some(&1), Some(&2)]);
        let found = usages(&["decipher only", "s/mime", "email protection"]).unwrap();
        assert_eq!(found.bit_string(), (vec![0x00, 0x80], 9));
        assert_eq!(found.identifiers.len(), 1);
        let error = usages(&["x"]).unwrap_err();
        assert_eq!(error.to_string(), "unrecognized usage values: [\"x\"]");
    }
}
