//! Lists: whole, or page by page with the next one fetched ahead.

use std::sync::Arc;

use futures::{Stream, stream};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    decode,
    error::{Error, Result},
    item::Item,
    kinds::Kind,
    transport::Call,
    view::View,
};

/// A list response: items, and the version of the collection, from which a
/// watch can go on.
#[derive(Debug, Clone)]
pub struct List<K: Kind> {
    /// The items, in the server's order.
    ///
    /// One that cannot be read does not spoil the others: it stands in its
    /// place, has its bytes but no name, and what is asked of it is an error
    /// that names the list and its position, as [`Item::check`] tells.
    pub items: Vec<Item<K>>,
    /// The collection's resourceVersion.
    pub version: String,
}

impl<K: Kind> IntoIterator for List<K> {
    type Item = Item<K>;
    type IntoIter = std::vec::IntoIter<Item<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

/// What becomes of a list over several pages when the server has forgotten
/// the snapshot it began with (410), after a long pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expired {
    /// The rest comes from a newer snapshot, if the server offers that, as all
    /// do since Kubernetes 1.11: no object comes twice, and none is missed that
    /// was there all the time. What was made, changed or deleted meanwhile may
    /// be seen in part: the list is of no one moment.
    #[default]
    Resume,
    /// The stream ends with that error ([`Error::is_gone`]): what has come is
    /// of one moment.
    Fail,
}

/// How a list is read page by page.
///
/// ```
/// use longshore_client::{Expired, Paging};
/// let mut paging = Paging::default();
/// paging.limit = 100;
/// paging.expired = Expired::Fail;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paging {
    /// How many items a page holds; 0 leaves it to the server, which then
    /// sends all at once.
    pub limit: u32,
    /// What to do when the snapshot expires between two pages.
    pub expired: Expired,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            limit: 500,
            expired: Expired::default(),
        }
    }
}

/// A page: its list, and the cursor of the next; empty at the end.
pub(crate) type Page<K> = (List<K>, String);

impl<K: Kind> View<K> {
    /// The same view, whose lists may come from the server's cache
    /// (`resourceVersion=0`): cheap for the server, and perhaps a little older
    /// than the latest state, or than what was read before.
    ///
    /// ```
    /// # async fn example(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
    /// let nodes = cluster.nodes().from_cache().list().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_cache(mut self) -> Self {
        self.cached = true;
        self
    }

    async fn page(&self, call: &Call) -> Result<Page<K>> {
        let body = self.cluster().bytes(call).await?;
        let list = decode::list(&body, &format!("the answer to {}", call.name()))?;
        let items = list
            .items
            .into_iter()
            .map(|snapshot| self.wrap(Arc::new(snapshot)))
            .collect();
        let version = list.version;
        Ok((List { items, version }, list.cursor))
    }

    fn listing(&self) -> Call {
        let call = self.selection();
        if self.cached {
            call.with("resourceVersion", "0")
        } else {
            call
        }
    }

    /// The page at a cursor; the first one at the empty cursor.
    pub(crate) async fn page_at(&self, cursor: &str, limit: u32) -> Result<Page<K>> {
        let mut call = if cursor.is_empty() {
            self.listing()
        } else {
            self.selection().with("continue", cursor)
        };
        if limit > 0 {
            call = call.with("limit", limit.to_string());
        }
        self.page(&call).await
    }

    /// Reads the latest state of all objects, in one response.
    ///
    /// # Errors
    /// As the server refuses; [`Error::Decode`] for a malformed answer. Of a
    /// malformed item only what is asked of that item is an error.
    pub async fn list(&self) -> Result<List<K>> {
        self.page(&self.listing()).await.map(|(list, _)| list)
    }

    /// The version of the collection now, without its objects.
    pub(crate) async fn version(&self) -> Result<String> {
        let call = self.selection().with("limit", "1");
        self.page(&call).await.map(|(list, _)| list.version)
    }

    /// Reads all objects page by page, the next page while this one is used;
    /// see [`Expired::Resume`] for what comes after a long pause.
    ///
    /// An error ends the stream.
    pub fn stream(&self) -> impl Stream<Item = Result<Item<K>>> + Send + 'static + use<K> {
        self.stream_by(Paging::default())
    }

    /// As [`View::stream`], with pages of another size, or for callers to whom
    /// an expired snapshot is an error.
    ///
    /// ```
    /// # async fn example(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
    /// use futures::TryStreamExt;
    /// use longshore_client::{Expired, Paging};
    ///
    /// let mut paging = Paging::default();
    /// paging.expired = Expired::Fail;
    /// let mut pods = std::pin::pin!(cluster.pods().stream_by(paging));
    /// while let Some(pod) = pods.try_next().await? {
    ///     println!("{}", pod.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream_by(
        &self,
        paging: Paging,
    ) -> impl Stream<Item = Result<Item<K>>> + Send + 'static + use<K> {
        let first = ahead(self.clone(), String::new(), paging);
        let pages = stream::unfold(Some((self.clone(), first)), move |state| async move {
            let (view, next) = state?;
            // A task that is gone went with its runtime.
            match next.await.unwrap_or(Err(Error::Closed)) {
                Err(error) => Some((vec![Err(error)], None)),
                Ok((list, cursor)) => {
                    let items = list.items.into_iter().map(Ok).collect();
                    let rest =
                        (!cursor.is_empty()).then(|| (view.clone(), ahead(view, cursor, paging)));
                    Some((items, rest))
                }
            }
        });
        futures::StreamExt::flat_map(pages, stream::iter)
    }
}

/// Begins to read a page; dropping the handle gives it up.
pub(crate) fn ahead<K: Kind>(
    view: View<K>,
    cursor: String,
    paging: Paging,
) -> AbortOnDropHandle<Result<Page<K>>> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        match view.page_at(&cursor, paging.limit).await {
            Err(error) if error.is_gone() && paging.expired == Expired::Resume => {
                match offered(&error).filter(|offered| *offered != cursor) {
                    Some(offered) => view.page_at(offered, paging.limit).await,
                    None => Err(error),
                }
            }
            outcome => outcome,
        }
    }))
}

/// The cursor into the newest snapshot that a refusal may hold.
fn offered(error: &Error) -> Option<&str> {
    let cursor = error.status()?.metadata.get("continue")?.as_str()?;
    (!cursor.is_empty()).then_some(cursor)
}
