//! Packs a folder on a thread for blocking work.

use std::{io, path::PathBuf, sync::Arc};

use super::{Bundle, BundleError, PackOptions, Progress, pack};
use crate::stop_on_drop::StopOnDrop;

/// Packs a folder without blocking other tasks. If the future is dropped, packing stops.
///
/// # Errors
/// The same as [`pack`].
pub async fn pack_in_background(
    folder: PathBuf,
    options: PackOptions,
    progress: impl FnMut(Progress) + Send + 'static,
) -> Result<Bundle, BundleError> {
    let _stop = StopOnDrop(Arc::clone(&options.stop));
    let work = tokio::task::spawn_blocking(move || pack(&folder, &options, progress));
    let packed = work.await;
    packed.map_err(|error| BundleError::Write(io::Error::other(error)))?
}
