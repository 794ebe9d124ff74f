//! Mutual authentication: both sides prove that they know the key in the run's Secret. The key
//! itself is not sent.

use std::io::{self, BufRead, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rand::RngExt as _;
use ring::hmac;

use super::messages::line;
use crate::{bundle::hexadecimal, restarts::RunKey};

/// The side that proves its identity.
#[derive(Debug, Clone, Copy)]
enum Side {
    First,
    Other,
}

fn key(key: &RunKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key.bytes())
}

/// The text that a side signs. It contains the random texts of both sides, so that no proof can be
/// used twice.
fn proven(side: Side, run: &str, first: &str, other: &str) -> String {
    let side = match side {
        Side::First => "first",
        Side::Other => "other",
    };
    format!("longshore restarts\n{side}\n{run}\n{first}\n{other}")
}

fn random_text() -> String {
    let bytes: [u8; 16] = rand::rng().random();
    hexadecimal(&bytes)
}

fn sign(secret: &RunKey, text: &str) -> String {
    STANDARD.encode(hmac::sign(&key(secret), text.as_bytes()))
}

fn verify(secret: &RunKey, text: &str, proof: &str) -> io::Result<()> {
    let stranger = || {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it does not know the run's key",
        )
    };
    let proof = STANDARD.decode(proof).map_err(|_| stranger())?;
    hmac::verify(&key(secret), text.as_bytes(), &proof).map_err(|_| stranger())
}

/// The handshake of the first task, which listens.
pub(super) fn accept(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
    secret: &RunKey,
    run: &str,
) -> io::Result<()> {
    let first = random_text();
    writer.write_all(format!("{first}\n").as_bytes())?;
    let answer = line(reader)?;
    let (other, proof) = answer.split_once(' ').unwrap_or_default();
    verify(secret, &proven(Side::Other, run, &first, other), proof)?;
    let own = sign(secret, &proven(Side::First, run, &first, other));
    writer.write_all(format!("{own}\n").as_bytes())
}

/// The handshake of a task that connects.
pub(super) fn connect(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
    secret: &RunKey,
    run: &str,
) -> io::Result<()> {
    let first = line(reader)?;
    let other = random_text();
    let own = sign(secret, &proven(Side::Other, run, &first, &other));
    writer.write_all(format!("{other} {own}\n").as_bytes())?;
    let proof = line(reader)?;
    verify(secret, &proven(Side::First, run, &first, &other), &proof)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{io::BufReader, os::unix::net::UnixStream};

    use super::*;

    fn meet(ours: &RunKey, theirs: &RunKey, run: &str) -> (io::Result<()>, io::Result<()>) {
        let (one, other) = UnixStream::pair().unwrap();
        let ours = ours.clone();
        let first = std::thread::spawn(move || {
            let mut reader = BufReader::new(one.try_clone().unwrap());
            accept(&mut reader, &mut &one, &ours, "digits-x7k2p")
        });
        let mut reader = BufReader::new(other.try_clone().unwrap());
        let connected = connect(&mut reader, &mut &other, theirs, run);
        (first.join().unwrap(), connected)
    }

    #[test]
    fn only_tasks_of_the_same_run_are_accepted() {
        let key = RunKey::random();
        let (first, other) = meet(&key, &key, "digits-x7k2p");
        assert!(first.is_ok() && other.is_ok());
        let (first, other) = meet(&key, &RunKey::random(), "digits-x7k2p");
        assert!(first.unwrap_err().to_string().contains("run's key"));
        assert!(other.is_err());
        let (first, _) = meet(&key, &key, "digits-other");
        assert!(first.is_err());
    }

    #[test]
    fn a_listener_without_the_key_is_refused() {
        let (one, other) = UnixStream::pair().unwrap();
        (&one).write_all(b"abc\nZmFsc2U=\n").unwrap();
        let mut reader = BufReader::new(other.try_clone().unwrap());
        let key = RunKey::random();
        let error = connect(&mut reader, &mut &other, &key, "digits-x7k2p").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
