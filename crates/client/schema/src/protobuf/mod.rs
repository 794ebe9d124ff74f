//! Decodes request bodies from the protobuf encoding of Kubernetes to JSON.
//!
//! A body consists of the four bytes `k8s\0` and a message `Unknown`, which
//! contains the type and the encoded object. kubectl sends such bodies since
//! version 1.32.

mod decode;
mod table;
mod wire;

use serde_json::{Map, Value};

use crate::packages;
use wire::{Reader, Wire};

/// The first bytes of every body.
const MAGIC: &[u8] = b"k8s\0";

/// The reason why a body could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body does not start with the magic bytes.
    #[error("the body is not Kubernetes protobuf: it does not begin with \"k8s\\0\"")]
    NotProtobuf,
    /// The body is truncated, or its lengths are inconsistent.
    #[error("the protobuf body is cut short or damaged, in field {field} of {message}")]
    Damaged {
        /// The message that was being decoded.
        message: String,
        /// The field number, or 0 if it is missing.
        field: u32,
    },
    /// A field contains a value of another type.
    #[error("the protobuf field {message}.{field} does not hold {expected}")]
    Mismatch {
        /// The message that contains the field.
        message: String,
        /// The field name.
        field: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The type of the body is missing or unknown.
    #[error(
        "no protobuf format is known for kind {kind:?} of apiVersion {api_version:?}: send it as JSON"
    )]
    UnknownKind {
        /// The apiVersion in the envelope.
        api_version: String,
        /// The kind in the envelope.
        kind: String,
    },
    /// The object has an unsupported encoding.
    #[error("the protobuf body is encoded as {0:?}, which is not supported: send it plain")]
    Encoding(String),
    /// Messages are nested too deeply for any valid object.
    #[error("the protobuf body is nested deeper than {0} levels")]
    TooDeep(usize),
}

/// Returns true if a body is in the protobuf encoding of Kubernetes.
///
/// ```
/// assert!(longshore_schema::protobuf::is_protobuf(b"k8s\0\x0a\x00"));
/// assert!(!longshore_schema::protobuf::is_protobuf(b"{}"));
/// ```
#[must_use]
pub fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Decodes a body to the JSON that the client would have sent otherwise,
/// including `apiVersion` and `kind`.
///
/// Drops fields that are not in the table of messages, as a server older than
/// the client would.
///
/// # Errors
///
/// Fails if the body is not in this encoding, is damaged, or has an unknown
/// type.
pub fn decode(body: &[u8]) -> Result<Value, DecodeError> {
    let envelope = Envelope::read(body.strip_prefix(MAGIC).ok_or(DecodeError::NotProtobuf)?)?;
    let Envelope {
        api_version,
        kind,
        raw,
    } = envelope;
    let unknown = || DecodeError::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let table = table::table();
    let message = packages::definition(group, version, kind)
        .and_then(|name| table.find(&name))
        // Options and Status are sent with the version of any group.
        .or_else(|| table.find(&format!("{}.{kind}", packages::META)))
        .ok_or_else(unknown)?;
    // Clients write this field even for an empty object. If it is missing, the
    // body was truncated after the type.
    let raw = raw.ok_or_else(|| DecodeError::Damaged {
        message: "Unknown".to_owned(),
        field: 2,
    })?;
    let mut object = Map::new();
    decode::message(message, raw, &mut object, 0)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// `runtime.Unknown`: the type of the object and its bytes.
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: Option<&'a [u8]>,
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut envelope = Self {
            api_version: "",
            kind: "",
            raw: None,
        };
        let mut reader = Reader::new("Unknown", body);
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (1, Wire::Bytes(bytes)) => envelope.read_type(bytes)?,
                (2, Wire::Bytes(bytes)) => envelope.raw = Some(bytes),
                (3 | 4, Wire::Bytes(bytes)) => {
                    let encoding = String::from_utf8_lossy(bytes);
                    if !encoding.is_empty() && encoding != "application/vnd.kubernetes.protobuf" {
                        return Err(DecodeError::Encoding(encoding.into_owned()));
                    }
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new("TypeMeta", bytes);
        while let Some((number, value)) = reader.next()? {
            let (target, field) = match number {
                1 => (&mut self.api_version, "apiVersion"),
                2 => (&mut self.kind, "kind"),
                _ => continue,
            };
            *target = match value {
                Wire::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
                _ => None,
            }
            .ok_or_else(|| DecodeError::Mismatch {
                message: "TypeMeta".to_owned(),
                field: field.to_owned(),
                expected: "text",
            })?;
        }
        Ok(())
    }
}
