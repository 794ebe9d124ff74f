//! Fills a cache and updates it in the background.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::store::Store;
use crate::{
    error::{Error, Result},
    kind::Object,
    view::View,
    watch::{Filled, Keep, Session, Step, fill},
};
use longshore_snapshots::Snapshot;

/// Returns the current state of all objects, each with its own buffer.
pub(super) async fn first<K: Object>(view: &View<K>) -> Result<Filled> {
    let filled = fill(view, Keep::Compact).await?;
    check(&filled.snapshots)?;
    Ok(filled)
}

/// An object that cannot be parsed has no name to store it under.
fn check(snapshots: &[Arc<Snapshot>]) -> Result<()> {
    snapshots.iter().try_for_each(|one| one.check_readable())?;
    Ok(())
}

/// Follows the watch until the cache is dropped or the cluster is closed.
pub(super) async fn run<K: Object>(
    mut session: Session<K>,
    store: Arc<Store>,
    dropped: CancellationToken,
) {
    tokio::select! {
        () = dropped.cancelled() => {}
        () = keep_fresh(&mut session, &store) => {}
    }
    store.end();
}

/// The cause of the error may be temporary, for example a missing permission: list all
/// objects again.
async fn keep_fresh<K: Object>(session: &mut Session<K>, store: &Store) {
    let transport = session.view().cluster().transport.clone();
    let mut failures = 0;
    loop {
        let error = match follow(session, store, &mut failures).await {
            Err(Error::Closed) => return,
            Err(error) => error,
            Ok(never) => match never {},
        };
        let wait = transport.timing().backoff().wait(failures);
        tracing::warn!(%error, ?wait, kind = %session.view().kind().gvk, "a cache is stale");
        failures = failures.saturating_add(1);
        tokio::select! {
            () = transport.closed().cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        session.forget();
    }
}

async fn follow<K: Object>(
    session: &mut Session<K>,
    store: &Store,
    failures: &mut u32,
) -> Result<std::convert::Infallible> {
    loop {
        match session.step().await? {
            Step::Added(snapshot) | Step::Modified(snapshot) => store.upsert(snapshot.compact()),
            Step::Deleted(snapshot) => store.remove(snapshot.compact()),
            Step::Expired => {
                let (snapshots, version) = session.refill(Keep::Compact).await?;
                check(&snapshots)?;
                store.replace(snapshots, version);
            }
        }
        *failures = 0;
    }
}
