//! Fills a cache from signed URLs, in a pod or for the cluster of this machine.

use std::sync::atomic::AtomicBool;

use futures::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};

use super::{
    AccessList, BucketData, DataCache, DataError, DataFile, DataOptions, DataProgress, Manifest,
    Placed, Step, access::Access, check::OBJECT, deliver::access_to, progress::Counter,
};
use crate::store::{
    RetryPolicy,
    for_data::{Wanted, client, fetch_with},
};

/// The number of concurrent downloads.
const AT_ONCE: usize = 16;

impl DataCache {
    /// Places the objects of a bucket. Downloads missing objects.
    ///
    /// # Errors
    /// [`DataError`] contains the object and the failed operation.
    pub async fn place_bucket(
        &self,
        bucket: &BucketData,
        options: &DataOptions,
    ) -> Result<Placed, DataError> {
        let list = access_to(bucket, options).await?;
        let progress = options.progress.as_ref();
        fetch(self, &list, &bucket.manifest, &bucket.sha256, progress).await
    }
}

/// Places the folder of a manifest. Downloads the contents that the cache lacks, verifies them,
/// and waits for another process that does so at the same time.
///
/// # Errors
/// [`DataError`] contains the file and the failed operation. Nothing incomplete is used.
pub fn fetch<'a>(
    cache: &'a DataCache,
    list: &'a AccessList,
    manifest: &'a Manifest,
    sha256: &'a str,
    progress: &'a (dyn Fn(DataProgress) + Send + Sync),
) -> BoxFuture<'a, Result<Placed, DataError>> {
    Box::pin(async move {
        let (own, name) = (cache.clone(), sha256.to_owned());
        let locked = tokio::task::spawn_blocking(move || Ok((own.lock()?, own.lock_tree(&name)?)));
        let locks = locked.await.map_err(|_| DataError::Stopped)?;
        let locks: Result<_, DataError> = locks;
        let locks = locks?;
        let (missing, bytes) = cache.missing(manifest);
        if missing.is_empty() && cache.is_placed(manifest, sha256) {
            return cache.used(sha256, bytes);
        }
        cache.check_space(bytes)?;
        let never = AtomicBool::new(false);
        let amount = (missing.len() as u64, bytes);
        let counter = Counter::new(Step::Downloading, amount, progress, &never);
        let client = client().map_err(|error| DataError::Download {
            path: String::new(),
            problem: error.to_string(),
        })?;
        let fetched = stream::iter(missing.into_iter().cloned().map(|file| {
            let access = list.urls.get(&file.content);
            fetch_one(cache, &client, &counter, file, access)
        }));
        let fetched = fetched.buffer_unordered(AT_ONCE);
        fetched.try_collect::<()>().await?;
        let (own, manifest, name) = (cache.clone(), manifest.clone(), sha256.to_owned());
        let placed = tokio::task::spawn_blocking(move || own.place(&manifest, &name));
        placed.await.map_err(|_| DataError::Stopped)??;
        drop(locks);
        cache.used(sha256, bytes)
    })
}

async fn fetch_one(
    cache: &DataCache,
    client: &reqwest::Client,
    counter: &Counter<'_>,
    file: DataFile,
    access: Option<&Access>,
) -> Result<(), DataError> {
    let access = access.ok_or_else(|| DataError::NoUrl {
        path: file.path.clone(),
    })?;
    let new = cache.new_content()?;
    let wanted = Wanted {
        url: &access.url,
        size: file.size,
        etag: access.etag.as_deref(),
    };
    let found = fetch_with(client, wanted, new.path(), RetryPolicy::default()).await;
    let found = found.map_err(|error| DataError::download(&file.path, error))?;
    if !file.content.starts_with(OBJECT) && found != file.content {
        return Err(DataError::Damaged {
            place: access.url.place(),
            problem: format!("its sha256 is {found}, not {}", file.content),
        });
    }
    cache.keep(new, &file)?;
    counter.add(file.size);
    Ok(())
}
