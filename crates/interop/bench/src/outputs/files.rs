//! The files that a task writes: one half is small, like logs and metrics, the other half is
//! larger, like parts of checkpoints.

use std::{fmt, fs, io::Write as _, path::Path};

use crate::report::Failure;

/// 10,000 files with 1 GB in total.
const COUNT: usize = 10_000;
const SMALL: usize = 2_000;
const LARGE: usize = 198_000;
/// The number of files per folder.
const FILES_PER_FOLDER: usize = 100;

pub(super) struct Files {
    pub(super) count: usize,
}

impl fmt::Display for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} files, {} MB",
            self.count,
            self.bytes() / 1_000_000
        )
    }
}

impl Files {
    /// A part of the files.
    pub(super) fn of(shrink: usize) -> Self {
        Self {
            count: (COUNT / shrink).max(2),
        }
    }

    fn bytes(&self) -> u64 {
        (0..self.count).map(|number| size(number) as u64).sum()
    }

    /// Writes them. Their contents are random, and different.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let mut state = 1_u64;
        for number in 0..self.count {
            let inner = folder.join(format!("part{:03}", number / FILES_PER_FOLDER));
            if number % FILES_PER_FOLDER == 0 {
                fs::create_dir_all(&inner)?;
            }
            let mut content = Vec::with_capacity(size(number) + 8);
            while content.len() < size(number) {
                // xorshift
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                content.write_all(&state.to_le_bytes())?;
            }
            content.truncate(size(number));
            fs::write(inner.join(format!("file{number}.bin")), content)?;
        }
        Ok(())
    }

    /// Fails unless a folder has all files.
    pub(super) fn check(&self, folder: &Path) -> Result<(), Failure> {
        let mut found = (0, 0);
        for inner in fs::read_dir(folder)? {
            for file in fs::read_dir(inner?.path())? {
                found = (found.0 + 1, found.1 + file?.metadata()?.len());
            }
        }
        match found == (self.count, self.bytes()) {
            true => Ok(()),
            false => Err(format!(
                "{}: {} files with {} bytes instead of {self}",
                folder.display(),
                found.0,
                found.1
            )
            .into()),
        }
    }
}

fn size(number: usize) -> usize {
    match number % 2 {
        0 => SMALL,
        _ => LARGE,
    }
}
