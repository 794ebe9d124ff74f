//! Runs requests concurrently.

use futures::{StreamExt as _, stream};
use longshore_client::Error;

/// The maximum number of concurrent requests for one object.
const CONCURRENCY: usize = 16;

/// Runs all requests with limited concurrency, even if some fail. Returns the first
/// error.
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
