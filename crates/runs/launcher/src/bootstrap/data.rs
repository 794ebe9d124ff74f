//! Fetches the data of a task.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    BootstrapError, Places,
    messages::{tell, with_termination_message},
};
use crate::{
    data::{AccessList, DataCache, DataError, PodList, fetch, hold},
    pod::{PodConfig, PodData},
    store::{RetryPolicy, download},
};

/// The compressed lists of files are at most this large.
const LARGEST_LIST: u64 = 256 << 20;

/// Fetches the data of the task's role: downloads the contents that the cache lacks, verifies
/// them, and places the folders.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn fetch_data() -> Result<(), BootstrapError> {
    let role = std::env::var("LONGSHORE_ROLE").unwrap_or_default();
    with_termination_message(fetch_data_into(&Places::default(), &role))
}

/// Like [`fetch_data`], with explicit folders.
///
/// # Errors
/// See [`BootstrapError`].
pub fn fetch_data_into(places: &Places, role: &str) -> Result<(), BootstrapError> {
    let config = places.read_config()?;
    let cache = DataCache::new(&places.data);
    let of_role = |data: &&PodData| data.paths.contains_key(role);
    for data in config.data.iter().filter(of_role) {
        let packed = list(places, data)?;
        let (list, manifest) = AccessList::unpack(&packed, &data.sha256)?;
        if let Some(limit) = config.data_cache_limit {
            cache.make_room(&manifest, limit)?;
        }
        let stop = |error: std::io::Error| DataError::Download {
            path: String::new(),
            problem: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(stop)?;
        let fetched = fetch(&cache, &list, &manifest, &data.sha256, &|_| {});
        let placed = runtime.block_on(fetched)?;
        let (files, bytes) = (manifest.files.len(), manifest.bytes());
        tell(&format!(
            "data {}: {files} files, {bytes} bytes, of which {} were fetched",
            data.sha256.get(..12).unwrap_or_default(),
            placed.added
        ));
    }
    Ok(())
}

/// Marks the data of a task as used while its command runs, if several pods share the cache.
pub(super) fn hold_data(config: &PodConfig, role: &str) {
    if config.data_cache_limit.is_none() {
        return;
    }
    let paths = config.data.iter().filter_map(|data| data.paths.get(role));
    for path in paths.flatten() {
        hold(Path::new(path));
    }
}

/// The compressed list of files.
fn list(places: &Places, data: &PodData) -> Result<Vec<u8>, BootstrapError> {
    let invalid = |problem: String| DataError::Manifest {
        place: data.sha256.clone(),
        problem,
    };
    match &data.list {
        PodList::Inline(text) => {
            let bytes = STANDARD.decode(text);
            Ok(bytes.map_err(|error| invalid(error.to_string()))?)
        }
        PodList::Object { url, size, sha256 } => {
            if *size > LARGEST_LIST {
                return Err(invalid(format!("it has {size} bytes")).into());
            }
            let file = tempfile::NamedTempFile::new_in(&places.home);
            let file = file.map_err(|source| BootstrapError::Write {
                path: places.home.clone(),
                source,
            })?;
            let found = download(url, *size, file.path(), RetryPolicy::default());
            let found = found.map_err(|error| DataError::download("the list of files", error))?;
            if found != *sha256 {
                return Err(invalid(format!("the sha256 of {url} is {found}")).into());
            }
            let read = std::fs::read(file.path());
            Ok(read.map_err(|source| BootstrapError::Write {
                path: file.path().to_owned(),
                source,
            })?)
        }
        PodList::NotSent => Err(invalid(
            "it was not uploaded: this run is the output of --dry-run; submit it with `longshore run`"
                .to_owned(),
        )
        .into()),
    }
}
