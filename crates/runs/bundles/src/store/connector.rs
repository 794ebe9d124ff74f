//! The HTTP client of the crate object_store, which follows no redirects here, with two additions.
//! First, it waits as long as the store asks for; the crate itself repeats requests only after
//! short pauses, and then fails. Second, it limits responses, which the crate collects in memory.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::SystemTime,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use reqwest::{
    StatusCode,
    header::{HeaderMap, RANGE},
};

use super::{
    retry::{Pauses, jittered, retry_after},
    store_client::store_client,
    waits,
};

/// The longest sum of pauses for one request, because its signature is valid for 15 minutes.
const MOST_ASKED: std::time::Duration = std::time::Duration::from_secs(300);

/// Creates the clients.
#[derive(Debug)]
pub(super) struct RetryAfterConnector;

impl HttpConnector for RetryAfterConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(store_client(options)?);
        Ok(HttpClient::new(RetryAfter(client)))
    }
}

#[derive(Debug)]
struct RetryAfter(HttpClient);

type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for RetryAfter {
    fn call<'own, 'a>(&'own self, request: HttpRequest) -> Answer<'a>
    where
        'own: 'a,
        Self: 'a,
    {
        Box::pin(async move {
            let host = request.uri().host().unwrap_or_default().to_owned();
            let most = longest_response(request.headers());
            let mut pauses = Pauses::default();
            loop {
                let response = self.0.execute(request.clone()).await?;
                let status = response.status();
                let is_busy = matches!(
                    status,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
                );
                let asked = is_busy
                    .then(|| retry_after(response.headers(), SystemTime::now()))
                    .flatten()
                    .and_then(|asked| pauses.allow(asked, MOST_ASKED));
                let Some(wait) = asked else {
                    return Ok(response.map(|body| limited(body, most)));
                };
                let cause = format!("the store at {host} asks to wait ({})", status.as_u16());
                waits::report(&cause, wait);
                tokio::time::sleep(jittered(wait)).await;
            }
        })
    }
}

/// The maximum size of a response, in bytes. A page of a listing has up to 5,000 objects.
const LONGEST: u64 = 32 << 20;

/// Returns the maximum size of the response to a request with these headers: a requested part of an
/// object, which is streamed, or a page of a listing.
fn longest_response(headers: &HeaderMap) -> u64 {
    let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let size = range.and_then(|(begin, last)| {
        let (begin, last): (u64, u64) = (begin.parse().ok()?, last.parse().ok()?);
        last.checked_sub(begin)?.checked_add(1)
    });
    size.unwrap_or_default().max(LONGEST)
}

fn limited(body: HttpResponseBody, most: u64) -> HttpResponseBody {
    HttpResponseBody::new(Limited { body, left: most })
}

/// A response that fails when it is longer than permitted. It gives no size hint, because the crate
/// allocates the hinted size, and a store can claim any size.
struct Limited {
    body: HttpResponseBody,
    left: u64,
}

impl Body for Limited {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let size = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        let size = size.map_or(0, |data| data.len() as u64);
        Poll::Ready(match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                frame
            }
            None => Some(Err(HttpError::new(HttpErrorKind::Unknown, TooLong))),
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the response of the store is longer than a store's responses are")]
struct TooLong;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::{StreamExt as _, TryStreamExt as _};

    use super::*;

    #[test]
    fn a_part_of_an_object_may_be_as_long_as_requested() {
        let longest = |range: &str| {
            let range = [(RANGE, range.parse().unwrap())];
            longest_response(&range.into_iter().collect())
        };
        assert_eq!(longest("bytes=5-104857604"), 100 << 20);
        for short in ["bytes=5-6", "bytes=6-5", "bytes=5-", "bytes=-5", "x"] {
            assert_eq!(longest(short), LONGEST, "{short}");
        }
        let all = format!("bytes=0-{}", u64::MAX);
        assert_eq!(longest(&all), LONGEST);
        assert_eq!(longest_response(&HeaderMap::new()), LONGEST);
    }

    #[tokio::test]
    async fn a_longer_response_is_an_error() {
        let read = async |most| {
            let body = HttpResponseBody::from(vec![7; 100]);
            let read = limited(body, most).bytes_stream();
            read.map(|bytes| bytes.map(|bytes| bytes.len()))
                .try_collect::<Vec<_>>()
                .await
        };
        assert_eq!(read(100).await.unwrap(), [100]);
        let error = read(99).await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.to_string().contains("longer"), "{source}");
    }
}
