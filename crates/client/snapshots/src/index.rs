//! Indexes the most used parts of an object in its JSON text.

use std::ops::Range;

use bytes::Bytes;

use crate::unreadable::Unreadable;
use crate::{
    json::{Scanner, SyntaxError},
    web_page::unreadable,
};

/// A string value in the text of an object or a list.
#[derive(Debug, Clone, Default)]
pub(crate) enum Text {
    #[default]
    Absent,
    /// The start and the end of its bytes, without the quotes.
    At(u32, u32),
    /// The unescaped string, if it has escapes.
    Owned(Box<str>),
}

impl Text {
    fn is_some(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Returns the string. `within` is the text that was indexed.
    pub(crate) fn get<'a>(&'a self, within: &'a [u8]) -> Option<&'a str> {
        match self {
            Self::Absent => None,
            Self::At(start, end) => {
                std::str::from_utf8(within.get(*start as usize..*end as usize)?).ok()
            }
            Self::Owned(text) => Some(text),
        }
    }
}

/// The start and the end of a value in an object's text; empty if the value is absent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span(u32, u32);

impl Span {
    fn new(range: Range<usize>, base: usize) -> Self {
        // `check` has ensured that the text is shorter than 4 GiB.
        Self((range.start - base) as u32, (range.end - base) as u32)
    }

    fn is_some(self) -> bool {
        self.1 > self.0
    }

    pub(crate) fn start(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn get<'a>(&self, within: &'a [u8]) -> Option<&'a [u8]> {
        within
            .get(self.0 as usize..self.1 as usize)
            .filter(|part| !part.is_empty())
    }
}

/// The positions of an object's most used parts in its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub(crate) name: Text,
    pub(crate) namespace: Text,
    pub(crate) uid: Text,
    pub(crate) version: Text,
    pub(crate) metadata: Span,
    pub(crate) spec: Span,
    pub(crate) status: Span,
    pub(crate) api_version: Text,
    pub(crate) kind: Text,
}

impl Index {
    /// Returns true if a field of the object is already indexed. Duplicate fields are errors,
    /// because their meaning is undefined.
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

/// The maximum size of a text, in bytes. Positions have 32 bits.
const MAX_BYTES: usize = u32::MAX as usize;

/// Takes a string or `null`. Positions in the result are relative to `base`.
pub(crate) fn text(
    scanner: &mut Scanner<'_>,
    whole: &[u8],
    base: usize,
) -> Result<Text, SyntaxError> {
    match scanner.peek() {
        Some(b'"') => {
            let (range, escapes) = scanner.string()?;
            if !escapes {
                if std::str::from_utf8(&whole[range.clone()]).is_err() {
                    return scanner.error("the string is not UTF-8");
                }
                let Span(start, end) = Span::new(range, base);
                return Ok(Text::At(start, end));
            }
            match serde_json::from_slice::<String>(&whole[range.start - 1..=range.end]) {
                Ok(text) => Ok(Text::Owned(text.into())),
                Err(_) => scanner.error("invalid escape"),
            }
        }
        Some(b'n') => scanner.value().map(|_| Text::Absent),
        _ => scanner.error("expected a string"),
    }
}

/// Indexes the object at the scanner's position. If `LAZY`, does not check nested objects and
/// arrays.
pub(crate) fn index<const LAZY: bool>(
    scanner: &mut Scanner<'_>,
    whole: &[u8],
) -> Result<(Range<usize>, Index), SyntaxError> {
    let take = |scanner: &mut Scanner<'_>| {
        if LAZY {
            scanner.skip()
        } else {
            scanner.value()
        }
    };
    let base = scanner.position();
    let mut index = Index::default();
    scanner.members(|scanner, key| {
        if index.has(key) {
            return scanner.error("duplicate field");
        }
        match key {
            b"metadata" if scanner.peek() == Some(b'{') => {
                let start = scanner.position();
                scanner.members(|scanner, key| {
                    if index.metadata_has(key) {
                        return scanner.error("duplicate field in metadata");
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
                index.metadata = Span::new(start..scanner.offset(), base);
            }
            b"spec" => index.spec = Span::new(take(scanner)?, base),
            b"status" => index.status = Span::new(take(scanner)?, base),
            b"apiVersion" => index.api_version = text(scanner, whole, base)?,
            b"kind" => index.kind = text(scanner, whole, base)?,
            b"metadata" if scanner.peek() != Some(b'n') => {
                return scanner.error("metadata is not an object");
            }
            _ => {
                take(scanner)?;
            }
        }
        Ok(())
    })?;
    Ok((base..scanner.offset(), index))
}

/// Checks the size of a text.
pub(crate) fn check(body: &[u8], what: &str) -> Result<(), Unreadable> {
    if body.len() > MAX_BYTES {
        return Err(Unreadable::new(what, "it is larger than 4 GiB"));
    }
    Ok(())
}

/// Reads an object and checks its whole text. `what` is its name in errors.
pub(crate) fn object(body: &Bytes, what: &str) -> Result<(Bytes, Index), Unreadable> {
    std::str::from_utf8(body).map_err(|error| Unreadable::new(what, error))?;
    one::<false>(body, what)
}

/// Reads an object that is part of a response. Nested values are checked when they are read.
pub(crate) fn part(body: &Bytes, what: &str) -> Result<(Bytes, Index), Unreadable> {
    one::<true>(body, what)
}

fn one<const LAZY: bool>(body: &Bytes, what: &str) -> Result<(Bytes, Index), Unreadable> {
    check(body, what)?;
    let mut scanner = Scanner::new(body);
    let (range, index) = index::<LAZY>(&mut scanner, body)
        .and_then(|found| scanner.end().map(|()| found))
        .map_err(|error| unreadable(what, body, error))?;
    Ok((body.slice(range), index))
}
