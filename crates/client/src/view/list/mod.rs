//! Lists: whole, or page by page with the next one fetched ahead.

mod pages;

use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, de::IgnoredAny};

use super::View;
use crate::{data, error::Result, item::Item, kind::Object, list::List, transport::Call};
use pages::Pages;
pub(crate) use pages::read_consistent;

/// How many items a page of a whole list holds.
const PAGE: u32 = 500;

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
    /// The stream ends with that error ([`Error::is_gone`](crate::Error::is_gone)): the items up to it
    /// are a consistent snapshot.
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

impl<K: Object> View<K> {
    /// The same view, whose lists may come from the server's cache
    /// (`resourceVersion=0`): cheap for the server, and perhaps a little older
    /// than the latest state, or than what was read before.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let nodes = cluster.nodes().from_cache().list().await?;
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn from_cache(mut self) -> Self {
        self.cached = true;
        self
    }

    fn listing(&self) -> Result<Call> {
        let call = self.selection()?;
        Ok(if self.cached {
            call.with("resourceVersion", "0")
        } else {
            call
        })
    }

    /// Reads the latest state of all objects as a consistent snapshot: page by page, the
    /// next while this one is read, or in one response if the snapshot expires before
    /// the last page.
    ///
    /// # Errors
    /// As the server refuses; [`Error::Decode`](crate::Error::Decode) for a malformed answer. Of a
    /// malformed item only what is asked of that item is an error.
    pub async fn list(&self) -> Result<List<K>> {
        // Of its cache a server gives no pages.
        let limit = if self.cached { 0 } else { PAGE };
        // Boxed: callers' futures that hold this one stay shallow.
        let whole = read_consistent(self.clone(), limit, |item| item);
        let (items, version) = Box::pin(whole).await?;
        Ok(List { items, version })
    }

    /// How many objects there are now. Of a view without selectors the server sends the
    /// number, and one object at most; of others all are read.
    ///
    /// # Errors
    /// As [`View::list`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// assert_eq!(cluster.namespaces().count().await?, 4);
    /// let one = cluster.namespaces().filter("kubernetes.io/metadata.name=default")?;
    /// assert_eq!(one.count().await?, 1);
    /// # Ok(()) });
    /// ```
    pub async fn count(&self) -> Result<usize> {
        #[derive(Deserialize)]
        struct Counted {
            #[serde(default)]
            metadata: Rest,
            items: Option<Vec<IgnoredAny>>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Rest {
            r#continue: String,
            remaining_item_count: Option<usize>,
        }
        let call = self.selection()?.with("limit", "1");
        let counted: Counted = self.cluster().json(&call).await?;
        let here = counted.items.map_or(0, |items| items.len());
        match counted.metadata {
            rest if rest.r#continue.is_empty() => Ok(here),
            Rest {
                remaining_item_count: Some(remaining),
                ..
            } => Ok(here.saturating_add(remaining)),
            _ => {
                let all = read_consistent(self.clone(), PAGE, |_| ());
                Ok(Box::pin(all).await?.0.len())
            }
        }
    }

    /// The version of the collection now, without its objects.
    pub(crate) async fn version(&self) -> Result<String> {
        let call = self.selection()?.with("limit", "1");
        let body = self.cluster().bytes(&call).await?;
        data::list(&body, &call.response_name()).map(|list| list.version)
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
    /// # longshore_embedded::example(async |cluster| {
    /// use futures::TryStreamExt;
    /// use longshore_client::{Expired, Paging};
    ///
    /// let mut paging = Paging::default();
    /// paging.expired = Expired::Fail;
    /// let mut pods = std::pin::pin!(cluster.pods().stream_by(paging));
    /// while let Some(pod) = pods.try_next().await? {
    ///     println!("{}", pod.name());
    /// }
    /// # Ok(()) });
    /// ```
    pub fn stream_by(
        &self,
        paging: Paging,
    ) -> impl Stream<Item = Result<Item<K>>> + Send + 'static + use<K> {
        let items = |page: Result<List<K>>| match page {
            Err(error) => vec![Err(error)],
            Ok(list) => list.items.into_iter().map(Ok).collect(),
        };
        Pages::new(self.clone(), paging)
            .stream()
            .flat_map(move |page| stream::iter(items(page)))
    }
}
