//! Delivers a bundle to an object store: checks whether it exists, uploads it if not, signs a
//! URL, and checks the URL like a pod would.

use std::time::{Duration, SystemTime};

use futures::future::{Either, select};
use object_store::{ObjectStoreExt, path::Path};

use super::{
    Remote, SignedUrl, StoreError,
    blocking::unless_stopped,
    download::check,
    journal::Journals,
    options::{DeliverOptions, LONGEST},
    reason::{Cause, reason},
    remote::{Effort, Opened},
    upload::{UploadError, upload},
};
use crate::bundle::Bundle;

/// The maximum time for aborting outdated uploads.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Uploads a bundle unless it exists, and returns a URL from which pods download it.
pub(super) async fn send(
    bundle: &Bundle,
    remote: &Remote,
    options: DeliverOptions,
) -> Result<SignedUrl, StoreError> {
    let mut stop = options.stop;
    let opened = remote.open(Effort::Little, &options.settings)?;
    let object = remote.object(&bundle.sha256);
    let asked = Box::pin(is_there(remote, &opened, bundle));
    let there = match select(asked, &mut stop).await {
        Either::Left((there, _)) => there?,
        Either::Right(_) => return Err(StoreError::Stopped),
    };
    let journals = options
        .cache
        .map(|cache| Journals::new(cache, &opened.identity));
    if let Some(journals) = &journals {
        tidy(&opened, journals, there.then_some(&object)).await;
    }
    if !there {
        let (made, packing) = (bundle.clone(), options.packing);
        unless_stopped(
            &mut stop,
            move |stop| Ok(made.make(stop, packing.as_ref())?),
        )
        .await?;
        let retrying = remote.open(Effort::Much, &options.settings)?;
        let sent = upload(
            retrying.place(&object),
            || bundle.open(),
            bundle.size,
            || journals?.open(object.as_ref()),
            options.progress.as_ref(),
            &mut stop,
        );
        sent.await.map_err(|error| match error {
            UploadError::Read(error) => StoreError::Read(error),
            UploadError::Store(error) => remote.refusal(&error),
            UploadError::Lost(error) => remote.lost(&error),
            UploadError::Stopped => StoreError::Stopped,
        })?;
    }
    let validity = options.validity.min(LONGEST);
    let url = remote.sign(&opened, &object, validity).await?;
    // The signer may have permission to write, but not to read.
    let readable = check(&url, bundle.size).await;
    readable.map_err(|source| StoreError::Unreadable {
        store: remote.to_string(),
        source,
    })?;
    Ok(url)
}

/// Returns true if the store has an object of the bundle's address and size.
async fn is_there(remote: &Remote, opened: &Opened, bundle: &Bundle) -> Result<bool, StoreError> {
    match opened.objects.head(&remote.object(&bundle.sha256)).await {
        Ok(found) => Ok(found.size == bundle.size),
        Err(error) => match reason(&error).0 {
            Cause::NoCredentials | Cause::Unreachable | Cause::PlainHttp => {
                Err(remote.refusal(&error))
            }
            // Without permission to list, stores do not report missing objects, and the errors have
            // no message. The upload then reports the problem.
            _ => Ok(false),
        },
    }
}

/// Aborts uploads that will not be resumed: outdated uploads, and an upload of an object that
/// exists. If this fails, the store's lifecycle rules remove them.
async fn tidy(opened: &Opened, journals: &Journals, there: Option<&Path>) {
    let mut unwanted = journals.remove_outdated(SystemTime::now());
    if let Some(mut journal) = there.and_then(|object| journals.find(object.as_ref())) {
        unwanted.extend(journal.found());
        journal.remove();
    }
    let taking_back = async {
        for upload in unwanted {
            let Ok(path) = Path::parse(&upload.object) else {
                continue;
            };
            let aborted = opened.multipart.abort_multipart(&path, &upload.upload);
            if let Err(error) = aborted.await {
                let (_, problem) = reason(&error);
                tracing::debug!(%path, %problem, "an outdated upload is not aborted");
            }
        }
    };
    let _ = tokio::time::timeout(ABORT_TIMEOUT, taking_back).await;
}
