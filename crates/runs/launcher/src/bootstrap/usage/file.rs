//! The file of the termination message.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use longshore_diagnosis::usage::{self, UsageRecord};

use crate::bootstrap::messages::TERMINATION_MESSAGES;

/// The file of this container's termination message, as long as the task does not write to it.
pub(super) struct RecordFile {
    path: PathBuf,
    /// The last written content.
    written: String,
}

fn path() -> Option<PathBuf> {
    let paths = TERMINATION_MESSAGES.map(Path::new);
    let is_file = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|file| file.is_file());
    paths.into_iter().find(is_file).map(Path::to_owned)
}

impl RecordFile {
    pub(super) fn find() -> Option<Self> {
        path().map(Self::at)
    }

    fn at(path: PathBuf) -> Self {
        Self {
            path,
            written: String::new(),
        }
    }

    /// Replaces the record. If the task has written to the file, its message is kept.
    pub(super) fn write(&mut self, record: &UsageRecord) {
        let Ok(line) = record.line() else { return };
        let current = fs::read_to_string(&self.path);
        if current.is_ok_and(|current| current == self.written) && self.replace(&line).is_ok() {
            self.written = line;
        }
    }

    fn replace(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
            .open(&self.path)?;
        file.write_all(line.as_bytes())
    }
}

/// The current record of this container. `None` if nothing was recorded.
#[must_use]
pub fn current() -> Option<UsageRecord> {
    usage::split(&fs::read_to_string(path()?).ok()?).0
}

/// Prints the record of this container, for clients that execute this program in it.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print() -> io::Result<()> {
    let line = current().and_then(|record| record.line().ok());
    io::stdout().write_all(line.unwrap_or_default().as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_message_of_the_task_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("message");
        fs::write(&path, "").unwrap();
        let mut file = RecordFile::at(path.clone());
        let record = |seconds| UsageRecord {
            seconds,
            interval: 1,
            ..UsageRecord::default()
        };
        let read = || fs::read_to_string(&path).unwrap();
        file.write(&record(1.0));
        file.write(&record(2.0));
        assert_eq!(usage::split(&read()).0, Some(record(2.0)));
        fs::write(&path, "the words of the task").unwrap();
        file.write(&record(3.0));
        assert_eq!(read(), "the words of the task");
    }
}
