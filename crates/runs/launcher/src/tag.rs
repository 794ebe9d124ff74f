//! Rules of tags and notes of runs. Pure.

use longshore_model::name::{label_key, label_value};

/// The maximum length of a note, in bytes.
pub const LONGEST_NOTE: usize = 4096;

/// A change of a tag. `None` removes it.
pub type TagChange = (String, Option<String>);

/// Checks a tag.
///
/// # Errors
/// The rule that the key or the value violates.
pub fn check_tag(key: &str, value: &str) -> Result<(), String> {
    if key.contains('/') {
        return Err("use letters, digits, -, _ and ., without a slash".to_owned());
    }
    label_key(key).map_err(|error| error.rule().to_owned())?;
    label_value(value).map_err(|error| format!("its value {value:?} is invalid: {}", error.rule()))
}

/// Parses `KEY=VALUE`, or `KEY` for a tag without a value.
///
/// # Errors
/// The tag and the violated rule.
pub fn parse_tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    check_tag(key, value).map_err(|rule| format!("invalid tag {key:?}: {rule}"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Parses `KEY=VALUE` and `KEY`, which set a tag, and `KEY-`, which removes it.
///
/// # Errors
/// The same as [`parse_tag`].
pub fn parse_tag_change(text: &str) -> Result<TagChange, String> {
    match text.strip_suffix('-').filter(|_| !text.contains('=')) {
        Some(key) => parse_tag(key).map(|(key, _)| (key, None)),
        None => parse_tag(text).map(|(key, value)| (key, Some(value))),
    }
}

/// Checks the text of a note.
///
/// # Errors
/// The violated rule.
pub fn check_note(text: &str) -> Result<(), String> {
    match text.len() > LONGEST_NOTE {
        true => Err(format!(
            "it has {} bytes; use at most {LONGEST_NOTE}",
            text.len()
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_parsed_and_checked() {
        let set = |key: &str, value: &str| Ok((key.to_owned(), Some(value.to_owned())));
        assert_eq!(parse_tag_change("lr=0.1"), set("lr", "0.1"));
        assert_eq!(parse_tag_change("best"), set("best", ""));
        assert_eq!(parse_tag_change("best-"), Ok(("best".to_owned(), None)));
        for wrong in ["", "=1", "a/b=1", "a=b c", "-", "a b", "a=-", "a=b="] {
            assert!(parse_tag_change(wrong).is_err(), "{wrong:?}");
        }
        let long = format!("a={}", "x".repeat(64));
        assert!(parse_tag(&long).is_err_and(|error| error.contains("\"a\"")));
    }

    #[test]
    fn notes_have_a_limit() {
        assert!(check_note(&"x".repeat(LONGEST_NOTE)).is_ok());
        let error = check_note(&"x".repeat(LONGEST_NOTE + 1));
        assert!(error.is_err_and(|error| error.contains("4097 bytes")));
    }
}
