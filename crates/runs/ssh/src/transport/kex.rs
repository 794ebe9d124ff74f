//! The exchange of keys: curve25519-sha256 of RFC 8731, with a host key of RFC 8709, and strict key
//! exchange, which prevents an attacker from removing packets from its beginning.

use ring::{
    agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral},
    digest::{Context, SHA256},
    rand::{SecureRandom as _, SystemRandom},
    signature::{Ed25519KeyPair, KeyPair as _},
};

use super::{
    Error,
    cipher::{Opening, Sealing, Suite},
    message,
};
use crate::{
    keys,
    wire::{Fields, Put as _},
};

const METHODS: [&str; 2] = ["curve25519-sha256", "curve25519-sha256@libssh.org"];
const STRICT_CLIENT: &str = "kex-strict-c-v00@openssh.com";
const STRICT_SERVER: &str = "kex-strict-s-v00@openssh.com";
/// Clients require a common MAC, although the ciphers do not use one.
const MACS: &str =
    "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512";
const COMPRESSION: &str = "none";

/// The algorithms that the client and the server agreed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    pub(super) from_client: Suite,
    pub(super) to_client: Suite,
    /// True if the client supports strict key exchange.
    pub(super) is_strict: bool,
    /// True if the next message is a wrong guess of the client.
    pub(super) skips_guess: bool,
}

/// The server's proposal.
pub(super) fn proposal() -> Result<Vec<u8>, Error> {
    let mut cookie = [0; 16];
    let random = SystemRandom::new();
    random.fill(&mut cookie).map_err(|_| Error::Cryptography)?;
    let ciphers = Suite::ALL.map(Suite::name).join(",");
    let mut message = vec![message::KEXINIT];
    message.extend_from_slice(&cookie);
    message.put_string([METHODS[0], METHODS[1], STRICT_SERVER].join(","));
    message.put_string(keys::ALGORITHM);
    message.put_string(&ciphers);
    message.put_string(&ciphers);
    message.put_string(MACS);
    message.put_string(MACS);
    message.put_string(COMPRESSION);
    message.put_string(COMPRESSION);
    message.put_string("");
    message.put_string("");
    message.put_boolean(false);
    message.put_number(0);
    Ok(message)
}

/// Chooses the algorithms: the first of the client's that the server has.
pub(super) fn agree(proposal: &[u8]) -> Result<Agreed, Error> {
    let mut fields = Fields::new(proposal);
    fields.skip(1 + 16)?;
    let methods = fields.names()?;
    let host_keys = fields.names()?;
    let ciphers = [fields.names()?, fields.names()?];
    // The ciphers do not use a MAC.
    let _macs = [fields.string()?, fields.string()?];
    let compressions = [fields.names()?, fields.names()?];
    let _languages = [fields.string()?, fields.string()?];
    let guesses = fields.boolean()?;
    let choose = |what: &'static str, offered: &[&str], known: &[&str]| {
        let chosen = offered.iter().position(|name| known.contains(name));
        chosen.ok_or_else(|| Error::NothingInCommon {
            what,
            offered: offered.join(","),
            known: known.join(","),
        })
    };
    let method = choose("key exchange (KexAlgorithms)", &methods, &METHODS)?;
    let host_key = choose(
        "host key (HostKeyAlgorithms)",
        &host_keys,
        &[keys::ALGORITHM],
    )?;
    let suites = Suite::ALL.map(Suite::name);
    let suite = |offered: &[&str]| {
        let at = choose("cipher (Ciphers)", offered, &suites)?;
        let found = Suite::ALL
            .into_iter()
            .find(|suite| suite.name() == offered[at]);
        found.ok_or(Error::Cryptography)
    };
    for offered in &compressions {
        choose("compression (Compression)", offered, &[COMPRESSION])?;
    }
    Ok(Agreed {
        from_client: suite(&ciphers[0])?,
        to_client: suite(&ciphers[1])?,
        is_strict: methods.contains(&STRICT_CLIENT),
        skips_guess: guesses && (method, host_key) != (0, 0),
    })
}

/// The earlier messages of both sides, from which the keys are derived.
pub(super) struct Transcript<'a> {
    pub(super) client_version: &'a [u8],
    pub(super) server_version: &'a [u8],
    pub(super) client_proposal: &'a [u8],
    pub(super) server_proposal: &'a [u8],
}

/// The result of an exchange.
pub(super) struct Exchanged {
    /// The reply to the client.
    pub(super) reply: Vec<u8>,
    pub(super) opening: Opening,
    pub(super) sealing: Sealing,
    /// The identifier of the session: the hash of its first exchange.
    pub(super) session: [u8; 32],
}

/// Answers the client's half of the exchange.
pub(super) fn exchange(
    host: &Ed25519KeyPair,
    agreed: &Agreed,
    transcript: &Transcript<'_>,
    session: Option<[u8; 32]>,
    message: &[u8],
) -> Result<Exchanged, Error> {
    let mut fields = Fields::new(message);
    fields.skip(1)?;
    let theirs = fields.string()?;
    let random = SystemRandom::new();
    let failed = |_| Error::Cryptography;
    let own = EphemeralPrivateKey::generate(&X25519, &random).map_err(failed)?;
    let public = own.compute_public_key().map_err(failed)?;
    let peer = UnparsedPublicKey::new(&X25519, theirs);
    let secret = agree_ephemeral(own, &peer, |secret| {
        let mut encoded = Vec::new();
        encoded.put_integer(secret);
        encoded
    })
    .map_err(failed)?;
    let host_key = keys::blob(host.public_key().as_ref());
    let mut hashed = Vec::new();
    hashed.put_string(transcript.client_version);
    hashed.put_string(transcript.server_version);
    hashed.put_string(transcript.client_proposal);
    hashed.put_string(transcript.server_proposal);
    hashed.put_string(&host_key);
    hashed.put_string(theirs);
    hashed.put_string(public.as_ref());
    hashed.extend_from_slice(&secret);
    let hash = sha256(&[&hashed]);
    let session = session.unwrap_or(hash);
    let mut signature = Vec::new();
    signature.put_string(keys::ALGORITHM);
    signature.put_string(host.sign(&hash).as_ref());
    let mut reply = vec![message::ECDH_REPLY];
    reply.put_string(&host_key);
    reply.put_string(public.as_ref());
    reply.put_string(&signature);
    let derive = |letter: u8, length: usize| {
        let mut key = sha256(&[&secret, &hash, &[letter], &session]).to_vec();
        while key.len() < length {
            let more = sha256(&[&secret, &hash, &key]);
            key.extend_from_slice(&more);
        }
        key.truncate(length);
        key
    };
    let (in_key, in_vector) = agreed.from_client.lengths();
    let (out_key, out_vector) = agreed.to_client.lengths();
    let opening = Opening::new(
        agreed.from_client,
        &derive(b'C', in_key),
        &derive(b'A', in_vector),
    );
    let sealing = Sealing::new(
        agreed.to_client,
        &derive(b'D', out_key),
        &derive(b'B', out_vector),
    );
    Ok(Exchanged {
        reply,
        opening: opening.ok_or(Error::Cryptography)?,
        sealing: sealing.ok_or(Error::Cryptography)?,
        session,
    })
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn client(methods: &str, cipher: &str, guesses: bool) -> Vec<u8> {
        let mut message = vec![message::KEXINIT];
        message.extend_from_slice(&[0; 16]);
        for list in [
            methods,
            "ssh-ed25519",
            cipher,
            cipher,
            "x",
            "x",
            "none",
            "none",
            "",
            "",
        ] {
            message.put_string(list);
        }
        message.put_boolean(guesses);
        message.put_number(0);
        message
    }

    #[test]
    fn the_first_algorithm_of_the_client_wins() {
        let both = "aes256-ctr,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com";
        let agreed = agree(&client("x,curve25519-sha256", both, false)).unwrap();
        assert_eq!(agreed.from_client, Suite::Gcm);
        assert!(!agreed.is_strict && !agreed.skips_guess);
        let strict = format!("{},{STRICT_CLIENT}", METHODS[0]);
        let agreed = agree(&client(&strict, both, true)).unwrap();
        assert!(agreed.is_strict && !agreed.skips_guess);
        assert!(
            agree(&client("x,curve25519-sha256", both, true))
                .unwrap()
                .skips_guess
        );
    }

    #[test]
    fn an_error_has_what_both_sides_know() {
        let error = agree(&client("curve25519-sha256", "aes256-ctr", false)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("Ciphers") && text.contains("aes256-ctr"),
            "{text}"
        );
        assert!(text.contains("aes256-gcm@openssh.com"), "{text}");
    }

    #[test]
    fn the_own_proposal_is_one_that_the_server_accepts() {
        let agreed = agree(&proposal().unwrap()).unwrap();
        assert_eq!(agreed.to_client, Suite::Chacha);
    }
}
