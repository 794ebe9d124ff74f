//! Writes the objects of a resource again.

use longshore_client::{Error, Item, Patch, View, kinds::Any};
use longshore_model::StatusReason;
use serde_json::json;

use crate::refusal::message;

/// The field manager of the writes, as in Kubernetes.
const MANAGER: &str = "storage-version-migrator-controller";

/// The result of writing objects.
pub(super) struct Written {
    /// The number of objects that were not written.
    pub(super) left: usize,
    /// The number of all objects of the resource.
    pub(super) all: usize,
    pub(super) end: End,
}

pub(super) enum End {
    Done,
    /// The migration is retried after this error.
    Retry(Error),
    /// The migration fails with this message.
    Fail(String),
}

/// Writes the objects that have not changed since a resource version.
pub(super) async fn write(
    view: &View<Any>,
    objects: &[Item<Any>],
    until: u64,
) -> Result<Written, Error> {
    let view = view.clone().field_manager(MANAGER);
    let is_old = |item: &&Item<Any>| {
        item.version()
            .parse()
            .is_ok_and(|version: u64| version <= until)
    };
    let old: Vec<_> = objects.iter().filter(is_old).collect();
    let mut written = Written {
        left: old.len(),
        all: objects.len(),
        end: End::Done,
    };
    for item in old {
        if let Err(error) = write_one(&view, item).await? {
            match error.is_conflict() || error.is_not_found() {
                // Another client has written or deleted the object.
                true => {}
                false => {
                    written.end = match is_temporary(&error) {
                        true => End::Retry(error),
                        false => End::Fail(message(&error)),
                    };
                    return Ok(written);
                }
            }
        }
        written.left = written.left.saturating_sub(1);
    }
    Ok(written)
}

/// Patches an object without changing it.
async fn write_one(view: &View<Any>, item: &Item<Any>) -> Result<Result<(), Error>, Error> {
    let kind = view.kind();
    let patch = Patch::merge(json!({
        "apiVersion": kind.api_version(),
        "kind": kind.gvk.kind,
        "metadata": {"resourceVersion": item.version()},
    }));
    let view = match item.namespace() {
        Some(namespace) => view.clone().in_namespace(namespace)?,
        None => view.clone(),
    };
    Ok(view.patch(item.name(), &patch).await.map(drop))
}

/// Returns true if a request may succeed later.
fn is_temporary(error: &Error) -> bool {
    error.is_unreachable()
        // The server lacks space to store the object.
        || error.code() == Some(507)
        || error.reason().is_some_and(|reason| {
            matches!(
                reason,
                StatusReason::ServerTimeout
                    | StatusReason::TooManyRequests
                    | StatusReason::ServiceUnavailable
                    | StatusReason::InternalError
                    | StatusReason::Timeout
            )
        })
}
