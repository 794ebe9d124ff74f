//! What tests remark about the real server, for the table in the docs.

use std::{env, fs::OpenOptions, io::Write as _};

/// Names the file that takes the notes; unset: nobody wants them.
const NOTES: &str = "LONGSHORE_TEST_NOTES";

/// Writes one line: the test, what kind of note, its text.
pub(crate) fn write(kind: &str, text: &str) {
    let Some(path) = env::var_os(NOTES) else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let line = format!("{test}\t{kind}\t{text}\n");
    // One write, appended: tests in parallel do not mix their lines.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("{NOTES}={path:?}: {error}");
    }
}
