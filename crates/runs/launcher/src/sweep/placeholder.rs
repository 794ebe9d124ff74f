//! Placeholders in commands: `{lr}` stands for the value of the parameter `lr`, and `{{lr}}` for
//! the text `{lr}`. `${lr}` and braces around other texts than names are not changed, because shell
//! scripts and JSON contain them.

use crate::value_name::{is_name, is_name_byte};

/// A part of a word of a command.
enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Calls `each` with the parts of a word.
fn parts<'a>(word: &'a str, mut each: impl FnMut(Part<'a>)) {
    let (mut begin, mut at) = (0, 0);
    let bytes = word.as_bytes();
    let text = |from: usize, to: usize| word.get(from..to).unwrap_or_default();
    // Braces and names are ASCII, so all positions are boundaries of characters.
    while let Some(byte) = bytes.get(at) {
        let is_variable = at > 0 && bytes.get(at - 1) == Some(&b'$');
        if *byte != b'{' || is_variable {
            at += 1;
            continue;
        }
        let is_double = bytes.get(at + 1) == Some(&b'{');
        let start = if is_double { at + 2 } else { at + 1 };
        let rest = bytes.get(start..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let end = start + length;
        let name = text(start, end);
        let closes = bytes.get(end) == Some(&b'}') && is_name(name);
        if is_double && closes && bytes.get(end + 1) == Some(&b'}') {
            each(Part::Text(text(begin, at)));
            each(Part::Text(text(at + 1, end + 1)));
            (begin, at) = (end + 2, end + 2);
        } else if !is_double && closes {
            each(Part::Text(text(begin, at)));
            each(Part::Name(name));
            (begin, at) = (end + 1, end + 1);
        } else {
            at += 1;
        }
    }
    each(Part::Text(text(begin, bytes.len())));
}

/// The names of the placeholders in a word.
#[must_use]
pub fn names(word: &str) -> Vec<&str> {
    let mut names = Vec::new();
    parts(word, |part| {
        if let Part::Name(name) = part {
            names.push(name);
        }
    });
    names
}

/// Replaces the placeholders in a word by values. Placeholders without a value are not changed.
///
/// ```
/// use longshore_launcher::sweep::fill;
///
/// let value = |name: &str| (name == "lr").then_some("0.1");
/// assert_eq!(fill("--lr={lr}", value), "--lr=0.1");
/// assert_eq!(fill("{{lr}} ${lr} {\"lr\": 1} {x}", value), "{lr} ${lr} {\"lr\": 1} {x}");
/// ```
#[must_use]
pub fn fill<'v>(word: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut filled = String::with_capacity(word.len());
    parts(word, |part| match part {
        Part::Text(text) => filled.push_str(text),
        Part::Name(name) => match value(name) {
            Some(value) => filled.push_str(value),
            None => {
                filled.push('{');
                filled.push_str(name);
                filled.push('}');
            }
        },
    });
    filled
}
