//! All output of the program: results on standard output, messages and progress on standard
//! error, colours only on a terminal. Human-readable lines contain no control sequences of
//! tasks and objects.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, IsTerminal as _, Write as _},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use longshore::launcher::terminal_text::{self, escaped};

use crate::{
    env,
    error::{Error, Mark},
};

/// Set when standard output accepts no more data.
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);
/// The last lines on standard error.
static LAST_NOTES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
/// The number of lines to keep: a copy of the output may be a few lines behind.
const NOTES: usize = 16;
/// The length of a line that other files do not contain by chance.
const MIN_NOTE_BYTES: usize = 16;
/// The reason, unless the reader has closed it.
static OUTPUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Writes a human-readable line to standard output. After the reader has closed it (`| head`),
/// nothing is written, and [`output_closed`] returns true.
pub(crate) fn line(text: impl AsRef<str>) {
    bytes(format!("{}\n", terminal_text::lines(text.as_ref())).as_bytes());
}

/// Writes a line of JSON to standard output. Control characters that JSON allows unescaped, but
/// terminals may interpret, are escaped without changing the value.
pub(crate) fn json(text: &str) {
    let mut line = String::new();
    write_json(text, &mut line);
    bytes(line.as_bytes());
}

/// Like [`json`], to a string.
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
    // They occur only within strings.
    Cow::Owned(text.chars().map(escape).collect())
}

/// Writes raw bytes to standard output.
pub(crate) fn bytes(bytes: &[u8]) {
    if output_closed() {
        return;
    }
    check_output(io::stdout().lock().write_all(bytes));
}

/// After an error, nothing more is written: the output would have a gap.
fn check_output(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        output_failed(error);
    }
}

/// Records that standard output accepts no more data. A reader that has closed it (`| head`) has
/// read enough; any other error is reported at the end of the program.
pub(crate) fn output_failed(error: io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        // Later errors have the same cause.
        let _ = OUTPUT_ERROR.set(error);
    }
    OUTPUT_CLOSED.store(true, Ordering::Relaxed);
}

/// The error that ended standard output, unless its reader has closed it.
pub(crate) fn output_error() -> Option<&'static io::Error> {
    OUTPUT_ERROR.get()
}

/// Passes on the output of a container: unchanged to a file, a pipe, or the container's own
/// terminal; to any other terminal without control sequences.
pub(crate) struct Pass {
    filter: Option<terminal_text::Stream>,
    write: fn(&[u8]),
}

impl Pass {
    /// To standard output. `raw`: the terminal was given to the container.
    pub(crate) fn stdout(raw: bool) -> Self {
        let filtered = !raw && io::stdout().is_terminal();
        Self {
            filter: filtered.then(terminal_text::Stream::default),
            write: bytes,
        }
    }

    /// To standard error, in the same way.
    pub(crate) fn stderr(raw: bool) -> Self {
        let filtered = !raw && io::stderr().is_terminal();
        Self {
            filter: filtered.then(terminal_text::Stream::default),
            write: |bytes| {
                let _ = io::stderr().lock().write_all(bytes);
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

/// Abandons standard output, because its reader is blocked.
pub(crate) fn abandon_output() {
    OUTPUT_CLOSED.store(true, Ordering::Relaxed);
}

/// Flushes the buffer.
pub(crate) fn flush() {
    if output_closed() {
        return;
    }
    check_output(io::stdout().lock().flush());
}

/// Returns true if standard output accepts no more data.
pub(crate) fn output_closed() -> bool {
    OUTPUT_CLOSED.load(Ordering::Relaxed)
}

/// Writes a human-readable line to standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    let text = terminal_text::lines(text.as_ref());
    let _ = writeln!(io::stderr().lock(), "{text}");
    if text.len() >= MIN_NOTE_BYTES {
        let mut notes = last_notes_lock();
        notes.truncate(NOTES - 1);
        notes.push_front(text.into_owned());
    }
}

/// The last lines on standard error that are long enough to be recognized in a file, newest first.
pub(crate) fn last_notes() -> VecDeque<String> {
    last_notes_lock().clone()
}

fn last_notes_lock() -> MutexGuard<'static, VecDeque<String>> {
    LAST_NOTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a prompt without a newline.
pub(crate) fn prompt(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Asks a question, and returns true after `y` or `yes`.
pub(crate) async fn confirm(question: &str) -> bool {
    prompt(question);
    // After Ctrl-C, the thread stays blocked in its read; the program exits without it.
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    tokio::select! {
        answer = answer => match answer {
            Ok(Ok(line)) => matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"),
            _ => false,
        },
        _ = tokio::signal::ctrl_c() => {
            note("");
            false
        }
    }
}

/// Writes a warning to standard error.
pub(crate) fn warning(text: impl AsRef<str>) {
    note(warned(text.as_ref()));
}

/// The line of a warning.
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

/// Returns true if prompts are possible: stdin and stderr are terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Columns and rows of the terminal for progress output.
pub(crate) fn progress_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let known = size.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Returns true if progress can be drawn.
pub(crate) fn draws_progress() -> bool {
    io::stderr().is_terminal()
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
    /// Colours for standard output.
    pub(crate) fn stdout() -> Self {
        Self {
            on: io::stdout().is_terminal() && !env::no_color(),
        }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    /// Colours for standard error.
    pub(crate) fn stderr() -> Self {
        Self {
            on: io::stderr().is_terminal() && !env::no_color(),
        }
    }

    fn paint(self, code: u8, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// The colour of the n-th task in a merged log.
    pub(crate) fn voice(self, n: usize, text: &str) -> String {
        const CODES: [u8; 6] = [36, 32, 35, 34, 33, 96];
        self.paint(CODES[n % CODES.len()], text)
    }

    colours! { red 31 green 32 yellow 33 cyan 36 bold 1 }
}

/// Aligns columns with two spaces between them and no trailing spaces. Control characters in
/// cells are escaped, including newlines and tabs.
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

/// A number and a noun, such as `2 files`.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// A human-readable size, in powers of 1024.
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

/// A duration in one or two units, such as `3d4h`, `12m`, `45s`.
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
    fn columns_are_aligned() {
        let rows =
            [["NAME", "AGE"], ["a-long-name", "1s"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(columns(&rows), ["NAME         AGE", "a-long-name  1s"]);
    }

    #[test]
    fn control_characters_in_cells_are_escaped() {
        let rows = [vec!["a\x1b[2J\nb".to_owned(), "\u{9b}c".to_owned()]];
        assert_eq!(columns(&rows), ["a^[[2J\\nb  \\u{9b}c"]);
    }

    #[test]
    fn escaping_json_keeps_its_value() {
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
