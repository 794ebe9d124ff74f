//! The pages of a list. The next page is requested while the current one is received.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures::{Stream, future::BoxFuture, stream};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::{super::View, Expired, Paging};
use crate::{
    error::{Error, Result},
    item::Item,
    kind::Object,
    list::List,
};

/// The number of bytes at the beginning of a page that are searched for the cursor of the next
/// page, before the whole page has arrived.
const HEAD: usize = 64 * 1024;

/// The maximum size of the objects of all pages of a list that is kept in memory, in bytes. A
/// server whose list has no last page must not fill the memory.
const MAX_LIST_BYTES: usize = 4 << 30;

/// The number of bytes that a page counts in addition to its objects, so that the number of pages
/// is also limited.
const PAGE_BYTES: usize = 1024;

/// The maximum number of pages without objects in a row. API servers send none.
const MAX_EMPTY_PAGES: usize = 100;

/// Options for reading the pages of a view.
#[derive(Clone)]
pub(super) struct Pages<K: Object> {
    view: View<K>,
    paging: Paging,
    /// The size of the latest page in bytes. The next one will have about this size.
    latest: Arc<AtomicUsize>,
    /// The number of pages without objects in a row.
    empty: Arc<AtomicUsize>,
}

/// The next page.
enum Next<K: Object> {
    /// Not requested yet.
    Cursor(String),
    /// Requested. Dropping the handle cancels the request. The cursor of the page after it
    /// arrives before its items.
    Asked(
        AbortOnDropHandle<Result<List<K>>>,
        oneshot::Receiver<String>,
    ),
}

/// Passes on the cursor of the next page, once.
struct Ahead(Option<oneshot::Sender<String>>);

impl Ahead {
    fn new() -> (Self, oneshot::Receiver<String>) {
        let (sender, next) = oneshot::channel();
        (Self(Some(sender)), next)
    }

    fn send(&mut self, cursor: Option<String>) {
        if let Some(cursor) = cursor
            && let Some(sender) = self.0.take()
        {
            let _ = sender.send(cursor);
        }
    }
}

impl<K: Object> Pages<K> {
    pub(super) fn new(view: View<K>, paging: Paging) -> Self {
        Self {
            view,
            paging,
            latest: Arc::default(),
            empty: Arc::default(),
        }
    }

    /// Returns all pages. An error ends the stream.
    pub(super) fn stream(self) -> impl Stream<Item = Result<List<K>>> + Send + 'static {
        let first = Some((self, Next::Cursor(String::new())));
        stream::unfold(first, |state| async {
            let (pages, next) = state?;
            let (page, next) = pages.read(next).await;
            let rest = next.filter(|_| page.is_ok()).map(|next| (pages, next));
            Some((page, rest))
        })
    }

    /// Returns a page. The page after it is requested while this one is still received.
    async fn read(&self, next: Next<K>) -> (Result<List<K>>, Option<Next<K>>) {
        let (page, cursor_after): (BoxFuture<'_, _>, _) = match next {
            Next::Cursor(cursor) => {
                let (ahead, cursor_after) = Ahead::new();
                let page = async move { self.page(&cursor, ahead).await };
                (Box::pin(page), cursor_after)
            }
            Next::Asked(page, cursor_after) => {
                // The task ended with its runtime.
                let page = async { page.await.unwrap_or(Err(Error::Closed)) };
                (Box::pin(page), cursor_after)
            }
        };
        let next = async { self.ask(cursor_after.await.unwrap_or_default()) };
        futures::join!(page, next)
    }

    /// Starts to read a page. An empty cursor is the end.
    fn ask(&self, cursor: String) -> Option<Next<K>> {
        let pages = self.clone();
        (!cursor.is_empty()).then(|| {
            let (ahead, cursor_after) = Ahead::new();
            let page = async move { pages.page(&cursor, ahead).await };
            Next::Asked(AbortOnDropHandle::new(tokio::spawn(page)), cursor_after)
        })
    }

    /// Reads the page at a cursor. If its snapshot has expired and the server offers a newer
    /// one, reads the page of that.
    async fn page(&self, cursor: &str, mut ahead: Ahead) -> Result<List<K>> {
        match self.page_at(cursor, &mut ahead).await {
            Err(error) if error.is_expired() && self.paging.expired == Expired::Resume => {
                match offered(&error).filter(|offered| *offered != cursor) {
                    Some(offered) => self.page_at(offered, &mut ahead).await,
                    None => Err(error),
                }
            }
            outcome => outcome,
        }
    }

    /// Reads the page at a cursor; an empty cursor is the first page. The cursor of the
    /// next page is passed on as soon as it has arrived, before the items.
    async fn page_at(&self, cursor: &str, ahead: &mut Ahead) -> Result<List<K>> {
        let view = &self.view;
        let mut call = if cursor.is_empty() {
            view.listing()?
        } else {
            view.selection()?.with("continue", cursor)
        };
        if self.paging.limit > 0 {
            call = call.with("limit", self.paging.limit.to_string());
        }
        let look = |begin: &[u8]| {
            let next = longshore_snapshots::cursor_ahead(begin);
            let more = next.is_none() && begin.len() < HEAD;
            ahead.send(next.filter(|next| next != cursor));
            more
        };
        let latest = self.latest.load(Relaxed);
        let expected = latest + latest / 16;
        let body = view.cluster().bytes_with(&call, expected, look).await?;
        self.latest.store(body.len(), Relaxed);
        let what = call.response_name();
        let list = longshore_snapshots::list(&body, &what)?;
        if !list.cursor.is_empty() && list.cursor == cursor {
            return Err(Error::decode(what, "it leads to the same page again"));
        }
        let empty = match list.items.is_empty() {
            true => self.empty.fetch_add(1, Relaxed),
            false => self.empty.swap(0, Relaxed),
        };
        if list.items.is_empty() && empty >= MAX_EMPTY_PAGES {
            let problem = format!("more than {MAX_EMPTY_PAGES} pages in a row have no objects");
            return Err(Error::decode(what, problem));
        }
        ahead.send(Some(list.cursor));
        let wrapped = list.items.into_iter().map(Arc::new);
        Ok(List {
            items: wrapped.map(|snapshot| view.wrap(snapshot)).collect(),
            version: list.version,
        })
    }
}

/// The cursor into the newest snapshot that a refusal may hold.
fn offered(error: &Error) -> Option<&str> {
    let cursor = error.status()?.metadata.get("continue")?.as_str()?;
    (!cursor.is_empty()).then_some(cursor)
}

/// Refuses a list of a kind that is too large to be kept in memory.
fn check_size(bytes: usize, kind: impl FnOnce() -> String) -> Result<()> {
    if bytes <= MAX_LIST_BYTES {
        return Ok(());
    }
    let problem = format!(
        "it is larger than {} GiB: select fewer objects, by namespace or labels",
        MAX_LIST_BYTES >> 30
    );
    Err(Error::decode(format!("the list of {}", kind()), problem))
}

/// Reads a consistent snapshot of all objects, maps each object with `keep`, and returns
/// the resource version: in pages of `limit`, or in one response if the snapshot expires
/// before the last page.
pub(crate) async fn read_consistent<K: Object, T>(
    view: View<K>,
    limit: u32,
    keep: impl Fn(Item<K>) -> T,
) -> Result<(Vec<T>, String)> {
    let expired = Expired::Fail;
    let mut pages = Pages::new(view, Paging { limit, expired });
    let (mut kept, mut next) = (Vec::new(), Next::Cursor(String::new()));
    let mut bytes = 0;
    loop {
        let (page, following) = pages.read(next).await;
        let list = match page {
            // Pages of several snapshots would not be a consistent state to continue from.
            Err(error) if error.is_expired() && pages.paging.limit > 0 => {
                pages.paging.limit = 0;
                kept.clear();
                bytes = 0;
                next = Next::Cursor(String::new());
                continue;
            }
            outcome => outcome?,
        };
        let sizes = list.items.iter().map(|item| item.bytes().len());
        bytes += PAGE_BYTES + sizes.sum::<usize>();
        check_size(bytes, || pages.view.kind().qualified())?;
        kept.extend(list.items.into_iter().map(&keep));
        match following {
            Some(following) => next = following,
            None => return Ok((kept, list.version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_a_last_page_ends_at_the_limit() {
        let kind = || "pods".to_owned();
        assert!(check_size(MAX_LIST_BYTES, kind).is_ok());
        let refused = check_size(MAX_LIST_BYTES + 1, kind).map_err(|error| error.to_string());
        assert_eq!(
            refused,
            Err("the list of pods cannot be read: it is larger than 4 GiB: select fewer objects, by namespace or labels".to_owned())
        );
    }
}
