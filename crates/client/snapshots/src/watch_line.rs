//! Reads the lines of a watch response.

use bytes::Bytes;

use crate::unreadable::Unreadable;
use crate::{
    index::{Text, check, text},
    json::Scanner,
    web_page::unreadable,
};

/// Reads a line of a watch. Returns the type of the event and the text of its object, which
/// is not checked. `what` names the event in errors.
///
/// # Errors
/// The line is not a JSON object with both fields.
pub fn watch_line<'a>(line: &'a Bytes, what: &str) -> Result<(&'a str, Bytes), Unreadable> {
    check(line, what)?;
    let mut scanner = Scanner::new(line);
    let (mut kind, mut object) = (Text::Absent, None);
    let outcome = scanner.members(|scanner, key| {
        match key {
            b"type" => kind = text(scanner, line, 0)?,
            b"object" => object = Some(scanner.skip()?),
            _ => {
                scanner.value()?;
            }
        }
        Ok(())
    });
    outcome
        .and_then(|()| scanner.end())
        .map_err(|error| unreadable(what, line, error))?;
    match (kind, object) {
        (Text::At(start, end), Some(object)) => {
            let kind = std::str::from_utf8(&line[start as usize..end as usize]).unwrap_or_default();
            Ok((kind, line.slice(object)))
        }
        _ => Err(Unreadable::new(what, "expected the fields type and object")),
    }
}
