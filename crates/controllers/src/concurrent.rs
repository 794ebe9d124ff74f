//! Several requests at a time.

use futures::{StreamExt as _, stream};
use longshore_client::Error;

/// Requests under way at a time, for one object.
const CONCURRENCY: usize = 16;

/// Runs requests, so many at a time; all of them, whichever fail. Returns the
/// first error.
pub(crate) async fn all(
    requests: Vec<impl Future<Output = Result<(), Error>>>,
) -> Result<(), Error> {
    let results = stream::iter(requests).buffer_unordered(CONCURRENCY);
    results
        .fold(Ok(()), async |outcome: Result<(), Error>, result| {
            outcome.and(result)
        })
        .await
}
