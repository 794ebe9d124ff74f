//! From response bodies to the places of items and their parts in them.

use std::ops::Range;

use bytes::Bytes;

use crate::{
    error::{Error, Result},
    json::{Fault, Scanner},
};

/// A text in a body; owned when it is escaped there.
#[derive(Debug, Clone, Default)]
pub(crate) enum Text {
    #[default]
    Absent,
    At(u32, u32),
    Owned(Box<str>),
}

impl Text {
    /// `within` is the object's text, of which the place is part.
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

/// The place of a part in an object's text; empty when absent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place(u32, u32);

impl Place {
    fn new(range: Range<usize>, base: usize) -> Self {
        // Items are checked to be shorter than 4 GiB.
        Self((range.start - base) as u32, (range.end - base) as u32)
    }

    pub(crate) fn get<'a>(&self, within: &'a [u8]) -> Option<&'a [u8]> {
        within
            .get(self.0 as usize..self.1 as usize)
            .filter(|part| !part.is_empty())
    }
}

/// Where an object's most wanted parts are in its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub(crate) name: Text,
    pub(crate) namespace: Text,
    pub(crate) uid: Text,
    pub(crate) version: Text,
    pub(crate) metadata: Place,
    pub(crate) spec: Place,
    pub(crate) status: Place,
    pub(crate) api_version: Text,
    pub(crate) kind: Text,
}

/// A list response: its items' texts and indexes, and its own metadata.
#[derive(Debug, Default)]
pub(crate) struct ListBody {
    pub(crate) items: Vec<(Bytes, Index)>,
    pub(crate) version: String,
    pub(crate) cursor: String,
}

const TOO_LARGE: usize = u32::MAX as usize;

fn text(scanner: &mut Scanner<'_>, whole: &[u8], base: usize) -> Result<Text, Fault> {
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
fn index<const LAZY: bool>(
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
        match key {
            b"metadata" if scanner.peek() == Some(b'{') => {
                let start = scanner.position();
                scanner.members(|scanner, key| {
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

fn check(body: &[u8], what: &str) -> Result<()> {
    if body.len() > TOO_LARGE {
        return Err(Error::decode(what, "it is larger than 4 GiB"));
    }
    Ok(())
}

/// Reads one object and checks it whole; `what` names it in errors.
pub(crate) fn object(body: &Bytes, what: &str) -> Result<(Bytes, Index)> {
    std::str::from_utf8(body).map_err(|error| Error::decode(what, error))?;
    one::<false>(body, what)
}

/// Reads one object of many. What is deep inside is checked when it is asked
/// for.
pub(crate) fn part(body: &Bytes, what: &str) -> Result<(Bytes, Index)> {
    one::<true>(body, what)
}

fn one<const LAZY: bool>(body: &Bytes, what: &str) -> Result<(Bytes, Index)> {
    check(body, what)?;
    let mut scanner = Scanner::new(body);
    let (range, index) = index::<LAZY>(&mut scanner, body)
        .and_then(|found| scanner.end().map(|()| found))
        .map_err(|fault| Error::decode(what, fault))?;
    Ok((body.slice(range), index))
}

/// Reads a list; each item is a slice of `body`. What is deep inside an item
/// is checked when it is asked for.
pub(crate) fn list(body: &Bytes, what: &str) -> Result<ListBody> {
    check(body, what)?;
    let mut scanner = Scanner::new(body);
    let mut list = ListBody::default();
    let mut has_items = false;
    let outcome = scanner.members(|scanner, key| {
        match key {
            b"items" => {
                has_items = true;
                if scanner.peek() == Some(b'n') {
                    return scanner.value().map(|_| ());
                }
                scanner.elements(|scanner| {
                    let (range, index) = index::<true>(scanner, body)?;
                    list.items.push((body.slice(range), index));
                    Ok(())
                })?;
            }
            b"metadata" if scanner.peek() == Some(b'{') => scanner.members(|scanner, key| {
                match key {
                    b"resourceVersion" => {
                        list.version = text(scanner, body, 0)?
                            .get(body)
                            .unwrap_or_default()
                            .to_owned();
                    }
                    b"continue" => {
                        list.cursor = text(scanner, body, 0)?
                            .get(body)
                            .unwrap_or_default()
                            .to_owned();
                    }
                    _ => {
                        scanner.value()?;
                    }
                }
                Ok(())
            })?,
            _ => {
                scanner.value()?;
            }
        }
        Ok(())
    });
    outcome
        .and_then(|()| scanner.end())
        .map_err(|fault| Error::decode(what, fault))?;
    if !has_items {
        return Err(Error::decode(what, "it is no list: items are missing"));
    }
    Ok(list)
}

/// A copy of an object's text without `metadata.managedFields`.
pub(crate) fn without_managed_fields(text: &Bytes, index: &Index) -> Bytes {
    let Some(metadata) = index.metadata.get(text) else {
        return Bytes::copy_from_slice(text);
    };
    let base = index.metadata.0 as usize;
    let mut cut = None;
    let mut scanner = Scanner::new(metadata);
    let outcome = scanner.members_at(|scanner, key| {
        let value = scanner.pass()?;
        if &metadata[key.clone()] == b"managedFields" {
            // The quote before the key goes too.
            cut = Some(key.start - 1..value.end);
        }
        Ok(())
    });
    let (Ok(()), Some(cut)) = (outcome, cut) else {
        return Bytes::copy_from_slice(text);
    };
    let (before, after) = (&text[..base + cut.start], &text[base + cut.end..]);
    // One comma goes as well: the one after the member, or else before it.
    let after_trimmed = after.trim_ascii_start();
    let (before, after) = match after_trimmed.strip_prefix(b",") {
        Some(rest) => (before, rest),
        None => {
            let trimmed = before.trim_ascii_end();
            (trimmed.strip_suffix(b",").unwrap_or(trimmed), after)
        }
    };
    [before, after].concat().into()
}

/// A line of a watch: its type, and the place of its object.
pub(crate) fn watch_line<'a>(line: &'a [u8], what: &str) -> Result<(&'a str, &'a [u8])> {
    check(line, what)?;
    let mut scanner = Scanner::new(line);
    let (mut kind, mut object) = (Text::Absent, None);
    let outcome = scanner.members(|scanner, key| {
        match key {
            b"type" => kind = text(scanner, line, 0)?,
            b"object" => object = Some(scanner.pass()?),
            _ => {
                scanner.value()?;
            }
        }
        Ok(())
    });
    outcome
        .and_then(|()| scanner.end())
        .map_err(|fault| Error::decode(what, fault))?;
    match (kind, object) {
        (Text::At(start, end), Some(object)) => {
            let kind = std::str::from_utf8(&line[start as usize..end as usize]).unwrap_or_default();
            Ok((kind, &line[object]))
        }
        _ => Err(Error::decode(what, "a type and an object are expected")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn indexes_a_list() {
        let body = Bytes::from_static(
            br#"{"kind":"PodList","metadata":{"resourceVersion":"12","continue":"abc"},"items":[
              {"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"3"},"spec":{},"status":{"phase":"Running"}},
              {"metadata":{"name":"b\u0026c"}} ]}"#,
        );
        let list = list(&body, "pods").unwrap();
        assert_eq!((list.version.as_str(), list.cursor.as_str()), ("12", "abc"));
        let (text, index) = &list.items[0];
        assert_eq!(index.name.get(text), Some("a"));
        assert_eq!(index.namespace.get(text), Some("n"));
        assert_eq!(index.version.get(text), Some("3"));
        assert_eq!(index.status.get(text), Some(&br#"{"phase":"Running"}"#[..]));
        let (text, index) = &list.items[1];
        assert_eq!(index.name.get(text), Some("b&c"));
        assert_eq!(index.namespace.get(text), None);
        assert!(index.status.get(text).is_none());
    }

    #[test]
    fn refuses_what_is_no_list() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"items":[1]}"#,
            r#"{"items":{}}"#,
            r#"{"items":[]}x"#,
            r#"{"items":[{"metadata":{"name":1}}]}"#,
            r#"{"items":[{"metadata":[]}]}"#,
        ] {
            assert!(list(&Bytes::from(body), "pods").is_err(), "{body}");
        }
        assert!(
            list(
                &Bytes::from_static(b"{\"items\":[{\"metadata\":{\"name\":\"\xff\"}}]}"),
                "pods"
            )
            .is_err()
        );
        assert!(
            list(&Bytes::from_static(br#"{"items":null}"#), "pods")
                .unwrap()
                .items
                .is_empty()
        );
    }

    #[test]
    fn reads_watch_lines() {
        let (kind, object) = watch_line(br#"{"type":"ADDED","object":{"a":1}}"#, "event").unwrap();
        assert_eq!((kind, object), ("ADDED", &br#"{"a":1}"#[..]));
        assert!(watch_line(br#"{"type":"ADDED"}"#, "event").is_err());
    }

    #[test]
    fn managed_fields_are_cut_out() {
        for (text, expected) in [
            (
                r#"{"metadata":{"name":"a","managedFields":[{"x":1}]}}"#,
                r#"{"metadata":{"name":"a"}}"#,
            ),
            (
                r#"{"metadata":{"managedFields":[], "name":"a"}}"#,
                r#"{"metadata":{ "name":"a"}}"#,
            ),
            (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
            (
                r#"{"metadata":{"a":1 , "managedFields" : [] , "b":2}}"#,
                r#"{"metadata":{"a":1 ,  "b":2}}"#,
            ),
            (
                r#"{"spec":{"managedFields":1}}"#,
                r#"{"spec":{"managedFields":1}}"#,
            ),
        ] {
            let (text, index) = object(&Bytes::from(text), "x").unwrap();
            assert_eq!(without_managed_fields(&text, &index), expected);
        }
    }

    proptest! {
        #[test]
        fn hostile_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let body = Bytes::from(body);
            let _ = object(&body, "x");
            let _ = part(&body, "x");
            let _ = list(&body, "x");
            let _ = watch_line(&body, "x");
        }

        #[test]
        fn near_lists_never_panic(at in 0_usize..150, byte in any::<u8>(), cut in 0_usize..150) {
            let mut body = br#"{"metadata":{"resourceVersion":"1","continue":"\n"},"items":[{"metadata":{"name":"a\u0041","namespace":"n"},"status":{"phase":"Running"}}],"x":[1.5e3,true]}"#.to_vec();
            let len = body.len();
            body[at % len] = byte;
            body.truncate(len - cut % len);
            if let Ok(list) = list(&Bytes::from(body), "x") {
                for (text, index) in &list.items {
                    let _ = index.name.get(text);
                    let _ = index.status.get(text);
                }
            }
        }
    }
}
