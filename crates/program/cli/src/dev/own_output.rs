//! Recognizes files in the folder that contain the output of this program, as after
//! `longshore dev 2>&1 | tee dev.log`. Each restart writes to them: they must not cause the next.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::{fd::AsFd, unix::fs::MetadataExt as _},
    path::Path,
};

use crate::ui;

/// The size of the end of a file in which to look for lines.
const TAIL: u64 = 64 * 1024;

/// Returns true if the file is standard output or standard error, or its end contains a line that
/// this program printed lately.
pub(super) fn is_own_output(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    if !metadata.is_file() {
        return false;
    }
    is_stream(&std::io::stdout(), &metadata)
        || is_stream(&std::io::stderr(), &metadata)
        || ends_with_output(&mut file, metadata.len())
}

fn is_stream(stream: &impl AsFd, file: &std::fs::Metadata) -> bool {
    let stream = rustix::fs::fstat(stream);
    stream.is_ok_and(|stream| (stream.st_dev, stream.st_ino) == (file.dev(), file.ino()))
}

fn ends_with_output(file: &mut File, length: u64) -> bool {
    let mut tail = Vec::new();
    let read = file
        .seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .and_then(|_| file.take(TAIL).read_to_end(&mut tail));
    let tail = String::from_utf8_lossy(&tail);
    read.is_ok()
        && ui::last_notes()
            .iter()
            .any(|line| tail.contains(line.as_str()))
}
