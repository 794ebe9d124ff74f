//! Listings with a timeout, because a store may send empty pages without end.

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use object_store::{Error, ObjectMeta, Result};

/// The longest time without an object.
const SILENCE: Duration = Duration::from_secs(120);

/// The objects of a listing, with an error at the end if the store sends none for a long time.
pub(crate) fn not_silent<S>(listed: S) -> impl Stream<Item = Result<ObjectMeta>> + Send
where
    S: Stream<Item = Result<ObjectMeta>> + Send + Unpin,
{
    within(listed, SILENCE)
}

fn within<S>(listed: S, silence: Duration) -> impl Stream<Item = Result<ObjectMeta>> + Send
where
    S: Stream<Item = Result<ObjectMeta>> + Send + Unpin,
{
    stream::unfold(Some(listed), move |listed| async move {
        let mut listed = listed?;
        match tokio::time::timeout(silence, listed.next()).await {
            Ok(found) => found.map(|found| (found, Some(listed))),
            Err(_) => {
                let problem = format!("it lists no object for {} s", silence.as_secs());
                let error = Error::Generic {
                    store: "listing",
                    source: problem.into(),
                };
                Some((Err(error), None))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use object_store::path::Path;

    use super::*;

    #[tokio::test]
    async fn a_listing_that_sends_nothing_is_an_error() {
        let object = ObjectMeta {
            location: Path::from("a"),
            last_modified: Default::default(),
            size: 1,
            e_tag: None,
            version: None,
        };
        let one = || stream::iter([Ok(object.clone())]);
        let found: Vec<_> = not_silent(one()).collect().await;
        assert_eq!(found.len(), 1);
        let silent = one().chain(stream::pending());
        let found: Vec<_> = within(silent.boxed(), Duration::from_millis(1))
            .collect()
            .await;
        assert_eq!(found.len(), 2);
        let problem = found[1].as_ref().unwrap_err().to_string();
        assert!(problem.contains("it lists no object"), "{problem}");
    }
}
