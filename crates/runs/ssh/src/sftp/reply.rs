//! The replies of the server.

use std::io;

use rustix::io::Errno;

use super::attributes::Attributes;
use crate::wire::Put as _;

const VERSION: u8 = 2;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const DATA: u8 = 103;
const NAME: u8 = 104;
const ATTRS: u8 = 105;
const EXTENDED_REPLY: u8 = 201;

/// The protocol's version.
const OWN_VERSION: u32 = 3;

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 0,
    End = 1,
    NotFound = 2,
    Denied = 3,
    Failure = 4,
    BadMessage = 5,
    Unsupported = 8,
}

/// The failure of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: Status,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn new(status: Status, text: &str) -> Self {
        Self {
            status,
            text: text.to_owned(),
        }
    }
}

impl From<crate::Malformed> for Problem {
    fn from(error: crate::Malformed) -> Self {
        Self {
            status: Status::BadMessage,
            text: error.to_string(),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        let status = match error.kind() {
            io::ErrorKind::NotFound => Status::NotFound,
            io::ErrorKind::PermissionDenied => Status::Denied,
            _ => Status::Failure,
        };
        // Removes ` (os error 2)`.
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Self::new(status, text)
    }
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// A file with its name.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: Vec<u8>,
    /// The line of a listing.
    pub(super) line: Vec<u8>,
    pub(super) attributes: Attributes,
}

/// The result of a request.
#[derive(Debug)]
pub(super) enum Content {
    Nothing,
    Handle(u32),
    Data(Vec<u8>),
    Names(Vec<Named>),
    Attributes(Attributes),
    Extended(Vec<u8>),
}

/// A reply.
#[derive(Debug)]
pub(super) enum Reply {
    /// The version, with the names and versions of extensions.
    Version(&'static [(&'static str, &'static str)]),
    /// The reply to the request with this number.
    To(u32, Result<Content, Problem>),
}

impl Reply {
    /// The message with its length.
    pub(super) fn encode(self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Self::Version(extensions) => {
                body.put_byte(VERSION);
                body.put_number(OWN_VERSION);
                for (name, version) in extensions {
                    body.put_string(name);
                    body.put_string(version);
                }
            }
            Self::To(id, Ok(Content::Nothing)) => status(&mut body, id, Status::Ok, "Success"),
            Self::To(id, Err(problem)) => status(&mut body, id, problem.status, &problem.text),
            Self::To(id, Ok(Content::Handle(handle))) => {
                begin(&mut body, HANDLE, id);
                body.put_string(handle.to_be_bytes());
            }
            Self::To(id, Ok(Content::Data(data))) => {
                begin(&mut body, DATA, id);
                body.put_string(data);
            }
            Self::To(id, Ok(Content::Names(names))) => {
                begin(&mut body, NAME, id);
                body.put_number(u32::try_from(names.len()).unwrap_or(u32::MAX));
                for named in names {
                    body.put_string(named.name);
                    body.put_string(named.line);
                    named.attributes.encode(&mut body);
                }
            }
            Self::To(id, Ok(Content::Attributes(attributes))) => {
                begin(&mut body, ATTRS, id);
                attributes.encode(&mut body);
            }
            Self::To(id, Ok(Content::Extended(bytes))) => {
                begin(&mut body, EXTENDED_REPLY, id);
                body.put_slice(&bytes);
            }
        }
        let mut message = Vec::with_capacity(body.len().saturating_add(4));
        message.put_string(&body);
        message
    }
}

fn begin(body: &mut Vec<u8>, kind: u8, id: u32) {
    body.put_byte(kind);
    body.put_number(id);
}

fn status(body: &mut Vec<u8>, id: u32, status: Status, text: &str) {
    begin(body, STATUS, id);
    body.put_number(status as u32);
    body.put_string(text);
    body.put_string("en");
}
