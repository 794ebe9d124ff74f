//! Everything the program writes: plain lines to standard output, marks and
//! progress to standard error, colours only on a terminal. Lines for people keep
//! nothing of what tasks and objects could do to a terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use longshore::launcher::terminal_text::{self, escaped};

use crate::{
    env,
    error::{Error, Mark},
};

/// Set when whoever read our output has gone.
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes a line for people to standard output. When its reader has gone (`| head`),
/// nothing more is written, and [`output_closed`] says so.
pub(crate) fn line(text: impl AsRef<str>) {
    bytes(format!("{}\n", terminal_text::lines(text.as_ref())).as_bytes());
}

/// Writes a line of JSON to standard output. Control characters that JSON allows as
/// they are, and terminals may obey, are written as escapes: the value is the same.
pub(crate) fn json(text: &str) {
    let mut line = String::new();
    write_json(text, &mut line);
    bytes(line.as_bytes());
}

/// The same to a text.
pub(crate) fn write_json(text: &str, out: &mut String) {
    out.push_str(&json_escaped(text));
    out.push('\n');
}

fn json_escaped(text: &str) -> Cow<'_, str> {
    let is_raw = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !text.contains(is_raw) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match is_raw(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    // They stand within strings only.
    Cow::Owned(text.chars().map(escape).collect())
}

/// Writes bytes to standard output as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    if output_closed() {
        return;
    }
    if std::io::stdout().lock().write_all(bytes).is_err() {
        OUTPUT_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Output of a container that is passed on as it comes: byte for byte to a file, a
/// pipe, or a terminal that was given to the container; to any other terminal only
/// what does not act on it.
pub(crate) struct Pass {
    filter: Option<terminal_text::Stream>,
    write: fn(&[u8]),
}

impl Pass {
    /// To standard output. `raw`: the terminal was given to the container.
    pub(crate) fn stdout(raw: bool) -> Self {
        let filtered = !raw && std::io::stdout().is_terminal();
        Self {
            filter: filtered.then(terminal_text::Stream::default),
            write: bytes,
        }
    }

    /// To standard error, in the same way.
    pub(crate) fn stderr(raw: bool) -> Self {
        let filtered = !raw && std::io::stderr().is_terminal();
        Self {
            filter: filtered.then(terminal_text::Stream::default),
            write: |bytes| {
                let _ = std::io::stderr().lock().write_all(bytes);
            },
        }
    }

    /// Passes a piece on.
    pub(crate) fn piece(&mut self, piece: &[u8]) {
        match &mut self.filter {
            Some(filter) => (self.write)(filter.pass(piece).as_bytes()),
            None => (self.write)(piece),
        }
        flush();
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(filter) = &mut self.filter {
            (self.write)(filter.end().as_bytes());
            flush();
        }
    }
}

/// Gives up standard output: its reader takes nothing, and is not waited for.
pub(crate) fn abandon_output() {
    OUTPUT_CLOSED.store(true, Ordering::Relaxed);
}

/// Brings out what stands in the buffer.
pub(crate) fn flush() {
    if output_closed() {
        return;
    }
    if std::io::stdout().lock().flush().is_err() {
        OUTPUT_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Whether the reader of our output has gone.
pub(crate) fn output_closed() -> bool {
    OUTPUT_CLOSED.load(Ordering::Relaxed)
}

/// Writes a line for people to standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    let text = terminal_text::lines(text.as_ref());
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes the beginning of a line that the person ends.
pub(crate) fn prompt(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a warning to standard error.
pub(crate) fn warning(text: impl AsRef<str>) {
    note(warned(text.as_ref()));
}

/// A warning's line.
pub(crate) fn warned(text: &str) -> String {
    let head = Paint::stderr().yellow("warning:");
    format!("{head} {}", escaped(text))
}

/// Writes an error to standard error.
pub(crate) fn error(error: &Error) {
    let paint = Paint::stderr();
    for (mark, text) in error.lines() {
        let text = escaped(&text);
        match mark {
            Mark::Error => note(format!("{} {text}", paint.red("error:"))),
            Mark::Detail => note(format!("  {text}")),
            Mark::Hint => note(format!("{} {text}", paint.cyan("hint:"))),
        }
    }
}

/// Whether a person can answer: input and error output are a terminal.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Columns and rows of the terminal that progress is drawn on.
pub(crate) fn progress_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let known = size.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether progress can be drawn.
pub(crate) fn draws_progress() -> bool {
    std::io::stderr().is_terminal()
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

macro_rules! colours {
    ($($name:ident $code:literal)*) => {
        $(pub(crate) fn $name(self, text: &str) -> String {
            self.paint($code, text)
        })*
    };
}

impl Paint {
    /// For standard output.
    pub(crate) fn stdout() -> Self {
        Self {
            on: std::io::stdout().is_terminal() && !env::no_color(),
        }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    /// For standard error.
    pub(crate) fn stderr() -> Self {
        Self {
            on: std::io::stderr().is_terminal() && !env::no_color(),
        }
    }

    fn paint(self, code: u8, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// The colour of the n-th voice in a merged log.
    pub(crate) fn voice(self, n: usize, text: &str) -> String {
        const CODES: [u8; 6] = [36, 32, 35, 34, 33, 96];
        self.paint(CODES[n % CODES.len()], text)
    }

    colours! { red 31 green 32 yellow 33 cyan 36 bold 1 }
}

/// Columns side by side, two blanks between them, nothing behind the last. Control
/// characters in cells are made visible, newlines and tabs too.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let cell = |cell: &String| escaped(cell).replace('\n', "\\n").replace('\t', "\\t");
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        for (n, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(n) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let pad = |(cell, width): (&String, &usize)| {
        format!("{cell}{}", " ".repeat(width - cell.chars().count()))
    };
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row.iter().zip(&widths).map(pad).collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}

/// So many of something, in words.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// Bytes for people, in powers of 1024.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1000.0 {
            let digits = usize::from(unit != "B" && value < 10.0);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// A span of time in one or two units, as `3d4h`, `12m`, `45s`.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        _ if days > 7 => format!("{days}d"),
        _ if days > 0 => format!("{days}d{}h", hours % 24),
        _ if hours > 0 => format!("{hours}h{}m", minutes % 60),
        _ if minutes > 0 => format!("{minutes}m{}s", seconds % 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [["NAME", "AGE"], ["a-long-name", "1s"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(columns(&rows), ["NAME         AGE", "a-long-name  1s"]);
    }

    #[test]
    fn cells_show_their_control_characters() {
        let rows = [vec!["a\x1b[2J\nb".to_owned(), "\u{9b}c".to_owned()]];
        assert_eq!(columns(&rows), ["a^[[2J\\nb  \\u{9b}c"]);
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"line": "a\u{7f}\u{9b}\u{e9}\x1b"});
        let text = serde_json::to_string(&value).unwrap_or_default();
        let escaped = json_escaped(&text);
        assert!(!escaped.chars().any(char::is_control), "{escaped:?}");
        let read: Option<serde_json::Value> = serde_json::from_str(&escaped).ok();
        assert_eq!(read, Some(value));
    }

    #[test]
    fn spans_are_short() {
        let spans = [-1, 0, 59, 61, 3700, 90_000, 864_000].map(span);
        assert_eq!(spans, ["0s", "0s", "59s", "1m1s", "1h1m", "1d1h", "10d"]);
    }

    #[test]
    fn sizes_for_people() {
        let sizes = [0, 999, 1000, 1536, 500 << 20, 3 << 40].map(size);
        assert_eq!(
            sizes,
            ["0 B", "999 B", "1.0 KiB", "1.5 KiB", "500 MiB", "3.0 TiB"]
        );
        assert_eq!(
            (count(1, "file"), count(0, "file")),
            ("1 file".into(), "0 files".into())
        );
    }
}
