//! Paths of outputs: relative, in UTF-8, and safe to show and to write below a folder. Pure.

use crate::terminal_text::escaped;

/// The maximum length of a path in bytes.
const LONGEST: usize = 2_048;
/// The length after which a shown path is cut, in bytes.
const LONGEST_SHOWN: usize = 512;
/// The maximum number of names in a path.
pub(super) const DEEPEST: usize = 100;

/// A path of a task in one line, without characters that control a terminal. A long path is cut.
pub(super) fn shown(path: &str) -> String {
    let escaped = escaped(path);
    let mut shown = String::with_capacity(escaped.len().min(LONGEST_SHOWN));
    for c in escaped.chars() {
        if shown.len() >= LONGEST_SHOWN {
            shown.push('…');
            break;
        }
        match c.is_control() || is_invisible(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Returns true if a path consists of names without `.`, `..` and control characters.
pub(super) fn is_plain(path: &str) -> bool {
    path.len() <= LONGEST
        && path.split('/').count() <= DEEPEST
        && path.split('/').all(is_plain_name)
}

/// Returns true if a text is the name of a file, without control characters.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name
            .chars()
            .any(|c| c == '/' || c.is_control() || is_invisible(c))
}

/// Characters that change the direction or the appearance of the text around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_path_is_short() {
        let path = "d/".repeat(10_000) + "\u{1b}[2J";
        assert!(shown(&path).len() < LONGEST_SHOWN + 8);
        assert!(!shown("a\u{1b}").contains('\u{1b}'));
    }

    #[test]
    fn paths_that_could_leave_a_folder_or_deceive_are_not_plain() {
        for plain in ["a", "a/b.c", "größe/模型.bin", ".hidden", "a b", "..."] {
            assert!(is_plain(plain), "{plain}");
        }
        let long = "x".repeat(LONGEST + 1);
        let deep = "x/".repeat(DEEPEST) + "x";
        for wrong in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "./a",
            "a\0",
            "a\x1b[2J",
            "a\u{202e}b",
            &long,
            &deep,
        ] {
            assert!(!is_plain(wrong), "{wrong:?}");
        }
    }
}
