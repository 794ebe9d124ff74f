//! Lists: where each item is, and which of them cannot be read.

use bytes::Bytes;

use super::{
    index::{check, index, text},
    json::{Fault, Scanner},
    snapshot::Snapshot,
    web_page::unreadable,
};
use crate::error::{Error, Result};

/// A list response: its items, and its own metadata.
#[derive(Default)]
pub(crate) struct ListBody {
    pub(crate) items: Vec<Snapshot>,
    pub(crate) version: String,
    pub(crate) cursor: String,
}

/// Reads a list; each item is a slice of `body`. What is deep inside an item
/// is checked when it is asked for, and an item that cannot be read at all is
/// kept with the reason, as long as it is clear where it ends.
pub(crate) fn list(body: &Bytes, what: &str) -> Result<ListBody> {
    check(body, what)?;
    let mut scanner = Scanner::new(body);
    let mut list = ListBody::default();
    let mut has_items = false;
    let outcome = scanner.members(|scanner, key| {
        match key {
            b"items" => {
                // Of lists that are there twice the last counts.
                list.items.clear();
                has_items = true;
                if scanner.peek() == Some(b'n') {
                    return scanner.value().map(|_| ());
                }
                scanner.elements(|scanner| {
                    let item = item(scanner, body, list.items.len(), what)?;
                    list.items.push(item);
                    Ok(())
                })?;
            }
            b"metadata" if scanner.peek() == Some(b'{') => scanner.members(|scanner, key| {
                let place = match key {
                    b"resourceVersion" => &mut list.version,
                    b"continue" => &mut list.cursor,
                    _ => return scanner.value().map(drop),
                };
                let found = text(scanner, body, 0)?;
                found.get(body).unwrap_or_default().clone_into(place);
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
        .map_err(|fault| unreadable(what, body, fault))?;
    if !has_items {
        return Err(Error::decode(what, "it is no list: items are missing"));
    }
    Ok(list)
}

/// The cursor of a list of which only the beginning is there: API servers send
/// it before the items. `None` when it has not come.
pub(crate) fn cursor_ahead(begin: &[u8]) -> Option<String> {
    let mut scanner = Scanner::new(begin);
    let mut cursor = None;
    // Its fault is that the list is not whole, or that enough was read.
    let _ = scanner.members(|scanner, key| match key {
        b"metadata" => {
            let mut found = String::new();
            scanner.members(|scanner, key| {
                if key != b"continue" {
                    return scanner.value().map(drop);
                }
                let value = text(scanner, begin, 0)?;
                value.get(begin).unwrap_or_default().clone_into(&mut found);
                Ok(())
            })?;
            cursor = Some(found);
            scanner.fault("enough")
        }
        b"items" => scanner.fault("enough"),
        _ => scanner.value().map(drop),
    });
    cursor
}

fn item(
    scanner: &mut Scanner<'_>,
    body: &Bytes,
    position: usize,
    what: &str,
) -> Result<Snapshot, Fault> {
    let start = scanner.position();
    let fault = match index::<true>(scanner, body) {
        Ok((range, index)) => return Ok(Snapshot::new((body.slice(range), index))),
        Err(fault) => fault,
    };
    scanner.back_to(start);
    // Without an end, the list itself is truncated: report that fault.
    let range = scanner.pass().map_err(|_| fault)?;
    let what = format!("items[{position}] of {what}");
    Ok(Snapshot::broken(
        body.slice(range),
        Error::decode(what, fault),
    ))
}
