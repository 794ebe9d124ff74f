//! Text of tasks and objects, made safe for the terminal that shows it. Pure.
//!
//! A task may write any bytes, and any client may put any text into an object. Unfiltered,
//! they could move the cursor over other lines, clear the screen, set the window's title, or
//! write to the user's clipboard. The functions here return only printable characters, tabs
//! and newlines; [`shown`] and [`lines`] also keep colours, which they reset at the end of
//! each line. [`Stream`] is for output that is shown as it arrives.

mod cells;
mod colors;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use cells::Cells;
pub use stream::Stream;

/// A line of a task's log in the final state that a terminal would show.
///
/// Carriage returns, backspaces and movements within the line overwrite what was written before, as
/// a progress bar does. Colours (SGR) are kept. All other sequences are removed, including
/// truncated ones. The text must not contain a newline; one is replaced by a space.
///
/// ```
/// use longshore_launcher::terminal_text::shown;
/// assert_eq!(shown(" 10%\r100%"), "100%");
/// assert_eq!(shown("\x1b[31mred\x1b[2J"), "\x1b[31mred\x1b[0m");
/// assert_eq!(shown("\x1b]52;c;aGk=\x07plain"), "plain");
/// ```
#[must_use]
pub fn shown(line: &str) -> Cow<'_, str> {
    match is_printable(line) {
        true => Cow::Borrowed(line),
        false => Cow::Owned(Cells::written(line).to_string()),
    }
}

/// Applies [`shown`] to each line of a text.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    if text.split('\n').all(is_printable) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<_> = text.split('\n').map(shown).collect();
    Cow::Owned(lines.join("\n"))
}

/// Like [`shown`], but without colours, and not wider than `columns`.
///
/// ```
/// use longshore_launcher::terminal_text::current;
/// assert_eq!(current("\x1b[32m 42% \u{2588}\u{2588}\u{2588}", 7), " 42% \u{2588}\u{2588}");
/// ```
#[must_use]
pub fn current(line: &str, columns: usize) -> String {
    Cells::written(line).cut(columns)
}

/// A text with escaped control characters, in kubectl's notation: `^[` for an escape. Tabs and
/// newlines are kept.
///
/// ```
/// use longshore_launcher::terminal_text::escaped;
/// assert_eq!(escaped("a\x1b[2Jb\r\u{9b}c"), "a^[[2Jb^M\\u{9b}c");
/// // A character that reverses the direction of the rest of the line.
/// assert_eq!(escaped("a\u{202e}b"), "a\\u{202e}b");
/// ```
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.split('\n').all(is_printable) && !has_directions(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' | '\n' => out.push(c),
            // The caret notation: the letter 64 places after or before the character.
            '\0'..='\u{1f}' | '\u{7f}' => {
                out.push('^');
                out.push(char::from(c as u8 ^ 0x40));
            }
            c if c.is_control() || is_direction(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns true for characters that change the direction of the following text, including other
/// texts in the same line, and for line separators that terminals may interpret.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn has_directions(text: &str) -> bool {
    // All these characters begin with this byte in UTF-8.
    text.as_bytes().contains(&0xe2) && text.chars().any(is_direction)
}

/// Returns true if a line has no control characters except tabs. This check is faster than
/// interpreting the line, and most lines pass it.
fn is_printable(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_c0 = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    if bytes.iter().any(is_c0) {
        return false;
    }
    // C1 in UTF-8: U+0080 to U+009F.
    !bytes.contains(&0xc2) || !line.chars().any(|c| ('\u{80}'..='\u{9f}').contains(&c))
}
