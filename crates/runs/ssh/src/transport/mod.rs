//! The transport layer of a server (RFC 4253): versions, packets and the exchange of keys. Without
//! I/O: received bytes are fed to it, and it collects the bytes to send.

mod cipher;
mod kex;

use bytes::{Buf as _, BytesMut};
use ring::signature::Ed25519KeyPair;

use crate::wire::{Malformed, Put as _};
use cipher::{Opening, Sealing};
use kex::{Agreed, Transcript};

/// The numbers of the transport layer's messages.
mod message {
    pub(super) const DISCONNECT: u8 = 1;
    pub(super) const IGNORE: u8 = 2;
    pub(super) const UNIMPLEMENTED: u8 = 3;
    pub(super) const DEBUG: u8 = 4;
    pub(super) const SERVICE_REQUEST: u8 = 5;
    pub(super) const EXT_INFO: u8 = 7;
    pub(super) const KEXINIT: u8 = 20;
    pub(super) const NEWKEYS: u8 = 21;
    pub(super) const ECDH_INIT: u8 = 30;
    pub(super) const ECDH_REPLY: u8 = 31;
}

/// Codes of a disconnection.
pub(crate) mod reason {
    pub(crate) const PROTOCOL_ERROR: u32 = 2;
    pub(crate) const KEY_EXCHANGE_FAILED: u32 = 3;
    pub(crate) const BY_APPLICATION: u32 = 11;
    pub(crate) const NO_MORE_AUTH_METHODS: u32 = 14;
}

/// The maximum length of the client's version.
const MAX_VERSION: usize = 255;

/// An error that ends a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The streams cannot be read or written.
    #[error("the connection to the SSH client was lost: {0}")]
    Io(#[from] std::io::Error),
    /// The peer is not an SSH client.
    #[error("this is not an SSH client: expected a line such as SSH-2.0-OpenSSH_9.2")]
    Version,
    /// A packet is damaged.
    #[error("the SSH client sent a damaged packet")]
    Packet,
    /// A message is malformed.
    #[error("the SSH client does not follow the protocol: {0}")]
    Malformed(#[from] Malformed),
    /// A message is not expected.
    #[error("the SSH client does not follow the protocol: unexpected message {0}")]
    Unexpected(u8),
    /// The client does not respect a limit.
    #[error("the SSH client does not follow the protocol: {0}")]
    Protocol(&'static str),
    /// The client and the server have no algorithm in common.
    #[error(
        "the SSH client supports no common {what}: it offers {offered}, expected one of {known}; `longshore ssh --config` has the required options"
    )]
    NothingInCommon {
        /// The kind of algorithm, and OpenSSH's option for it.
        what: &'static str,
        /// The client's algorithms.
        offered: String,
        /// The server's algorithms.
        known: String,
    },
    /// A key or a signature is invalid.
    #[error("the exchange of keys with the SSH client failed")]
    Cryptography,
    /// The client has the wrong keys.
    #[error(
        "the SSH client does not have the key of Longshore: its IdentityFile must be the one of `longshore ssh --config`"
    )]
    Unauthorized,
    /// The client has disconnected.
    #[error("the SSH client has disconnected: {0}")]
    Disconnected(String),
}

impl Error {
    /// The code of the disconnection.
    fn reason(&self) -> u32 {
        match self {
            Self::NothingInCommon { .. } | Self::Cryptography => reason::KEY_EXCHANGE_FAILED,
            Self::Unauthorized => reason::NO_MORE_AUTH_METHODS,
            _ => reason::PROTOCOL_ERROR,
        }
    }
}

/// The step of an exchange of keys.
enum Step {
    /// No exchange is active.
    Idle,
    /// The client's proposal is next.
    Proposal,
    /// The client's half of the exchange is next.
    Exchange { agreed: Agreed, proposal: Vec<u8> },
    /// The client's first packet with the new keys is next.
    NewKeys { opening: Opening },
}

/// The transport layer of a connection.
pub(crate) struct Transport<'a> {
    host: &'a Ed25519KeyPair,
    input: BytesMut,
    output: BytesMut,
    client_version: Option<Vec<u8>>,
    opening: Opening,
    sealing: Sealing,
    received: u32,
    sent: u32,
    step: Step,
    /// The server's last proposal.
    proposal: Vec<u8>,
    session: Option<[u8; 32]>,
    is_strict: bool,
}

impl<'a> Transport<'a> {
    pub(crate) fn new(host: &'a Ed25519KeyPair) -> Self {
        let mut output = BytesMut::new();
        output.extend_from_slice(version());
        output.extend_from_slice(b"\r\n");
        Self {
            host,
            input: BytesMut::new(),
            output,
            client_version: None,
            opening: Opening::Clear,
            sealing: Sealing::Clear,
            received: 0,
            sent: 0,
            step: Step::Idle,
            proposal: Vec::new(),
            session: None,
            is_strict: false,
        }
    }

    /// The received bytes, to which others are appended, and the bytes to send.
    pub(crate) fn buffers(&mut self) -> (&mut BytesMut, &mut BytesMut) {
        (&mut self.input, &mut self.output)
    }

    #[cfg(test)]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The bytes to send.
    pub(crate) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// The identifier of the session, after the first exchange.
    pub(crate) fn session(&self) -> Option<[u8; 32]> {
        self.session
    }

    /// Returns true if messages of the layers above may be sent. During an exchange of keys, they
    /// wait.
    pub(crate) fn may_send(&self) -> bool {
        matches!(self.step, Step::Idle | Step::NewKeys { .. })
    }

    /// Appends a message to the output.
    pub(crate) fn send(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.sealing.seal(self.sent, payload, &mut self.output)?;
        self.sent = match &self.sealing {
            // The packet's number is its nonce, which must not repeat. That many packets contain
            // about 100 TB.
            Sealing::Chacha(_) => self
                .sent
                .checked_add(1)
                .ok_or(Error::Protocol("too many packets without new keys"))?,
            _ => self.sent.wrapping_add(1),
        };
        Ok(())
    }

    /// Reports to the client why the connection ends.
    pub(crate) fn disconnect(&mut self, code: u32, text: &str) {
        let mut message = vec![message::DISCONNECT];
        message.put_number(code);
        message.put_string(text);
        message.put_string("");
        let _ = self.send(&message);
    }

    /// Like [`Transport::disconnect`], but with the reason and the text of an error.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.disconnect(error.reason(), &error.to_string());
    }

    /// The next message for the layers above, or `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.client_version.is_none() && !self.read_version()? {
            return Ok(None);
        }
        while let Some(length) = self.opening.length(self.received, &self.input)? {
            if self.input.len() < length {
                return Ok(None);
            }
            let mut packet = self.input.split_to(length);
            let payload = self.opening.open(self.received, &mut packet)?;
            let payload = payload.to_vec();
            self.received = self.received.wrapping_add(1);
            if let Some(message) = self.handle(payload)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Reads the client's version, and begins the first exchange.
    fn read_version(&mut self) -> Result<bool, Error> {
        let begin = &self.input[..self.input.len().min(MAX_VERSION)];
        let Some(end) = begin.iter().position(|byte| *byte == b'\n') else {
            return match begin.len() < MAX_VERSION {
                true => Ok(false),
                false => Err(Error::Version),
            };
        };
        let line = self.input.split_to(end);
        self.input.advance(1);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if !line.starts_with(b"SSH-2.0-") {
            return Err(Error::Version);
        }
        self.client_version = Some(line.to_vec());
        self.propose()?;
        self.step = Step::Proposal;
        Ok(true)
    }

    fn propose(&mut self) -> Result<(), Error> {
        self.proposal = kex::proposal()?;
        let proposal = self.proposal.clone();
        self.send(&proposal)
    }

    /// Handles messages of this layer, and returns all others.
    fn handle(&mut self, payload: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let kind = *payload.first().ok_or(Malformed)?;
        match (kind, std::mem::replace(&mut self.step, Step::Idle)) {
            (message::DISCONNECT, _) => {
                let mut fields = crate::wire::Fields::new(&payload);
                fields.skip(1 + 4)?;
                let text = String::from_utf8_lossy(fields.string()?).into_owned();
                Err(Error::Disconnected(text))
            }
            (message::KEXINIT, step @ (Step::Idle | Step::Proposal)) => {
                if matches!(step, Step::Idle) {
                    self.propose()?;
                }
                let agreed = kex::agree(&payload)?;
                // The first proposals decide on strict key exchange, and must be the first
                // messages.
                if self.session.is_none() {
                    self.is_strict = agreed.is_strict;
                    if self.is_strict && self.received != 1 {
                        return Err(Error::Unexpected(kind));
                    }
                }
                self.step = Step::Exchange {
                    agreed,
                    proposal: payload,
                };
                Ok(None)
            }
            (
                message::ECDH_INIT,
                Step::Exchange {
                    mut agreed,
                    proposal,
                },
            ) => {
                if std::mem::take(&mut agreed.skips_guess) {
                    self.step = Step::Exchange { agreed, proposal };
                    return Ok(None);
                }
                self.exchange(&agreed, &proposal, &payload)?;
                Ok(None)
            }
            (message::NEWKEYS, Step::NewKeys { opening }) => {
                self.opening = opening;
                if self.is_strict {
                    self.received = 0;
                }
                Ok(None)
            }
            // Strict key exchange allows no other messages during the first exchange.
            (_, Step::Proposal | Step::Exchange { .. } | Step::NewKeys { .. })
                if self.is_strict && self.opening_is_clear() =>
            {
                Err(Error::Unexpected(kind))
            }
            (
                message::IGNORE | message::UNIMPLEMENTED | message::DEBUG | message::EXT_INFO,
                step,
            ) => {
                self.step = step;
                Ok(None)
            }
            (message::SERVICE_REQUEST | 50.., Step::Idle) if self.session.is_some() => {
                Ok(Some(payload))
            }
            _ => Err(Error::Unexpected(kind)),
        }
    }

    fn opening_is_clear(&self) -> bool {
        matches!(self.opening, Opening::Clear)
    }

    fn exchange(&mut self, agreed: &Agreed, proposal: &[u8], message: &[u8]) -> Result<(), Error> {
        let transcript = Transcript {
            client_version: self.client_version.as_deref().unwrap_or_default(),
            server_version: version(),
            client_proposal: proposal,
            server_proposal: &self.proposal,
        };
        let done = kex::exchange(self.host, agreed, &transcript, self.session, message)?;
        self.send(&done.reply)?;
        self.send(&[message::NEWKEYS])?;
        self.sealing = done.sealing;
        if self.is_strict {
            self.sent = 0;
        }
        self.session = Some(done.session);
        self.step = Step::NewKeys {
            opening: done.opening,
        };
        Ok(())
    }
}

/// The server's version.
fn version() -> &'static [u8] {
    concat!("SSH-2.0-Longshore_", env!("CARGO_PKG_VERSION")).as_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// Receives payloads as unencrypted packets.
    fn receive(payloads: &[Vec<u8>]) -> Result<Option<Vec<u8>>, Error> {
        let host = Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
        let mut transport = Transport::new(&host);
        transport.feed(b"SSH-2.0-client\r\n");
        let mut packets = BytesMut::new();
        for payload in payloads {
            Sealing::Clear.seal(0, payload, &mut packets).unwrap();
        }
        transport.feed(&packets);
        transport.next()
    }

    #[test]
    fn nothing_passes_before_the_exchange_of_keys() {
        for kind in [5, 50, 80, 90, 98, message::NEWKEYS, message::ECDH_INIT] {
            let error = receive(&[vec![kind, 0, 0, 0, 0]]).unwrap_err();
            assert!(matches!(error, Error::Unexpected(_)), "{kind}: {error}");
        }
    }

    #[test]
    fn other_protocols_are_refused() {
        let host = Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
        for text in ["GET / HTTP/1.0\r\n", "SSH-1.5-x\n", &"x".repeat(300)] {
            let mut transport = Transport::new(&host);
            transport.feed(text.as_bytes());
            assert!(matches!(transport.next(), Err(Error::Version)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_messages_are_handled_without_a_panic(
            kind in 1..32u8,
            mut payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..80), 1..4),
        ) {
            payloads.insert(0, kex::proposal().unwrap());
            payloads[1].insert(0, kind);
            let _ = receive(&payloads);
            let _ = receive(&payloads[1..]);
        }
    }
}
