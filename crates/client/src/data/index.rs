//! Where the most wanted parts of an object are in its JSON text.

use std::ops::Range;

use bytes::Bytes;

use super::{
    json::{Fault, Scanner},
    web_page::unreadable,
};
use crate::error::{Error, Result};

/// A text in a body; owned when it is escaped there.
#[derive(Debug, Clone, Default)]
pub(super) enum Text {
    #[default]
    Absent,
    At(u32, u32),
    Owned(Box<str>),
}

impl Text {
    fn is_some(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// `within` is the object's text, of which the place is part.
    pub(super) fn get<'a>(&'a self, within: &'a [u8]) -> Option<&'a str> {
        match self {
            Self::Absent => None,
            Self::At(start, end) => {
                std::str::from_utf8(within.get(*start as usize..*end as usize)?).ok()
            }
            Self::Owned(text) => Some(text),
        }
    }
}

/// The place of a part in an object's text; empty when absent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place(u32, u32);

impl Place {
    fn new(range: Range<usize>, base: usize) -> Self {
        // Items are checked to be shorter than 4 GiB.
        Self((range.start - base) as u32, (range.end - base) as u32)
    }

    fn is_some(self) -> bool {
        self.1 > self.0
    }

    pub(super) fn start(self) -> usize {
        self.0 as usize
    }

    pub(super) fn get<'a>(&self, within: &'a [u8]) -> Option<&'a [u8]> {
        within
            .get(self.0 as usize..self.1 as usize)
            .filter(|part| !part.is_empty())
    }
}

/// Where an object's most wanted parts are in its text.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) name: Text,
    pub(super) namespace: Text,
    pub(super) uid: Text,
    pub(super) version: Text,
    pub(super) metadata: Place,
    pub(super) spec: Place,
    pub(super) status: Place,
    pub(super) api_version: Text,
    pub(super) kind: Text,
}

impl Index {
    /// Whether a part of the object is known already: which of two counts is
    /// undefined.
    fn has(&self, key: &[u8]) -> bool {
        match key {
            b"metadata" => self.metadata.is_some(),
            b"spec" => self.spec.is_some(),
            b"status" => self.status.is_some(),
            b"apiVersion" => self.api_version.is_some(),
            b"kind" => self.kind.is_some(),
            _ => false,
        }
    }

    fn metadata_has(&self, key: &[u8]) -> bool {
        match key {
            b"name" => self.name.is_some(),
            b"namespace" => self.namespace.is_some(),
            b"uid" => self.uid.is_some(),
            b"resourceVersion" => self.version.is_some(),
            _ => false,
        }
    }
}

const TOO_LARGE: usize = u32::MAX as usize;

pub(super) fn text(scanner: &mut Scanner<'_>, whole: &[u8], base: usize) -> Result<Text, Fault> {
    match scanner.peek() {
        Some(b'"') => {
            let (place, escapes) = scanner.string()?;
            if !escapes {
                if std::str::from_utf8(&whole[place.clone()]).is_err() {
                    return scanner.fault("text that is not UTF-8");
                }
                let Place(start, end) = Place::new(place, base);
                return Ok(Text::At(start, end));
            }
            match serde_json::from_slice::<String>(&whole[place.start - 1..=place.end]) {
                Ok(text) => Ok(Text::Owned(text.into())),
                Err(_) => scanner.fault("an invalid escape"),
            }
        }
        Some(b'n') => scanner.value().map(|_| Text::Absent),
        _ => scanner.fault("a string is expected"),
    }
}

/// Indexes the object that begins at the scanner. When `LAZY`, the objects and
/// lists in it are only passed over.
pub(super) fn index<const LAZY: bool>(
    scanner: &mut Scanner<'_>,
    whole: &[u8],
) -> Result<(Range<usize>, Index), Fault> {
    let take = |scanner: &mut Scanner<'_>| {
        if LAZY {
            scanner.pass()
        } else {
            scanner.value()
        }
    };
    let base = scanner.position();
    let mut index = Index::default();
    scanner.members(|scanner, key| {
        if index.has(key) {
            return scanner.fault("a part that is there twice");
        }
        match key {
            b"metadata" if scanner.peek() == Some(b'{') => {
                let start = scanner.position();
                scanner.members(|scanner, key| {
                    if index.metadata_has(key) {
                        return scanner.fault("metadata that are there twice");
                    }
                    match key {
                        b"name" => index.name = text(scanner, whole, base)?,
                        b"namespace" => index.namespace = text(scanner, whole, base)?,
                        b"uid" => index.uid = text(scanner, whole, base)?,
                        b"resourceVersion" => index.version = text(scanner, whole, base)?,
                        _ => {
                            take(scanner)?;
                        }
                    }
                    Ok(())
                })?;
                index.metadata = Place::new(start..scanner.offset(), base);
            }
            b"spec" => index.spec = Place::new(take(scanner)?, base),
            b"status" => index.status = Place::new(take(scanner)?, base),
            b"apiVersion" => index.api_version = text(scanner, whole, base)?,
            b"kind" => index.kind = text(scanner, whole, base)?,
            b"metadata" if scanner.peek() != Some(b'n') => {
                return scanner.fault("metadata is no object");
            }
            _ => {
                take(scanner)?;
            }
        }
        Ok(())
    })?;
    Ok((base..scanner.offset(), index))
}

pub(super) fn check(body: &[u8], what: &str) -> Result<()> {
    if body.len() > TOO_LARGE {
        return Err(Error::decode(what, "it is larger than 4 GiB"));
    }
    Ok(())
}

/// Reads one object and checks it whole; `what` names it in errors.
pub(super) fn object(body: &Bytes, what: &str) -> Result<(Bytes, Index)> {
    std::str::from_utf8(body).map_err(|error| Error::decode(what, error))?;
    one::<false>(body, what)
}

/// Reads one object of many. What is deep inside is checked when it is asked
/// for.
pub(super) fn part(body: &Bytes, what: &str) -> Result<(Bytes, Index)> {
    one::<true>(body, what)
}

fn one<const LAZY: bool>(body: &Bytes, what: &str) -> Result<(Bytes, Index)> {
    check(body, what)?;
    let mut scanner = Scanner::new(body);
    let (range, index) = index::<LAZY>(&mut scanner, body)
        .and_then(|found| scanner.end().map(|()| found))
        .map_err(|fault| unreadable(what, body, fault))?;
    Ok((body.slice(range), index))
}
