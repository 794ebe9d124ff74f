//! Fetches and unpacks the code.

use std::{
    fs,
    io::{self, Seek as _},
};

use flate2::read::MultiGzDecoder;
use longshore_archive::{Unpack, unpack};
use longshore_diagnosis::names;
use longshore_files::remove_tree;

use super::{BootstrapError, Places, messages::with_termination_message, source};
use crate::{
    ready_note,
    store::{RetryPolicy, download},
};

/// Fetches the code: reads the bundle, verifies its sha256, and unpacks it.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn fetch() -> Result<(), BootstrapError> {
    with_termination_message(fetch_into(&Places::default()))
}

/// Like [`fetch`], with explicit folders.
///
/// # Errors
/// See [`BootstrapError`].
pub fn fetch_into(places: &Places) -> Result<(), BootstrapError> {
    let config = places.read_config()?;
    let work = places.work();
    let write = |source| BootstrapError::Write {
        path: work.clone(),
        source,
    };
    let wanted = config.bundle.as_ref();
    if wanted.is_some_and(|bundle| is_ready(places, &bundle.sha256)) {
        return Ok(());
    }
    // A restarted container starts from scratch.
    remove_tree(&work).map_err(write)?;
    fs::create_dir_all(&work).map_err(write)?;
    let Some(bundle) = config.bundle else {
        return Ok(());
    };
    // The temporary file is in the pod's own volume, which only the pod writes to. It is removed on
    // every path, so that the command can use its space.
    let fetched = tempfile::Builder::new()
        .prefix("bundle-")
        .tempfile_in(&places.home);
    let mut fetched = fetched.map_err(|source| BootstrapError::Write {
        path: places.home.clone(),
        source,
    })?;
    let (place, found) = match &bundle.download {
        Some(from) => {
            let found = download(&from.url, from.size, fetched.path(), RetryPolicy::default());
            (from.url.place(), found?)
        }
        None => {
            let path = places.bundle.join(&bundle.file);
            let found = source::copy(&path, fetched.as_file_mut())?;
            (path.display().to_string(), found)
        }
    };
    if found != bundle.sha256 {
        return Err(BootstrapError::Damaged {
            place,
            found,
            expected: bundle.sha256,
        });
    }
    // Unpack the copy that was hashed, not the store's file, which may have changed.
    let file = fetched.as_file_mut();
    file.rewind().map_err(|source| BootstrapError::Bundle {
        path: places.home.clone(),
        source,
    })?;
    let file = io::BufReader::with_capacity(1 << 16, file);
    unpack(MultiGzDecoder::new(file), &work, &Unpack::default(), |_| ())?;
    Ok(())
}

/// Fetches the code in the container of the command. A restarted container keeps its files.
pub(super) fn fetch_once(places: &Places) -> Result<(), BootstrapError> {
    let path = places.home.join(names::FETCHED);
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(());
    }
    fetch_into(places).map_err(|cause| BootstrapError::Code(Box::new(cause)))?;
    fs::write(&path, "").map_err(|source| BootstrapError::Write { path, source })
}

/// Returns true if the node has placed an unpacked copy of the code. The node's note is removed
/// first, so that a container that restarts at any point fetches the code again.
fn is_ready(places: &Places, sha256: &str) -> bool {
    let path = places.home.join(names::READY);
    let found = fs::read_to_string(&path).ok();
    let is_noted = found.is_some() && found == ready_note::note(sha256);
    let is_removed = fs::remove_file(&path).is_ok();
    is_noted && is_removed && fs::symlink_metadata(places.work()).is_ok_and(|work| work.is_dir())
}
