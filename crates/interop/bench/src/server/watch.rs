//! A watch whose client does little: it only parses the events.

use bytes::BytesMut;
use http::Request;
use http_body_util::BodyExt as _;
use kube_client::{Client, client::Body};
use serde_json::Value;

use crate::report::Failure;

/// A watch of a collection, from its current objects on.
pub(crate) struct Watch {
    body: Body,
    text: BytesMut,
}

impl Watch {
    /// Opens a watch. The query may contain selectors.
    pub(crate) async fn open(client: &Client, path: &str, query: &str) -> Result<Self, Failure> {
        let uri = format!("{path}?watch=1&resourceVersion=0&{query}");
        let response = client.send(Request::get(uri).body(Body::empty())?).await?;
        if !response.status().is_success() {
            return Err(format!("a watch of {path} failed: {}", response.status()).into());
        }
        Ok(Self {
            body: response.into_body(),
            text: BytesMut::new(),
        })
    }

    /// The next event, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.text) {
                let line = self.text.split_to(end + 1);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            if let Ok(data) = frame?.into_data() {
                self.text.extend_from_slice(&data);
            }
        }
    }
}
