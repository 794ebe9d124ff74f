//! Removes `metadata.managedFields` from the text of objects.

use bytes::Bytes;

use crate::{index::Index, json::Scanner};

/// Copies an object's text without `metadata.managedFields`.
pub(crate) fn without_managed_fields(text: &Bytes, index: &Index) -> Bytes {
    let Some(metadata) = index.metadata.get(text) else {
        return Bytes::copy_from_slice(text);
    };
    let base = index.metadata.start();
    let mut cut = None;
    let mut scanner = Scanner::new(metadata);
    let outcome = scanner.members_at(|scanner, key| {
        let value = scanner.skip()?;
        if &metadata[key.clone()] == b"managedFields" {
            // Includes the quote before the key.
            cut = Some(key.start - 1..value.end);
        }
        Ok(())
    });
    let (Ok(()), Some(cut)) = (outcome, cut) else {
        return Bytes::copy_from_slice(text);
    };
    let (before, after) = (&text[..base + cut.start], &text[base + cut.end..]);
    // Also removes a comma: the comma after the member, or else the comma before it.
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
