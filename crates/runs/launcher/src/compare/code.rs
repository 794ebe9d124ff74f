//! The code of a run, from its bundle.

use std::{fs, io, path::PathBuf};

use flate2::read::MultiGzDecoder;
use longshore_archive::{Unpack, unpack};
use longshore_client::{Cluster, k8s_openapi::api::core::v1::Secret};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    bundle::hexadecimal,
    plan::bundle_secret_name,
    pod::{self, PodConfig},
    queries,
    run::Run,
    runs::{CodePlace, RunSummary, code_place},
    store::{RetryPolicy, download},
};

/// The largest bundle that is compared, in bytes.
const LARGEST_BUNDLE: u64 = 256 << 20;

/// The configuration of the run's pods.
pub(super) async fn config(cluster: &Cluster, run: &Run) -> Result<PodConfig, String> {
    let secret = secret(cluster, run, run.label()).await?;
    let secret = secret.ok_or("its Secret does not exist")?;
    let data = secret.data.unwrap_or_default();
    let text = data
        .get(pod::FILE)
        .ok_or("its Secret is not that of a run")?;
    serde_json::from_slice(&text.0).map_err(|error| format!("its Secret: {error}"))
}

async fn secret(cluster: &Cluster, run: &Run, name: &str) -> Result<Option<Secret>, String> {
    let found = async {
        let item = queries::secret(cluster, &run.namespace, name).await?;
        item.map(|item| item.typed()).transpose()
    };
    let found: Result<_, longshore_client::Error> = found.await;
    found.map_err(|error| error.to_string())
}

/// The location of a bundle.
enum Place {
    Bytes(Vec<u8>),
    File(PathBuf),
    Download(pod::Download),
}

/// Unpacks the code of a run into a temporary folder.
pub(super) async fn unpacked(
    cluster: &Cluster,
    summary: &RunSummary,
    config: Option<&PodConfig>,
) -> Result<TempDir, String> {
    let sha256 = summary.bundle.clone().ok_or("it has no code")?;
    let run = &summary.run;
    let in_secret = secret(cluster, run, &bundle_secret_name(&sha256)).await?;
    let bytes = in_secret.and_then(|secret| secret.data?.into_values().next());
    let bundle = config.and_then(|config| config.bundle.clone());
    let place = match (bytes, bundle) {
        (Some(bytes), _) => Place::Bytes(bytes.0),
        (None, Some(bundle)) => match bundle.download {
            Some(from) => Place::Download(from),
            None => match code_place(cluster, run).await {
                Ok(Some(CodePlace::Folder(folder))) => Place::File(folder.join(&bundle.file)),
                Ok(_) => return Err("its bundle was removed".to_owned()),
                Err(error) => return Err(error.to_string()),
            },
        },
        (None, None) => return Err("its bundle was removed".to_owned()),
    };
    let unpacking = tokio::task::spawn_blocking(move || unpack_from(place, &sha256));
    unpacking.await.map_err(|error| error.to_string())?
}

fn unpack_from(place: Place, sha256: &str) -> Result<TempDir, String> {
    let text = |error: io::Error| error.to_string();
    let too_large = || format!("its bundle has more than {} MiB", LARGEST_BUNDLE >> 20);
    let bytes = match place {
        Place::Bytes(bytes) => bytes,
        Place::File(path) => {
            let cannot = |error| format!("cannot read its bundle {}: {error}", path.display());
            if fs::metadata(&path).map_err(cannot)?.len() > LARGEST_BUNDLE {
                return Err(too_large());
            }
            fs::read(&path).map_err(cannot)?
        }
        Place::Download(from) if from.size > LARGEST_BUNDLE => return Err(too_large()),
        Place::Download(from) => {
            let file = tempfile::NamedTempFile::new().map_err(text)?;
            let policy = RetryPolicy {
                attempts: 3,
                ..RetryPolicy::default()
            };
            download(&from.url, from.size, file.path(), policy)
                .map_err(|error| error.to_string())?;
            fs::read(file.path()).map_err(text)?
        }
    };
    if hexadecimal(&Sha256::digest(&bytes)) != sha256 {
        return Err("its bundle is damaged: its sha256 differs".to_owned());
    }
    let folder = tempfile::tempdir().map_err(text)?;
    let archive = MultiGzDecoder::new(&bytes[..]);
    unpack(archive, folder.path(), &Unpack::default(), |_| ())
        .map_err(|error| error.to_string())?;
    Ok(folder)
}
