//! Decides how to deliver a bundle, and uploads it.

use std::path::PathBuf;

use super::{
    BundleInfo, Delivery, SECRET_LIMIT, SignedUrl, Store, StoreError, blocking::unless_stopped,
    folder, options::DeliverOptions, send::send,
};
use crate::bundle::Bundle;

/// Decides how to deliver a bundle, and uploads it if necessary: to the store if there is one,
/// otherwise in a Secret if it fits. Checks the store first: an existing bundle is neither
/// packed nor read.
///
/// # Errors
/// [`StoreError`] contains the store, the problem and the remedy.
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

/// The decision of [`deliver`], without any requests. Contains the bundle's location in the
/// store instead of a signed URL.
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
mod tests;
