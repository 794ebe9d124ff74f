//! Lists: whole, or page by page with the next one fetched ahead.

use std::sync::Arc;

use futures::{Stream, stream};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    answer, decode,
    error::{Error, Result},
    item::Item,
    kinds::Kind,
    transport::Call,
    view::View,
};

/// How many items a page of a whole list holds.
const PAGE: u32 = 500;

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
            limit: PAGE,
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
        let (list, next) = self.page(&call).await?;
        if !next.is_empty() && next == cursor {
            let what = answer::what(&call);
            return Err(Error::decode(what, "it leads to the same page again"));
        }
        Ok((list, next))
    }

    /// Reads the latest state of all objects, of one moment: page by page, the
    /// next while this one is read, or in one response when the server has
    /// forgotten that moment before the last page.
    ///
    /// # Errors
    /// As the server refuses; [`Error::Decode`] for a malformed answer. Of a
    /// malformed item only what is asked of that item is an error.
    pub async fn list(&self) -> Result<List<K>> {
        // Of its cache a server gives no pages.
        let limit = if self.cached { 0 } else { PAGE };
        // Boxed: callers' futures that hold this one stay shallow.
        let (items, version) = Box::pin(of_one_moment(self, limit, |item| item)).await?;
        Ok(List { items, version })
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
        let first = Next::Cursor(String::new());
        let pages = stream::unfold(Some((self.clone(), first)), move |state| async move {
            let (view, next) = state?;
            match next.page(&view, paging).await {
                Err(error) => Some((vec![Err(error)], None)),
                Ok((list, cursor)) => {
                    let items = list.items.into_iter().map(Ok).collect();
                    let next = Next::ahead(&view, cursor, paging);
                    Some((items, next.map(|next| (view, next))))
                }
            }
        });
        futures::StreamExt::flat_map(pages, stream::iter)
    }
}

/// A page that is wanted next.
enum Next<K: Kind> {
    /// Nobody has asked for it.
    Cursor(String),
    /// It is on its way; dropping the handle gives it up.
    Asked(AbortOnDropHandle<Result<Page<K>>>),
}

impl<K: Kind> Next<K> {
    /// Begins to read a page; the empty cursor is the end.
    fn ahead(view: &View<K>, cursor: String, paging: Paging) -> Option<Self> {
        let view = view.clone();
        (!cursor.is_empty()).then(|| {
            let page = async move { page_by(&view, &cursor, paging).await };
            Self::Asked(AbortOnDropHandle::new(tokio::spawn(page)))
        })
    }

    async fn page(self, view: &View<K>, paging: Paging) -> Result<Page<K>> {
        match self {
            Self::Cursor(cursor) => page_by(view, &cursor, paging).await,
            // A task that is gone went with its runtime.
            Self::Asked(page) => page.await.unwrap_or(Err(Error::Closed)),
        }
    }
}

async fn page_by<K: Kind>(view: &View<K>, cursor: &str, paging: Paging) -> Result<Page<K>> {
    match view.page_at(cursor, paging.limit).await {
        Err(error) if error.is_gone() && paging.expired == Expired::Resume => {
            match offered(&error).filter(|offered| *offered != cursor) {
                Some(offered) => view.page_at(offered, paging.limit).await,
                None => Err(error),
            }
        }
        outcome => outcome,
    }
}

/// What is kept of all objects of one moment, and its version: in pages of
/// `limit`, or at once when that moment is forgotten before the last of them.
pub(crate) async fn of_one_moment<K: Kind, T>(
    view: &View<K>,
    limit: u32,
    keep: impl Fn(Item<K>) -> T,
) -> Result<(Vec<T>, String)> {
    let expired = Expired::Fail;
    let mut paging = Paging { limit, expired };
    let mut kept = Vec::new();
    let mut next = Next::Cursor(String::new());
    loop {
        let (list, cursor) = match next.page(view, paging).await {
            // Pages of several moments would be no state to go on from.
            Err(error) if error.is_gone() && paging.limit > 0 => {
                paging.limit = 0;
                kept.clear();
                next = Next::Cursor(String::new());
                continue;
            }
            outcome => outcome?,
        };
        let following = Next::ahead(view, cursor, paging);
        kept.extend(list.items.into_iter().map(&keep));
        match following {
            Some(following) => next = following,
            None => return Ok((kept, list.version)),
        }
    }
}

/// The cursor into the newest snapshot that a refusal may hold.
fn offered(error: &Error) -> Option<&str> {
    let cursor = error.status()?.metadata.get("continue")?.as_str()?;
    (!cursor.is_empty()).then_some(cursor)
}
