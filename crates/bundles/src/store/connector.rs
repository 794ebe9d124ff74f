//! The HTTP client of the crate object_store, with one addition: it waits as long as the store
//! asks for. The crate itself repeats requests after short pauses only, and then fails.

use std::{pin::Pin, time::SystemTime};

use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
        ReqwestConnector,
    },
};
use reqwest::StatusCode;

use super::{
    retry::{Pauses, jittered, retry_after},
    waits,
};

/// The longest sum of pauses for one request: its signature is valid for a quarter of an hour.
const MOST_ASKED: std::time::Duration = std::time::Duration::from_secs(300);

/// Creates the clients.
#[derive(Debug)]
pub(super) struct RetryAfterConnector;

impl HttpConnector for RetryAfterConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
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
                    return Ok(response);
                };
                let cause = format!("the store at {host} asks to wait ({})", status.as_u16());
                waits::report(&cause, wait);
                tokio::time::sleep(jittered(wait)).await;
            }
        })
    }
}
