//! Reads the ends of kept files and of files of running tasks.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use longshore_diagnosis::names;

use super::{OutputFile, Outputs, patterns::Patterns, walk::Tree};

impl Outputs {
    /// The last bytes of a kept file, at most `limit`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tail(&self, file: &OutputFile, limit: u64) -> io::Result<Vec<u8>> {
        tail(self.open_content(&file.sha256)?, limit)
    }
}

/// The last bytes of a file in the folder of a running task, at most `limit`. `None` if the file
/// does not exist. `volume` is the run's volume. Links out of the folder are not followed.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn tail_of_running(
    volume: &Path,
    path: &str,
    limit: u64,
) -> io::Result<Option<Vec<u8>>> {
    let patterns = Patterns::new(&[path.to_owned()]).map_err(io::Error::other)?;
    let Some(tree) = Tree::read(volume, names::WORK_FOLDER, &patterns)? else {
        return Ok(None);
    };
    let mut files = tree.found.iter();
    let Some(Ok(file)) = files.next().map(|found| tree.open(found)) else {
        return Ok(None);
    };
    tail(file, limit).map(Some)
}

fn tail(mut file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
