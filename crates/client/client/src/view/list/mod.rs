//! Lists: complete, or page by page, with the next page requested ahead.

mod pages;

use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, de::IgnoredAny};

use super::View;
use crate::{error::Result, item::Item, kind::Object, list::List, transport::Call};
use pages::Pages;
pub(crate) use pages::read_consistent;

/// The number of items per page of a complete list.
const PAGE: u32 = 500;

/// The reaction to the expiry (410) of a paginated list's snapshot, which happens after a long
/// pause between two pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expired {
    /// Continue with a newer snapshot, if the server offers one, as all do since Kubernetes
    /// 1.11. No object is returned twice, and no object is missed that existed during the
    /// whole time. Changes in the meantime may be seen in part: the list is not a
    /// consistent snapshot.
    #[default]
    Resume,
    /// End the stream with the error ([`Error::is_expired`](crate::Error::is_expired)). The items
    /// before it are a consistent snapshot.
    Fail,
}

/// Options for the pagination of a list.
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
    /// The number of items per page; 0 leaves it to the server, which then returns all
    /// items at once.
    pub limit: u32,
    /// The reaction to an expired snapshot between two pages.
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
    /// Returns the same view with lists that may come from the server's cache
    /// (`resourceVersion=0`). They cost the server less, and may be older than the latest
    /// state, or than a state that was read before.
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

    /// Reads the latest state of all objects as a consistent snapshot: page by page, with
    /// the next page requested ahead, or in one response if the snapshot expires before the
    /// last page.
    ///
    /// # Errors
    /// The server rejects the request; [`Error::Decode`](crate::Error::Decode) if the
    /// response is malformed. A malformed item is an error only when its malformed part is
    /// read.
    pub async fn list(&self) -> Result<List<K>> {
        // Servers do not paginate lists from their cache.
        let limit = if self.cached { 0 } else { PAGE };
        // Boxed, so that the futures of callers stay small.
        let whole = read_consistent(self.clone(), limit, |item| item);
        let (items, version) = Box::pin(whole).await?;
        Ok(List { items, version })
    }

    /// Returns the number of objects. Without selectors, the server returns the number with
    /// at most one object; with selectors, all objects are read.
    ///
    /// # Errors
    /// The same as [`View::list`].
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

    /// Returns the current resource version of the collection, without its objects.
    pub(crate) async fn version(&self) -> Result<String> {
        let call = self.selection()?.with("limit", "1");
        let body = self.cluster().bytes(&call).await?;
        Ok(longshore_snapshots::list(&body, &call.response_name())?.version)
    }

    /// Reads all objects page by page, with the next page requested ahead. See
    /// [`Expired::Resume`] for the behaviour after a long pause.
    ///
    /// An error ends the stream.
    pub fn stream(&self) -> impl Stream<Item = Result<Item<K>>> + Send + 'static + use<K> {
        self.stream_by(Paging::default())
    }

    /// Like [`View::stream`], with another page size, or with an error for an expired snapshot.
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
