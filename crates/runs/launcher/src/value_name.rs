//! The names of parameters and metrics. Pure.

/// The maximum length of a name.
const LONGEST_NAME: usize = 63;

/// Returns true if a text is a valid name of a parameter or of a metric in log lines.
#[must_use]
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && text.len() <= LONGEST_NAME
        && text.bytes().all(is_name_byte)
}

/// Returns true if a name may contain this byte.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Checks a name.
///
/// # Errors
/// The violated rule.
pub fn check_name(name: &str) -> Result<(), String> {
    match is_name(name) {
        true => Ok(()),
        false => Err(format!(
            "use letters, digits, '_', '-' and '.', not beginning with a digit, and at most {LONGEST_NAME} characters"
        )),
    }
}
