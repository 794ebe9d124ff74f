//! Everything the program writes: plain lines to standard output, marks and
//! progress to standard error, colours only on a terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    io::{IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    env,
    error::{Error, Mark},
};

/// Set when whoever read our output has gone.
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard output. When nobody reads any more (`| head`),
/// nothing more is written, and [`output_closed`] says so.
pub(crate) fn line(text: impl AsRef<str>) {
    bytes(format!("{}\n", text.as_ref()).as_bytes());
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

/// Writes bytes to standard error as they are.
pub(crate) fn error_bytes(bytes: &[u8]) {
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// Brings out what stands in the buffer.
pub(crate) fn flush() {
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
    let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
}

/// Writes the beginning of a line that the person ends.
pub(crate) fn prompt(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a warning to standard error.
pub(crate) fn warning(text: impl AsRef<str>) {
    note(format!(
        "{} {}",
        Paint::stderr().yellow("warning:"),
        text.as_ref()
    ));
}

/// Writes an error to standard error.
pub(crate) fn error(error: &Error) {
    let paint = Paint::stderr();
    for (mark, text) in error.lines() {
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

/// Columns side by side, two blanks between them, nothing behind the last.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
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
