//! A bundle that was already delivered to a store for another run.

use object_store::ObjectStoreExt;

use super::{
    BundleInfo, Delivery, Store, StoreError, address,
    download::check,
    options::{DeliverOptions, LONGEST},
    remote::Effort,
};

/// Finds a bundle that was delivered before, and prepares it for download.
///
/// # Errors
/// [`StoreError::Gone`] if the store no longer contains it; otherwise, the same as
/// [`deliver`](super::deliver()).
pub async fn again(
    sha256: &str,
    store: &Store,
    options: DeliverOptions,
) -> Result<BundleInfo, StoreError> {
    let (size, delivery) = match store {
        Store::Folder(root) => {
            let path = root.join(address(sha256));
            let found = std::fs::metadata(&path)
                .ok()
                .filter(|found| found.is_file());
            let found = found.ok_or_else(|| StoreError::Gone {
                place: path.display().to_string(),
            })?;
            (found.len(), Delivery::Folder { root: root.clone() })
        }
        Store::Remote(remote) => {
            let opened = remote.open(Effort::Little, &options.settings)?;
            let object = remote.object(sha256);
            let found = opened.objects.head(&object).await;
            let found = found.map_err(|error| match error {
                object_store::Error::NotFound { .. } => StoreError::Gone {
                    place: remote.place(sha256),
                },
                error => remote.refusal(&error),
            })?;
            let validity = options.validity.min(LONGEST);
            let url = remote.sign(&opened, &object, validity).await?;
            let readable = check(&url, found.size).await;
            readable.map_err(|source| StoreError::Unreadable {
                store: remote.to_string(),
                source,
            })?;
            (found.size, Delivery::Url(url))
        }
    };
    Ok(BundleInfo {
        sha256: sha256.to_owned(),
        size,
        delivery,
    })
}
