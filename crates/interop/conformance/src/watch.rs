//! A running watch and its events.

use bytes::{Buf as _, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use crate::RESPONSE_TIMEOUT;

/// A stream of watch events; dropping it ends the watch.
pub struct Watch {
    request: String,
    /// The response headers.
    pub headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
}

impl Watch {
    pub(crate) fn new(request: String, headers: HeaderMap, body: Incoming) -> Self {
        Self {
            request,
            headers,
            body,
            buffer: BytesMut::new(),
        }
    }

    /// The next event, or `None` if the server has closed the watch.
    ///
    /// # Panics
    /// If the connection fails, an event is not JSON, or no event arrives in time.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                let event = serde_json::from_slice(&line).unwrap_or_else(|error| {
                    let line = String::from_utf8_lossy(&line);
                    panic!("{}: {error}: {line}", self.request)
                });
                return Some(event);
            }
            let frame = timeout(RESPONSE_TIMEOUT, self.body.frame()).await;
            let Ok(frame) = frame else {
                panic!("{}: no event received", self.request);
            };
            match frame {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => panic!("{}: interrupted: {error}", self.request),
                None => {
                    assert!(self.buffer.is_empty(), "{}: incomplete line", self.request);
                    return None;
                }
            }
        }
    }

    /// Asserts that the next event has this type and returns its object.
    ///
    /// # Panics
    /// If the next event differs or the watch ends.
    pub async fn event(&mut self, kind: &str) -> Value {
        let Some(mut event) = self.next().await else {
            panic!("{}: ended, expected {kind}", self.request);
        };
        assert_eq!(event["type"], kind, "{}: {event}", self.request);
        event["object"].take()
    }

    /// Asserts that the next event has this type and concerns the object of this name.
    /// Returns the object.
    ///
    /// # Panics
    /// Like [`Watch::event`].
    pub async fn event_of(&mut self, kind: &str, name: &str) -> Value {
        let object = self.event(kind).await;
        assert_eq!(
            object["metadata"]["name"], name,
            "{}: {object}",
            self.request
        );
        object
    }

    /// All events until the end of the watch.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
