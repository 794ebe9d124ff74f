//! Watches: changes as they happen, over any number of connections.

mod event;
mod fill;
mod request;
mod session;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use longshore_model::FieldSelector;

use crate::{
    error::{Error, Result},
    item::Item,
    kind::Object,
    list::List,
    transport::within,
    view::View,
};
pub use event::WatchEvent;
pub(crate) use fill::{Filled, Keep, fill};
use longshore_snapshots::Snapshot;
pub(crate) use session::{Session, Step};

/// Changes to the objects of a view, in order, without duplicates or gaps.
///
/// A watch does not end by itself. After the end or loss of a connection, it reconnects from the
/// last resource version. If that version has expired, the next event is [`WatchEvent::Resync`]. It
/// ends after an error that cannot be solved by a retry, such as a missing permission, and returns
/// this error.
///
/// Also a `Stream` of results. Dropping it closes the connection.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::{Error, WatchEvent};
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let list = maps.list().await?;
/// maps.create(&serde_json::json!({"metadata": {"name": "a"}})).await?;
///
/// // Starts at the list, so that no change between the two is missed.
/// let mut watch = maps.watch_since(&list.version).await?;
/// let event = watch.next(Some(Duration::from_secs(20))).await?;
/// assert!(matches!(event, WatchEvent::Added(map) if map.name() == "a"));
/// // An event may still arrive.
/// assert!(watch.next(Some(Duration::ZERO)).await.unwrap_err().is_timeout());
/// watch.close();
/// assert!(matches!(watch.next(None).await, Err(Error::Closed)));
/// # Ok(()) });
/// ```
pub struct Watch<K: Object> {
    events: Option<BoxStream<'static, Result<WatchEvent<K>>>>,
    what: String,
}

/// Returns the next event with its own copies of texts: an item that is kept must not keep the
/// buffer of the connection.
async fn next<K: Object>(session: &mut Session<K>) -> Result<WatchEvent<K>> {
    let step = session.step().await?;
    let item = |snapshot: Snapshot| session.view().wrap(Arc::new(snapshot.detached()));
    Ok(match step {
        Step::Added(snapshot) => WatchEvent::Added(item(snapshot)),
        Step::Modified(snapshot) => WatchEvent::Modified(item(snapshot)),
        Step::Deleted(snapshot) => WatchEvent::Deleted(item(snapshot)),
        Step::Expired => {
            let (snapshots, version) = session.refill(Keep::Whole).await?;
            let wrap = |snapshot| session.view().wrap(snapshot);
            let items = snapshots.into_iter().map(wrap).collect();
            WatchEvent::Resync(List { items, version })
        }
    })
}

impl<K: Object> Watch<K> {
    async fn open(view: View<K>, version: String) -> Result<Self> {
        let what = format!("waiting for a change of {}", view.kind().qualified());
        let session = Session::open(view, version).await?;
        let events = futures::stream::unfold(Some(session), |session| async {
            let mut session = session?;
            match next(&mut session).await {
                Ok(event) => Some((Ok(event), Some(session))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Self {
            events: Some(events.boxed()),
            what,
        })
    }

    /// Returns the next change. `None` waits without limit; a timeout of zero returns only
    /// a change that has already arrived. Cancel safe: no event is lost.
    ///
    /// # Errors
    /// [`Error::Timeout`] after the timeout; the watch continues. [`Error::Closed`] if the
    /// watch has ended.
    pub async fn next(&mut self, timeout: Option<Duration>) -> Result<WatchEvent<K>> {
        let Some(events) = &mut self.events else {
            return Err(Error::Closed);
        };
        let outcome = match timeout {
            None => events.next().await,
            Some(after) => match within(after, events.next()).await {
                Some(outcome) => outcome,
                None => {
                    let waiting_for = self.what.clone();
                    return Err(Error::Timeout {
                        waiting_for,
                        after,
                        last: String::new(),
                    });
                }
            },
        };
        outcome.unwrap_or_else(|| {
            self.events = None;
            Err(Error::Closed)
        })
    }

    /// Ends the watch and closes its connection.
    pub fn close(&mut self) {
        self.events = None;
    }
}

impl<K: Object> View<K> {
    /// Watches changes from now on.
    ///
    /// # Errors
    /// The server rejects the first request, or does not respond.
    pub async fn watch(&self) -> Result<Watch<K>> {
        let version = self.version().await?;
        self.watch_since(&version).await
    }

    /// Watches changes after a resource version, of a [`List`] or an item.
    ///
    /// # Errors
    /// The same as [`View::watch`]. A version that the server no longer has is not an error: the
    /// first event is then a `Resync`.
    pub async fn watch_since(&self, version: &str) -> Result<Watch<K>> {
        Watch::open(self.clone(), version.to_owned()).await
    }
}

impl<K: Object> Item<K> {
    /// Watches changes to this object after this version.
    ///
    /// # Errors
    /// The same as [`View::watch_since`].
    pub async fn watch(&self) -> Result<Watch<K>> {
        let only = FieldSelector::everything().with("metadata.name", self.name());
        self.view().fields(only).watch_since(self.version()).await
    }
}

impl<K: Object> Stream for Watch<K> {
    type Item = Result<WatchEvent<K>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(events) = &mut self.events else {
            return Poll::Ready(None);
        };
        let next = events.poll_next_unpin(cx);
        if matches!(next, Poll::Ready(None)) {
            self.events = None;
        }
        next
    }
}

impl<K: Object> std::fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}
