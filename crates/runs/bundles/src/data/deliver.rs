//! Uploads the contents of a folder that a store lacks, and signs URLs for pods.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{
    StreamExt as _, TryStreamExt as _,
    future::{BoxFuture, pending},
    stream,
};
use object_store::{ObjectStoreExt, path::Path};
use sha2::{Digest as _, Sha256};

use super::{
    AccessList, BucketData, DataError, DataProgress, INLINE_LIMIT, PodList, Snapshot, Step,
    access::Access, object, progress::Counter, scan::SourceFile,
};
use crate::{
    bundle::hexadecimal,
    store::{
        Remote, Sent,
        for_data::{
            Cause, Effort, Journals, LONGEST, Opened, UploadError, check, not_silent, reason,
            upload,
        },
    },
};

/// The maximum number of contents, because each has a signed URL.
const MOST_SIGNED: usize = 100_000;
/// Up to this number, the store is queried for each content; otherwise, its contents are listed.
const ASKED_EACH: usize = 200;
/// The number of concurrent queries for the existence of contents.
const ASKED_AT_ONCE: usize = 32;
/// Contents up to this size are uploaded in one request.
const SMALL: u64 = 8 << 20;
/// The number of concurrent uploads of small contents, and of large contents, which have concurrent
/// parts.
const AT_ONCE: (usize, usize) = (8, 2);

/// Options of a delivery.
#[derive(Clone)]
pub struct DataOptions {
    /// Settings of the object store by variable name. They override the environment's settings.
    pub settings: Vec<(String, String)>,
    /// The validity of signed URLs.
    pub validity: Duration,
    /// A cache folder for the progress of uploads, which are then resumed.
    pub cache: Option<PathBuf>,
    /// Called while contents are uploaded.
    pub progress: Arc<dyn Fn(DataProgress) + Send + Sync>,
}

impl fmt::Debug for DataOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataOptions")
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

/// Uploads the contents that the store lacks, and returns the list for the pods. If the future
/// is dropped, complete contents stay in the store, and the next delivery continues.
///
/// # Errors
/// [`DataError`] contains the file or the store, the problem and the remedy.
pub fn deliver<'a>(
    snapshot: &'a Snapshot,
    remote: &'a Remote,
    options: &'a DataOptions,
) -> BoxFuture<'a, Result<PodList, DataError>> {
    Box::pin(async move {
        let contents: Vec<(&str, &SourceFile)> = snapshot
            .sources
            .iter()
            .map(|(content, source)| (content.as_str(), source))
            .collect();
        check_count(&snapshot.folder.display().to_string(), contents.len())?;
        let opened = remote.open(Effort::Little, &options.settings)?;
        let existing = existing(remote, &opened, &contents).await?;
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for (content, source) in &contents {
            if existing.contains(*content) {
                continue;
            }
            match source.size() <= SMALL {
                true => small.push(((*content).to_owned(), (*source).clone())),
                false => large.push(((*content).to_owned(), (*source).clone())),
            }
        }
        send(remote, &opened, options, small, large).await?;
        let names = contents.iter().map(|(content, _)| (*content).to_owned());
        let paths = contents
            .iter()
            .map(|(content, _)| object::path(remote, content));
        let paths: Vec<Path> = paths.collect();
        let urls = sign(remote, &opened, &paths, options).await?;
        let urls = names.zip(urls);
        let list = AccessList {
            manifest: snapshot.manifest.to_text(),
            urls: urls.collect(),
        };
        put_list(&list, Some(remote), options).await
    })
}

/// Signs the URLs of the objects of a bucket, and returns the list for the pods. A list that does
/// not fit into the Secret of the run is kept in the store.
///
/// # Errors
/// The same as [`deliver`].
pub async fn sign_bucket(
    bucket: &BucketData,
    store: Option<&Remote>,
    options: &DataOptions,
) -> Result<PodList, DataError> {
    let list = access_to(bucket, options).await?;
    put_list(&list, store, options).await
}

/// The signed URLs of the objects of a bucket.
pub(super) async fn access_to(
    bucket: &BucketData,
    options: &DataOptions,
) -> Result<AccessList, DataError> {
    let remote = &bucket.remote;
    check_count(&remote.to_string(), bucket.objects.len())?;
    let opened = remote.open(Effort::Little, &options.settings)?;
    let paths: Vec<Path> = bucket
        .objects
        .iter()
        .map(|object| object.key.clone())
        .collect();
    let urls = sign(remote, &opened, &paths, options).await?;
    let mut list = AccessList {
        manifest: bucket.manifest.to_text(),
        urls: BTreeMap::new(),
    };
    for (object, mut access) in bucket.objects.iter().zip(urls) {
        access.etag = object.etag.clone();
        list.urls.insert(object.content.clone(), access);
    }
    Ok(list)
}

fn check_count(place: &str, count: usize) -> Result<(), DataError> {
    match count > MOST_SIGNED {
        true => Err(DataError::TooMany {
            place: place.to_owned(),
            what: "different files",
            most: MOST_SIGNED,
        }),
        false => Ok(()),
    }
}

/// The contents that the store has, by their sizes.
async fn existing(
    remote: &Remote,
    opened: &Opened,
    wanted: &[(&str, &SourceFile)],
) -> Result<HashSet<String>, DataError> {
    let mut existing = HashSet::new();
    if wanted.len() > ASKED_EACH {
        let sizes: BTreeMap<&str, u64> = wanted
            .iter()
            .map(|(content, source)| (*content, source.size()))
            .collect();
        let folder = object::folder(remote);
        // The listing includes contents of other folders. If there are many, it is faster to query
        // each content.
        let most = wanted.len().saturating_mul(20);
        let listed = not_silent(opened.objects.list(Some(&folder)).take(most));
        let mut listed = std::pin::pin!(listed);
        let mut count = 0;
        let complete = loop {
            match listed.next().await {
                None => break count < most,
                // The store denies listing.
                Some(Err(_)) => break false,
                Some(Ok(found)) => {
                    count += 1;
                    let content = found.location.filename().unwrap_or_default();
                    if sizes.get(content) == Some(&found.size) {
                        existing.insert(content.to_owned());
                    }
                }
            }
        };
        if complete {
            return Ok(existing);
        }
    }
    let unknown: Vec<(String, u64)> = wanted
        .iter()
        .filter(|(content, _)| !existing.contains(*content))
        .map(|(content, source)| ((*content).to_owned(), source.size()))
        .collect();
    let asked = stream::iter(unknown.into_iter().map(|(content, size)| async move {
        let path = object::path(remote, &content);
        match opened.objects.head(&path).await {
            Ok(found) => Ok((content, found.size == size)),
            Err(error) => match reason(&error).0 {
                Cause::NoCredentials | Cause::Unreachable | Cause::PlainHttp => {
                    Err(remote.refusal(&error))
                }
                // Without permission to list, stores do not report missing objects. The upload then
                // reports the problem.
                _ => Ok((content, false)),
            },
        }
    }));
    let found: Vec<(String, bool)> = asked.buffer_unordered(ASKED_AT_ONCE).try_collect().await?;
    let found = found.into_iter().filter(|(_, exists)| *exists);
    existing.extend(found.map(|(content, _)| content));
    Ok(existing)
}

type Contents = Vec<(String, SourceFile)>;

/// Uploads contents.
async fn send(
    remote: &Remote,
    opened: &Opened,
    options: &DataOptions,
    small: Contents,
    large: Contents,
) -> Result<(), DataError> {
    let all = small.iter().chain(&large);
    let bytes = all.map(|(_, source)| source.size());
    let amount = (
        (small.len() + large.len()) as u64,
        bytes.fold(0, u64::saturating_add),
    );
    if amount.0 == 0 {
        return Ok(());
    }
    let never = AtomicBool::new(false);
    let counter = Counter::new(Step::Uploading, amount, options.progress.as_ref(), &never);
    let retrying = remote.open(Effort::Much, &options.settings)?;
    let journals = options.cache.as_ref();
    let journals = journals.map(|cache| Journals::new(cache.clone(), &opened.identity));
    for (contents, at_once) in [(small, AT_ONCE.0), (large, AT_ONCE.1)] {
        let sent = stream::iter(contents.into_iter().map(|(content, source)| {
            send_one(
                remote,
                &retrying,
                journals.as_ref(),
                &counter,
                (content, source),
            )
        }));
        let sent = sent.buffer_unordered(at_once);
        sent.try_collect::<()>().await?;
    }
    Ok(())
}

async fn send_one(
    remote: &Remote,
    opened: &Opened,
    journals: Option<&Journals>,
    counter: &Counter<'_>,
    (content, source): (String, SourceFile),
) -> Result<(), DataError> {
    let path = object::path(remote, &content);
    let (file, expected) = (source.clone(), content);
    let open = move || -> io::Result<Box<dyn Read + Send>> {
        let opened = file.open().map_err(io::Error::other)?;
        Ok(Box::new(Verified {
            file: opened,
            source: file.clone(),
            expected: expected.clone(),
            left: file.size(),
            hash: Sha256::new(),
        }))
    };
    let counted = AtomicU64::new(0);
    let report = |sent: Sent| {
        let before = counted.swap(sent.bytes, Ordering::Relaxed);
        counter.add(sent.bytes.saturating_sub(before));
    };
    let sent = upload(
        opened.place(&path),
        open,
        source.size(),
        || journals?.open(path.as_ref()),
        &report,
        pending(),
    );
    sent.await.map_err(|error| match error {
        UploadError::Read(error) => match error.downcast::<DataError>() {
            Ok(error) => error,
            Err(_) => source.changed(),
        },
        UploadError::Store(error) => remote.refusal(&error).into(),
        UploadError::Lost(error) => remote.lost(&error).into(),
        UploadError::Stopped => DataError::Stopped,
    })
}

/// A reader of a file that checks at the end that the file has the expected content.
struct Verified {
    file: File,
    source: SourceFile,
    expected: String,
    left: u64,
    hash: Sha256,
}

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let count = self.file.read(&mut buffer[..most])?;
        self.hash.update(&buffer[..count]);
        self.left -= count as u64;
        let is_short = count == 0 && most > 0;
        let is_complete = self.left == 0 && count > 0;
        if is_short || is_complete && hexadecimal(&self.hash.clone().finalize()) != self.expected {
            return Err(io::Error::other(self.source.changed()));
        }
        Ok(count)
    }
}

/// Signs URLs to download objects.
async fn sign(
    remote: &Remote,
    opened: &Opened,
    paths: &[Path],
    options: &DataOptions,
) -> Result<Vec<Access>, DataError> {
    let validity = options.validity.min(LONGEST);
    let urls = remote.sign_all(opened, paths, validity).await?;
    let access = urls.into_iter().map(|url| Access { url, etag: None });
    Ok(access.collect())
}

/// Makes a list available to the pods.
///
/// # Errors
/// The same as [`deliver`].
pub async fn put_list(
    list: &AccessList,
    store: Option<&Remote>,
    options: &DataOptions,
) -> Result<PodList, DataError> {
    // The signer may have permission to write, but not to read.
    let manifest = super::Manifest::parse(&list.manifest).unwrap_or_default();
    let first = manifest.files.iter().find(|file| file.size > 0);
    if let Some((file, access)) = first.and_then(|file| Some((file, list.urls.get(&file.content)?)))
    {
        let readable = check(&access.url, file.size).await;
        readable.map_err(|error| DataError::download(&file.path, error))?;
    }
    let packed = list.pack()?;
    if packed.bytes.len() <= INLINE_LIMIT {
        return Ok(PodList::Inline(STANDARD.encode(&packed.bytes)));
    }
    let remote = store.ok_or(DataError::NoStore {
        files: manifest.files.len() as u64,
    })?;
    let opened = remote.open(Effort::Much, &options.settings)?;
    let path = object::list_path(remote, &packed.sha256);
    let size = packed.bytes.len() as u64;
    let put = opened.objects.put(&path, packed.bytes.into()).await;
    put.map_err(|error| remote.refusal(&error))?;
    let validity = options.validity.min(LONGEST);
    Ok(PodList::Object {
        url: remote.sign(&opened, &path, validity).await?,
        size,
        sha256: packed.sha256,
    })
}
