//! Authentication (RFC 4252): accepts one public key, for any user name.

use ring::signature::{ED25519, UnparsedPublicKey};

use crate::{
    keys,
    transport::{Error, Transport},
    wire::{Fields, Put as _},
};

const SERVICE_REQUEST: u8 = 5;
const SERVICE_ACCEPT: u8 = 6;
const REQUEST: u8 = 50;
const FAILURE: u8 = 51;
const SUCCESS: u8 = 52;
const KEY_IS_ACCEPTABLE: u8 = 60;

/// The only method.
const METHOD: &str = "publickey";
const SERVICE: &str = "ssh-connection";
/// The maximum number of failed attempts. Clients try the keys of their agent first.
const MAX_FAILURES: u32 = 50;

/// The authentication of a client.
pub(crate) struct Auth<'a> {
    key: &'a [u8],
    failures: u32,
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Success,
    Failure,
    /// The key is correct, but the request has no signature.
    Acceptable,
}

impl<'a> Auth<'a> {
    pub(crate) fn new(key: &'a [u8]) -> Self {
        Self { key, failures: 0 }
    }

    /// Answers a message. Returns true if the client is authenticated.
    pub(crate) fn answer(
        &mut self,
        transport: &mut Transport<'_>,
        payload: &[u8],
    ) -> Result<bool, Error> {
        let mut fields = Fields::new(payload);
        let mut reply = Vec::new();
        match fields.byte()? {
            REQUEST => {}
            SERVICE_REQUEST if fields.string()? == b"ssh-userauth" => {
                reply.put_byte(SERVICE_ACCEPT);
                reply.put_string("ssh-userauth");
                transport.send(&reply)?;
                return Ok(false);
            }
            kind => return Err(Error::Unexpected(kind)),
        }
        let session = transport.session().ok_or(Error::Unexpected(REQUEST))?;
        let answer = self.check(&session, fields)?;
        match answer {
            Answer::Success => reply.put_byte(SUCCESS),
            Answer::Acceptable => {
                reply.put_byte(KEY_IS_ACCEPTABLE);
                reply.put_string(keys::ALGORITHM);
                reply.put_string(keys::blob(self.key));
            }
            Answer::Failure => {
                self.failures += 1;
                if self.failures > MAX_FAILURES {
                    return Err(Error::Unauthorized);
                }
                reply.put_byte(FAILURE);
                reply.put_string(METHOD);
                reply.put_boolean(false);
            }
        }
        transport.send(&reply)?;
        Ok(answer == Answer::Success)
    }

    fn check(&self, session: &[u8], mut fields: Fields<'_>) -> Result<Answer, Error> {
        let (user, service, method) = (fields.string()?, fields.string()?, fields.string()?);
        if service != SERVICE.as_bytes() || method != METHOD.as_bytes() {
            return Ok(Answer::Failure);
        }
        let is_signed = fields.boolean()?;
        let (algorithm, key) = (fields.string()?, fields.string()?);
        if algorithm != keys::ALGORITHM.as_bytes() || key != keys::blob(self.key) {
            return Ok(Answer::Failure);
        }
        if !is_signed {
            return Ok(Answer::Acceptable);
        }
        let mut signature = Fields::new(fields.string()?);
        let (algorithm, signature) = (signature.string()?, signature.string()?);
        let mut signed = Vec::new();
        signed.put_string(session);
        signed.put_byte(REQUEST);
        signed.put_string(user);
        signed.put_string(SERVICE);
        signed.put_string(METHOD);
        signed.put_boolean(true);
        signed.put_string(keys::ALGORITHM);
        signed.put_string(key);
        let verified = UnparsedPublicKey::new(&ED25519, self.key).verify(&signed, signature);
        match algorithm == keys::ALGORITHM.as_bytes() && verified.is_ok() {
            true => Ok(Answer::Success),
            false => Ok(Answer::Failure),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    const SESSION: [u8; 32] = [5; 32];

    /// A request, with a signature of the key for a session.
    fn request(pair: &Ed25519KeyPair, session: Option<&[u8]>) -> Vec<u8> {
        let mut message = vec![REQUEST];
        message.put_string("user");
        message.put_string(SERVICE);
        message.put_string(METHOD);
        message.put_boolean(session.is_some());
        message.put_string(keys::ALGORITHM);
        message.put_string(keys::blob(pair.public_key().as_ref()));
        if let Some(session) = session {
            let mut signed = Vec::new();
            signed.put_string(session);
            signed.extend_from_slice(&message);
            let mut signature = Vec::new();
            signature.put_string(keys::ALGORITHM);
            signature.put_string(pair.sign(&signed).as_ref());
            message.put_string(&signature);
        }
        message
    }

    #[test]
    fn only_the_signature_of_this_key_for_this_session_is_accepted() {
        let pair = |byte| Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).unwrap();
        let (right, wrong) = (pair(1), pair(2));
        let auth = Auth::new(right.public_key().as_ref());
        let check = |message: &[u8]| auth.check(&SESSION, Fields::new(&message[1..])).unwrap();
        assert_eq!(check(&request(&right, Some(&SESSION))), Answer::Success);
        assert_eq!(check(&request(&right, Some(&[6; 32]))), Answer::Failure);
        assert_eq!(check(&request(&right, None)), Answer::Acceptable);
        assert_eq!(check(&request(&wrong, Some(&SESSION))), Answer::Failure);
        assert_eq!(check(&request(&wrong, None)), Answer::Failure);
        let mut none = vec![REQUEST];
        for text in ["user", SERVICE, "none"] {
            none.put_string(text);
        }
        assert_eq!(check(&none), Answer::Failure);
    }
}
