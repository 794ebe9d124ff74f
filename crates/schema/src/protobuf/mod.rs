//! Request bodies in Kubernetes' protobuf encoding, turned into JSON.
//!
//! A body is the four bytes `k8s\0` and a message `Unknown`: which type it is,
//! and the object's own message. kubectl sends such bodies since 1.32.

mod decode;
mod table;
mod wire;

use serde_json::{Map, Value};

use crate::packages;
use wire::{Reader, Wire};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body does not begin as such bodies do.
    #[error("the body is not Kubernetes protobuf: it does not begin with \"k8s\\0\"")]
    NotProtobuf,
    /// The body ends in the middle of a value, or its lengths do not fit.
    #[error("the protobuf body is cut short or damaged, in field {field} of {message}")]
    Damaged {
        /// The message that was being read.
        message: String,
        /// The number of the field, or 0 where even that is missing.
        field: u32,
    },
    /// A field holds another kind of value than its type says.
    #[error("the protobuf field {message}.{field} does not hold {expected}")]
    Mismatch {
        /// The message the field belongs to.
        message: String,
        /// The field's name.
        field: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The body does not say of which type it is, or its type is not known.
    #[error(
        "no protobuf format is known for kind {kind:?} of apiVersion {api_version:?}: send it as JSON"
    )]
    UnknownKind {
        /// The apiVersion in the envelope.
        api_version: String,
        /// The kind in the envelope.
        kind: String,
    },
    /// The object comes in an encoding that is not read here.
    #[error("the protobuf body is encoded as {0:?}, which is not supported: send it plain")]
    Encoding(String),
    /// Messages are nested deeper than any honest object's.
    #[error("the protobuf body is nested deeper than {0} levels")]
    TooDeep(usize),
}

/// Whether a body is in Kubernetes' protobuf encoding.
///
/// ```
/// assert!(longshore_schema::protobuf::is_protobuf(b"k8s\0\x0a\x00"));
/// assert!(!longshore_schema::protobuf::is_protobuf(b"{}"));
/// ```
#[must_use]
pub fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// The object of a body, as the JSON that the same client would have sent,
/// with its `apiVersion` and `kind`.
///
/// Fields that the table of messages does not know are left out, as a server
/// older than the client would.
///
/// # Errors
///
/// If the body is no such body, is damaged, or is of an unknown type.
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
        // Options and Status travel under the version of any group.
        .or_else(|| table.find(&format!("{}.{kind}", packages::META)))
        .ok_or_else(unknown)?;
    // Clients write it also when the object is empty: without it, the body was
    // cut behind the type.
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

/// `runtime.Unknown`: the object's type and its bytes.
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
