//! Watches: changes as they happen, over as many connections as it takes.

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
    data::Snapshot,
    error::{Error, Result},
    item::Item,
    kind::Object,
    list::List,
    transport::within,
    view::View,
};
pub use event::WatchEvent;
pub(crate) use fill::{Filled, Keep, fill};
pub(crate) use session::{Session, Step};

/// Changes to the objects of a view, in order, none twice and none missed.
///
/// It does not end by itself: connections that end or break are made anew
/// from the last version seen, and when the server has forgotten that, there
/// is a [`WatchEvent::Resync`]. It ends after an error that trying again
/// cannot mend, such as a missing permission, and that error is reported.
///
/// Also a `Stream` of results. Dropping it frees the connection.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::{Error, WatchEvent};
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let list = maps.list().await?;
/// maps.create(&serde_json::json!({"metadata": {"name": "a"}})).await?;
///
/// // From the list on, so that nothing is missed between the two.
/// let mut watch = maps.watch_since(&list.version).await?;
/// let event = watch.next(Some(Duration::from_secs(20))).await?;
/// assert!(matches!(event, WatchEvent::Added(map) if map.name() == "a"));
/// // What has not come yet may still come.
/// assert!(watch.next(Some(Duration::ZERO)).await.unwrap_err().is_timeout());
/// watch.close();
/// assert!(matches!(watch.next(None).await, Err(Error::Closed)));
/// # Ok(()) });
/// ```
pub struct Watch<K: Object> {
    events: Option<BoxStream<'static, Result<WatchEvent<K>>>>,
    what: String,
}

/// The next event, with texts of its own: an item that is kept must not keep
/// the connection's buffer.
async fn next<K: Object>(session: &mut Session<K>) -> Result<WatchEvent<K>> {
    let step = session.step().await?;
    let item = |snapshot: Snapshot| session.view().wrap(Arc::new(snapshot.own()));
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

    /// The next change. `None` waits for ever; zero does not wait, it takes
    /// what has come.
    /// May be given up and called again; no event is lost.
    ///
    /// # Errors
    /// [`Error::Timeout`] when the time runs out: the watch goes on.
    /// [`Error::Closed`] once it has ended.
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

    /// Ends the watch and frees its connection.
    pub fn close(&mut self) {
        self.events = None;
    }
}

impl<K: Object> View<K> {
    /// Changes from now on.
    ///
    /// # Errors
    /// As the server refuses, or does not answer, at the first connection.
    pub async fn watch(&self) -> Result<Watch<K>> {
        let version = self.version().await?;
        self.watch_since(&version).await
    }

    /// Changes after a version: of a [`List`], or of an item.
    ///
    /// # Errors
    /// As [`View::watch`]. A version that the server no longer knows is no
    /// error: the first event is then a `Resync`.
    pub async fn watch_since(&self, version: &str) -> Result<Watch<K>> {
        Watch::open(self.clone(), version.to_owned()).await
    }
}

impl<K: Object> Item<K> {
    /// Changes to this object after this version.
    ///
    /// # Errors
    /// As [`View::watch_since`].
    pub async fn watch(&self) -> Result<Watch<K>> {
        let only = FieldSelector::everything().with("metadata.name", self.name());
        self.view().fields(only).watch_since(self.version()).await
    }
}

impl<K: Object> Stream for Watch<K> {
    type Item = Result<WatchEvent<K>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.events {
            Some(events) => events.poll_next_unpin(cx),
            None => Poll::Ready(None),
        }
    }
}

impl<K: Object> std::fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}
