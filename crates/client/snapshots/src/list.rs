//! Reads list responses: locates each item and reports the items that cannot be read.

use bytes::Bytes;

use crate::unreadable::Unreadable;
use crate::{
    index::{check, index, text},
    json::{Scanner, SyntaxError},
    snapshot::Snapshot,
    web_page::unreadable,
};

/// The maximum number of items of a list response. The largest clusters have a fifth of these pods.
const MAX_ITEMS: usize = 1_000_000;

/// A list response.
#[derive(Default)]
pub struct ListBody {
    /// The items, in their order.
    pub items: Vec<Snapshot>,
    /// The `resourceVersion` of the list.
    pub version: String,
    /// The `continue` token; empty on the last page.
    pub cursor: String,
}

/// Reads a list. Each item is a slice of `body`. Nested values of items are checked when they
/// are read. An item that cannot be read is kept with its error if its end can be found.
/// `what` names the response in errors.
///
/// # Errors
/// `body` is not a list, or has more than a million items.
pub fn list(body: &Bytes, what: &str) -> Result<ListBody, Unreadable> {
    check(body, what)?;
    let mut scanner = Scanner::new(body);
    let mut list = ListBody::default();
    let mut has_items = false;
    let outcome = scanner.members(|scanner, key| {
        match key {
            b"items" => {
                // If the field occurs twice, the last one is used.
                list.items.clear();
                has_items = true;
                if scanner.peek() == Some(b'n') {
                    return scanner.value().map(|_| ());
                }
                scanner.elements(|scanner| {
                    if list.items.len() == MAX_ITEMS {
                        return scanner.error("the list has more than 1,000,000 items");
                    }
                    let item = item(scanner, body, list.items.len(), what)?;
                    list.items.push(item);
                    Ok(())
                })?;
            }
            b"metadata" if scanner.peek() == Some(b'{') => scanner.members(|scanner, key| {
                let field = match key {
                    b"resourceVersion" => &mut list.version,
                    b"continue" => &mut list.cursor,
                    _ => return scanner.value().map(drop),
                };
                let found = text(scanner, body, 0)?;
                found.get(body).unwrap_or_default().clone_into(field);
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
        .map_err(|error| unreadable(what, body, error))?;
    if !has_items {
        return Err(Unreadable::new(what, "it is not a list: it has no items"));
    }
    Ok(list)
}

/// Returns the `continue` token of an incomplete list. API servers send the token before the items.
/// `None` if it has not arrived yet.
pub fn cursor_ahead(begin: &[u8]) -> Option<String> {
    let mut scanner = Scanner::new(begin);
    let mut cursor = None;
    // Ignores the error: it says that the list is incomplete, or stops the scan.
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
            scanner.error("stop")
        }
        b"items" => scanner.error("stop"),
        _ => scanner.value().map(drop),
    });
    cursor
}

fn item(
    scanner: &mut Scanner<'_>,
    body: &Bytes,
    position: usize,
    what: &str,
) -> Result<Snapshot, SyntaxError> {
    let start = scanner.position();
    let error = match index::<true>(scanner, body) {
        Ok((range, index)) => return Ok(Snapshot::new((body.slice(range), index))),
        Err(error) => error,
    };
    scanner.back_to(start);
    // An item without an end makes the whole list invalid.
    let range = scanner.skip().map_err(|_| error)?;
    let what = format!("items[{position}] of {what}");
    Ok(Snapshot::unreadable(
        body.slice(range),
        Unreadable::new(what, error),
    ))
}
