//! Decides how a bundle travels, and sends it on its way.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use super::{
    BundleInfo, Delivery, SECRET_LIMIT, SignedUrl, Store, StoreError, blocking::unless_stopped,
    folder, send::send,
};
use crate::{
    bundle::{Bundle, Progress},
    config::RunSpec,
};

/// The longest that a signed URL can be valid, with S3 as with the others.
pub(super) const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The shortest that is asked for: a run that nobody follows may wait long for
/// a free node.
const SHORTEST: Duration = Duration::from_secs(24 * 3600);

/// How much of a bundle has been sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that have arrived.
    pub bytes: u64,
    /// Bytes of the whole bundle.
    pub total: u64,
    /// Those of the bytes that have arrived which an earlier try sent.
    pub earlier: u64,
}

/// How to deliver, beside what and where.
pub struct DeliverOptions {
    /// Settings of the object store beside the environment's and over them,
    /// named as variables: `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ACCOUNT_NAME`, ….
    pub settings: Vec<(String, String)>,
    /// How long pods can fetch by a signed URL; see [`validity`].
    pub validity: Duration,
    /// A folder in which to remember how far uploads have come: what a process
    /// sent that was killed, or that lost the store, the next one does not send
    /// again.
    pub cache: Option<PathBuf>,
    /// Called as the bundle is packed; never, when it is there already, or was packed
    /// before.
    pub packing: Arc<dyn Fn(Progress) + Send + Sync>,
    /// Called as the bundle is sent; never, when it is there already.
    pub progress: Arc<dyn Fn(Sent) + Send + Sync>,
    /// Ends when the bundle is not wanted any more: then what was sent of it is
    /// taken back, which dropping the delivery cannot do: that leaves it as a killed
    /// process does.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Default for DeliverOptions {
    fn default() -> Self {
        Self {
            settings: Vec::new(),
            validity: SHORTEST,
            cache: None,
            packing: Arc::new(|_| {}),
            progress: Arc::new(|_| {}),
            stop: Box::pin(std::future::pending()),
        }
    }
}

impl fmt::Debug for DeliverOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliverOptions")
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

/// How long the pods of a run may want its bundle: until they have started, and
/// as long as a task may be started again; at least a day, and no more than the
/// seven days that stores allow.
#[must_use]
pub fn validity(spec: &RunSpec) -> Duration {
    let again = match (spec.retries, spec.timeout) {
        (0, _) => Duration::ZERO,
        (_, Some(timeout)) => timeout,
        (_, None) => LONGEST,
    };
    spec.start_timeout
        .saturating_add(again)
        .clamp(SHORTEST, LONGEST)
}

/// Decides how a bundle travels, and uploads it where that is needed: to the
/// store when one is given, else in a Secret when it fits. A store is asked first: a
/// bundle that is there is neither packed nor read.
///
/// # Errors
/// [`StoreError`] names the store, what is wrong, and what to do.
pub async fn deliver(
    bundle: &Bundle,
    store: Option<&Store>,
    options: DeliverOptions,
) -> Result<BundleInfo, StoreError> {
    let delivery = match store {
        None => in_secret(bundle)?,
        Some(Store::Folder(root)) => {
            put(bundle, root.clone(), options).await?;
            Delivery::Folder { root: root.clone() }
        }
        Some(Store::Remote(remote)) => Delivery::Url(send(bundle, remote, options).await?),
    };
    Ok(info(bundle, delivery))
}

/// What [`deliver`] would decide, without asking or sending. Instead of a
/// signed URL there is the bundle's place in the store.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn describe(bundle: &Bundle, store: Option<&Store>) -> Result<BundleInfo, StoreError> {
    let delivery = match store {
        None => in_secret(bundle)?,
        Some(Store::Folder(root)) => Delivery::Folder { root: root.clone() },
        Some(Store::Remote(remote)) => Delivery::Url(SignedUrl::new(remote.place(&bundle.sha256))),
    };
    Ok(info(bundle, delivery))
}

fn info(bundle: &Bundle, delivery: Delivery) -> BundleInfo {
    BundleInfo {
        sha256: bundle.sha256.clone(),
        size: bundle.size,
        delivery,
    }
}

fn in_secret(bundle: &Bundle) -> Result<Delivery, StoreError> {
    if bundle.size <= SECRET_LIMIT {
        return bundle
            .bytes()
            .map(Delivery::Secret)
            .map_err(StoreError::Read);
    }
    let largest: Vec<String> = bundle
        .report
        .largest
        .iter()
        .take(3)
        .map(|(path, size)| format!("{} ({size} bytes)", path.display()))
        .collect();
    Err(StoreError::TooLarge {
        size: bundle.size,
        largest: largest.join(", "),
    })
}

async fn put(bundle: &Bundle, root: PathBuf, options: DeliverOptions) -> Result<(), StoreError> {
    let bundle = bundle.clone();
    let DeliverOptions {
        packing, progress, ..
    } = options;
    unless_stopped(options.stop, move |stop| {
        let open = || {
            bundle.make(stop, packing.as_ref())?;
            bundle.open().map_err(StoreError::Read)
        };
        let (sha256, size) = (&bundle.sha256, bundle.size);
        folder::put(&root, sha256, size, open, progress.as_ref(), stop)
    })
    .await
}

#[cfg(test)]
#[path = "deliver_tests.rs"]
mod tests;
