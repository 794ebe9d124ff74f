//! Notes of the tests about the real servers, for the tables in the docs.

use std::{env, fs::OpenOptions, io::Write as _};

/// The file to which the notes are appended; if unset, they are discarded.
const NOTES: &str = "LONGSHORE_TEST_NOTES";

/// Writes one line: the test, the type of the note, its text.
pub(crate) fn write(kind: &str, text: &str) {
    let Some(path) = env::var_os(NOTES) else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let line = format!("{test}\t{kind}\t{text}\n");
    // A single appending write, so that lines of parallel tests do not mix.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("{NOTES}={path:?}: {error}");
    }
}
