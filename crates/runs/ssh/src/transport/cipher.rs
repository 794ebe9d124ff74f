//! Encrypts and decrypts packets. Both ciphers authenticate the packets themselves.

use ring::aead::{
    AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey, chacha20_poly1305_openssh as chacha,
};

use super::Error;

/// The maximum length of a packet in bytes, as in OpenSSH.
const MAX_PACKET: usize = 256 << 10;
/// The length of the field with a packet's length.
const LENGTH: usize = 4;
/// The length of a packet's authentication tag.
const TAG: usize = 16;

/// The supported ciphers, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    Chacha,
    Gcm,
}

impl Suite {
    pub(super) const ALL: [Self; 2] = [Self::Chacha, Self::Gcm];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chacha => "chacha20-poly1305@openssh.com",
            Self::Gcm => "aes256-gcm@openssh.com",
        }
    }

    /// The lengths of the key and of the initialization vector.
    pub(super) fn lengths(self) -> (usize, usize) {
        match self {
            Self::Chacha => (chacha::KEY_LEN, 0),
            Self::Gcm => (32, 12),
        }
    }
}

/// A key of AES-GCM with the counter of its packets.
pub(super) struct Gcm {
    key: LessSafeKey,
    fixed: [u8; 4],
    counter: u64,
}

impl Gcm {
    fn new(key: &[u8], vector: &[u8]) -> Option<Self> {
        let (fixed, counter) = vector.split_first_chunk()?;
        Some(Self {
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?),
            fixed: *fixed,
            counter: u64::from_be_bytes(counter.try_into().ok()?),
        })
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.fixed);
        nonce[4..].copy_from_slice(&self.counter.to_be_bytes());
        self.counter = self.counter.wrapping_add(1);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Decrypts the packets of the client.
pub(super) enum Opening {
    Clear,
    Chacha(Box<chacha::OpeningKey>),
    Gcm(Box<Gcm>),
}

impl Opening {
    pub(super) fn new(suite: Suite, key: &[u8], vector: &[u8]) -> Option<Self> {
        Some(match suite {
            Suite::Chacha => Self::Chacha(Box::new(chacha::OpeningKey::new(key.try_into().ok()?))),
            Suite::Gcm => Self::Gcm(Box::new(Gcm::new(key, vector)?)),
        })
    }

    /// The length of the first packet, or `None` if more bytes are needed.
    pub(super) fn length(&self, number: u32, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let Some(first) = bytes.first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let (length, tag) = match self {
            Self::Clear => (*first, 0),
            Self::Chacha(key) => (key.decrypt_packet_length(number, *first), TAG),
            Self::Gcm(_) => (*first, TAG),
        };
        let length = u32::from_be_bytes(length) as usize;
        if !(5..=MAX_PACKET).contains(&length) {
            return Err(Error::Packet);
        }
        Ok(Some(LENGTH + length + tag))
    }

    /// Decrypts a packet in place, and returns its payload.
    pub(super) fn open<'a>(
        &mut self,
        number: u32,
        packet: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let plain: &[u8] = match self {
            Self::Clear => packet.get(LENGTH..).ok_or(Error::Packet)?,
            Self::Chacha(key) => {
                let (sealed, tag) = packet.split_last_chunk_mut::<TAG>().ok_or(Error::Packet)?;
                key.open_in_place(number, sealed, tag)
                    .map_err(|_| Error::Packet)?
            }
            Self::Gcm(key) => {
                let (length, sealed) = packet
                    .split_first_chunk_mut::<LENGTH>()
                    .ok_or(Error::Packet)?;
                let nonce = key.nonce();
                key.key
                    .open_in_place(nonce, Aad::from(*length), sealed)
                    .map_err(|_| Error::Packet)?
            }
        };
        let (padding, rest) = plain.split_first().ok_or(Error::Packet)?;
        let end = rest.len().checked_sub(usize::from(*padding));
        let payload = end.and_then(|end| rest.get(..end)).ok_or(Error::Packet)?;
        match payload.is_empty() {
            true => Err(Error::Packet),
            false => Ok(payload),
        }
    }
}

/// Encrypts the packets to the client.
pub(super) enum Sealing {
    Clear,
    Chacha(Box<chacha::SealingKey>),
    Gcm(Box<Gcm>),
}

impl Sealing {
    pub(super) fn new(suite: Suite, key: &[u8], vector: &[u8]) -> Option<Self> {
        Some(match suite {
            Suite::Chacha => Self::Chacha(Box::new(chacha::SealingKey::new(key.try_into().ok()?))),
            Suite::Gcm => Self::Gcm(Box::new(Gcm::new(key, vector)?)),
        })
    }

    /// Appends the packet of a payload to the output.
    pub(super) fn seal(
        &mut self,
        number: u32,
        payload: &[u8],
        output: &mut bytes::BytesMut,
    ) -> Result<(), Error> {
        let (block, counted) = match self {
            Self::Clear => (8, LENGTH),
            Self::Chacha(_) => (8, 0),
            Self::Gcm(_) => (16, 0),
        };
        let length = 1 + payload.len();
        let mut padding = block - (counted + length) % block;
        if padding < 4 {
            padding += block;
        }
        let start = output.len();
        let plain = length + padding;
        output.extend_from_slice(
            &u32::try_from(plain)
                .map_err(|_| Error::Packet)?
                .to_be_bytes(),
        );
        output.extend_from_slice(&[u8::try_from(padding).map_err(|_| Error::Packet)?]);
        output.extend_from_slice(payload);
        output.resize(start + LENGTH + plain, 0);
        match self {
            Self::Clear => {}
            Self::Chacha(key) => {
                let mut tag = [0; TAG];
                key.seal_in_place(number, &mut output[start..], &mut tag);
                output.extend_from_slice(&tag);
            }
            Self::Gcm(key) => {
                let nonce = key.nonce();
                let (length, plain) = output[start..]
                    .split_first_chunk_mut::<LENGTH>()
                    .ok_or(Error::Packet)?;
                let tag = key
                    .key
                    .seal_in_place_separate_tag(nonce, Aad::from(*length), plain)
                    .map_err(|_| Error::Packet)?;
                output.extend_from_slice(tag.as_ref());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;

    fn pair(suite: Suite) -> (Sealing, Opening) {
        let (key, vector) = ([7; 64], [9; 12]);
        let (length, _) = suite.lengths();
        let sealing = Sealing::new(suite, &key[..length], &vector).unwrap();
        let opening = Opening::new(suite, &key[..length], &vector).unwrap();
        (sealing, opening)
    }

    proptest! {
        #[test]
        fn payloads_are_opened_as_sealed(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..5),
            which in 0..3,
        ) {
            let (mut sealing, mut opening) = match which {
                0 => (Sealing::Clear, Opening::Clear),
                1 => pair(Suite::Chacha),
                _ => pair(Suite::Gcm),
            };
            for (number, payload) in (0..).zip(&payloads) {
                let mut packet = BytesMut::new();
                sealing.seal(number, payload, &mut packet).unwrap();
                prop_assert_eq!(opening.length(number, &packet[..3]).unwrap(), None);
                prop_assert_eq!(opening.length(number, &packet).unwrap(), Some(packet.len()));
                prop_assert_eq!(opening.open(number, &mut packet).unwrap(), &payload[..]);
            }
        }

        #[test]
        fn a_changed_packet_is_refused(at in any::<prop::sample::Index>(), gcm: bool) {
            let (mut sealing, mut opening) = pair(Suite::ALL[usize::from(gcm)]);
            let mut packet = BytesMut::new();
            sealing.seal(3, b"payload", &mut packet).unwrap();
            let at = at.index(packet.len());
            packet[at] ^= 1;
            prop_assert!(opening.open(3, &mut packet).is_err());
        }

        #[test]
        fn any_bytes_are_opened_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            for mut opening in [Opening::Clear, pair(Suite::Chacha).1, pair(Suite::Gcm).1] {
                let _ = opening.length(0, &bytes);
                let _ = opening.open(0, &mut bytes);
            }
        }
    }
}
