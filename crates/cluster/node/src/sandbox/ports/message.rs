//! The messages between the agent and the process that answers a container's calls, with the
//! layout of `init/ports.rs`. Pure.

use std::net::{IpAddr, SocketAddr};

use super::address;

/// The size of a message.
pub(super) const SIZE: usize = 12 + ADDRESS_SIZE;
const ADDRESS_SIZE: usize = 128;

/// A message from the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// A container binds a socket to this address.
    Bind(SocketAddr),
    /// A container connects a socket to this address.
    Connect(SocketAddr),
    /// A socket was bound as the agent requested, with this error number or 0, and has this address
    /// now.
    Bound(i32, Option<SocketAddr>),
}

/// The answer to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The kernel executes the call.
    Continue,
    /// The call was executed, with this error number, or 0.
    Done(i32),
    /// The process executes the call with this address.
    Execute(SocketAddr),
}

impl Message {
    /// Reads a message; `None` if it is invalid.
    pub(super) fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let (kind, error, length) = (number(0)?, number(4)?, number(8)?);
        let length = usize::try_from(length).ok()?.min(ADDRESS_SIZE);
        let address = address::read(bytes.get(12..12 + length)?);
        match kind {
            0 => Some(Self::Bind(address?)),
            1 => Some(Self::Connect(address?)),
            2 => Some(Self::Bound(error.cast_signed(), address)),
            _ => None,
        }
    }
}

impl Answer {
    pub(super) fn encode(self) -> [u8; SIZE] {
        let (kind, error, address) = match self {
            Self::Continue => (0_u32, 0, Vec::new()),
            Self::Done(error) => (1, error, Vec::new()),
            Self::Execute(address) => (2, 0, encode(address)),
        };
        let length = u32::try_from(address.len()).unwrap_or_default();
        let parts = [
            &kind.to_ne_bytes()[..],
            &error.to_ne_bytes(),
            &length.to_ne_bytes(),
            &address,
        ];
        let mut message = [0; SIZE];
        for (to, byte) in message.iter_mut().zip(parts.concat()) {
            *to = byte;
        }
        message
    }
}

/// Writes an address as `sockaddr_in` or `sockaddr_in6`.
fn encode(address: SocketAddr) -> Vec<u8> {
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET as libc::sa_family_t,
        SocketAddr::V6(_) => libc::AF_INET6 as libc::sa_family_t,
    };
    let mut bytes = family.to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => bytes.extend(ip.octets()),
        IpAddr::V6(ip) => {
            // Zeros between a flow and a scope.
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
        }
    }
    let size = match address {
        SocketAddr::V4(_) => size_of::<libc::sockaddr_in>(),
        SocketAddr::V6(_) => size_of::<libc::sockaddr_in6>(),
    };
    bytes.resize(size, 0);
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u32, error: i32, address: &[u8]) -> [u8; SIZE] {
        let mut message = [0; SIZE];
        message[..4].copy_from_slice(&kind.to_ne_bytes());
        message[4..8].copy_from_slice(&error.to_ne_bytes());
        message[8..12].copy_from_slice(&(address.len() as u32).to_ne_bytes());
        message[12..12 + address.len()].copy_from_slice(address);
        message
    }

    proptest! {
        #[test]
        fn addresses_are_the_same_after_both_directions(ip: IpAddr, port: u16, error: i32) {
            let address = SocketAddr::new(ip, port);
            let sent = Answer::Execute(address).encode();
            prop_assert_eq!(&sent[..4], &2_u32.to_ne_bytes());
            let mut back = sent;
            for (kind, expected) in [
                (0_u32, Message::Bind(address)),
                (1, Message::Connect(address)),
                (2, Message::Bound(error, Some(address))),
            ] {
                back[..4].copy_from_slice(&kind.to_ne_bytes());
                back[4..8].copy_from_slice(&error.to_ne_bytes());
                prop_assert_eq!(Message::decode(&back), Some(expected));
            }
        }

        #[test]
        fn no_bytes_cause_a_panic(kind in 0_u32..4, bytes in prop::collection::vec(any::<u8>(), SIZE - 4)) {
            let mut message = [0; SIZE];
            message[..4].copy_from_slice(&kind.to_ne_bytes());
            message[4..].copy_from_slice(&bytes);
            let _ = Message::decode(&message);
        }
    }

    #[test]
    fn a_result_needs_no_address() {
        let bound = Message::decode(&message(2, libc::EADDRINUSE, &[]));
        assert_eq!(bound, Some(Message::Bound(libc::EADDRINUSE, None)));
        assert_eq!(Message::decode(&message(0, 0, &[])), None);
        assert_eq!(Answer::Done(98).encode(), message(1, 98, &[]));
        assert_eq!(Answer::Continue.encode(), message(0, 0, &[]));
    }
}
