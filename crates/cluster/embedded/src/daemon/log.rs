//! The log of the background process. It is rotated while the process writes it, so its size is
//! bounded.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
};

use longshore_files::OpenMode;

use crate::{Error, layout::Layout};

/// The maximum size of a log file in bytes. A full file replaces the previous
/// rotated file, so both together stay below twice this size.
const LOG_LIMIT: u64 = 8 << 20;
/// The number of log lines that a failed start shows.
const SHOWN_LINES: usize = 15;

/// The writer of the background process's log.
///
/// Output that bypasses this writer and goes to standard error, such as a panic, is
/// written to the same file.
#[derive(Debug)]
pub struct ClusterLog {
    path: PathBuf,
    file: File,
    limit: u64,
    /// True if standard error is redirected to the file.
    owns_stderr: bool,
    /// Number of lines that could not be written since the last line.
    missing: u64,
}

impl ClusterLog {
    /// Opens the log of a folder for this process. Standard error must already be
    /// redirected to it.
    ///
    /// # Errors
    /// The file cannot be opened, or is not safe to use.
    pub fn open(layout: &Layout) -> Result<Self, Error> {
        let mut log = Self::at(&layout.log(), LOG_LIMIT)?;
        log.owns_stderr = true;
        Ok(log)
    }

    fn at(path: &Path, limit: u64) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            file: longshore_files::open(path, OpenMode::Append)?,
            limit,
            owns_stderr: false,
            missing: 0,
        })
    }

    /// Writes a line. If lines are missing, writes a line about them first.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let missing = match self.missing {
            0 => String::new(),
            // A part of the first missing line may precede.
            lines => format!("\n{lines} lines are missing here: the log could not be written\n"),
        };
        // A line is a single write, so that it cannot mix with the lines of other
        // writers.
        self.file.write_all(&[missing.as_bytes(), line].concat())?;
        self.missing = 0;
        Ok(())
    }

    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |found| found.len())
    }

    /// Renames the file and starts a new one, whose first line names the old file.
    fn rotate(&mut self) -> io::Result<()> {
        let rotated_path = rotated_path(&self.path);
        let removed = fs::symlink_metadata(&rotated_path).map_or(0, |found| found.len());
        fs::rename(&self.path, &rotated_path)?;
        self.file =
            longshore_files::open(&self.path, OpenMode::Append).map_err(io::Error::other)?;
        if self.owns_stderr {
            rustix::stdio::dup2_stderr(&self.file)?;
        }
        let removal_note = match removed {
            0 => String::new(),
            bytes => format!("; {bytes} bytes of older log were removed"),
        };
        let name = rotated_path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        writeln!(self.file, "earlier lines are in {name}{removal_note}")
    }
}

impl Write for ClusterLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = self.length();
        if length > 0 && length.saturating_add(line.len() as u64) > self.limit {
            // If rotation fails, logging continues beyond the limit, because losing
            // a line would be worse.
            if let Err(error) = self.rotate() {
                let _ = writeln!(self.file, "the log cannot be rotated: {error}");
            }
        }
        // Errors are never returned: the tracing subscriber would report them on standard error,
        // which is the same file, and panic.
        if self.write_line(line).is_err() {
            self.missing = self.missing.saturating_add(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn rotated_path(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Opens the log for a process that is about to start. Also returns its current
/// length.
pub(super) fn for_child(path: &Path) -> Result<(File, u64), Error> {
    let mut log = ClusterLog::at(path, LOG_LIMIT)?;
    if log.length() >= LOG_LIMIT {
        log.rotate().map_err(Error::file("rotate", path))?;
    }
    let length = log.length();
    Ok((log.file, length))
}

/// Returns the last lines written since `begin`.
pub(super) fn read_last_lines(mut log: &File, begin: u64) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = log
        .seek(SeekFrom::Start(begin))
        .and_then(|_| log.take(LOG_LIMIT).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_log_is_rotated_and_its_size_is_bounded() {
        const LIMIT: u64 = 1000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.log");
        let mut log = ClusterLog::at(&path, LIMIT).unwrap();
        let numbers = |path: &Path| -> Vec<u32> {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("line "));
            lines.map(|number| number.parse().unwrap()).collect()
        };
        for number in 0..1000 {
            log.write_all(format!("line {number}\n").as_bytes())
                .unwrap();
            for path in [&path, &rotated_path(&path)] {
                let length = path.metadata().map_or(0, |found| found.len());
                assert!(length <= LIMIT, "{length}");
            }
        }
        let kept: Vec<u32> = [numbers(&rotated_path(&path)), numbers(&path)].concat();
        let first = kept[0];
        assert!(
            kept.iter().copied().eq(first..1000),
            "the kept lines must be consecutive"
        );
        assert!(first > 0);
        let text = fs::read_to_string(&path).unwrap();
        let note = text.lines().next().unwrap();
        assert!(
            note.starts_with("earlier lines are in cluster.log.1; "),
            "{note}"
        );
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_line_longer_than_the_limit_is_not_split() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.log");
        let mut log = ClusterLog::at(&path, 10).unwrap();
        log.write_all(b"a line that is longer\n").unwrap();
        log.write_all(b"next\n").unwrap();
        let before = fs::read_to_string(rotated_path(&path)).unwrap();
        assert_eq!(before, "a line that is longer\n");
        assert!(fs::read_to_string(&path).unwrap().ends_with("\nnext\n"));
    }

    /// An error would be reported on standard error, which is the same file.
    #[test]
    fn a_full_disk_is_no_error_and_missing_lines_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.log");
        let mut log = ClusterLog::at(&path, LOG_LIMIT).unwrap();
        let full = fs::OpenOptions::new().append(true).open("/dev/full");
        let file = std::mem::replace(&mut log.file, full.unwrap());
        log.write_all(b"one\n").unwrap();
        log.write_all(b"two\n").unwrap();
        log.file = file;
        log.write_all(b"three\n").unwrap();
        log.write_all(b"four\n").unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "\n2 lines are missing here: the log could not be written\nthree\nfour\n"
        );
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.log");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(for_child(&path), Err(Error::Untrusted { .. })));
    }
}
