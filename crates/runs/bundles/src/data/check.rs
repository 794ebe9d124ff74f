//! The rules for paths and identities of data. Pure.

/// The maximum length of a path in bytes.
const LONGEST: usize = 2_048;
/// The maximum number of names in a path.
pub(super) const DEEPEST: usize = 100;
/// The prefix of the identity of an object whose sha256 is unknown.
pub(super) const OBJECT: &str = "object-";

/// Returns true if a path consists of names without `.`, `..` and control characters.
pub(super) fn is_plain(path: &str) -> bool {
    path.len() <= LONGEST
        && path.split('/').count() <= DEEPEST
        && path.split('/').all(is_plain_name)
}

/// Returns true if a text is the name of a file, without control characters.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_name = !name.is_empty() && name != "." && name != "..";
    is_name && name.len() <= 255 && !name.chars().any(|c| c == '/' || c.is_control())
}

/// Returns true if a text is a sha256 in lower-case hexadecimal.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

/// Returns true if a text is the identity of a content.
pub(super) fn is_content(text: &str) -> bool {
    is_sha256(text.strip_prefix(OBJECT).unwrap_or(text))
}
