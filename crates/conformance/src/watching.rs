//! A watch under way: its events, line by line.

use bytes::{Buf as _, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use crate::PATIENCE;

/// A stream of watch events; dropping it ends the watch.
pub struct Watching {
    asked: String,
    /// The headers, which came before any event.
    pub headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
}

impl Watching {
    pub(crate) fn new(asked: String, headers: HeaderMap, body: Incoming) -> Self {
        Self {
            asked,
            headers,
            body,
            buffer: BytesMut::new(),
        }
    }

    /// The next event, or `None` when the server has ended the watch.
    ///
    /// # Panics
    /// When it breaks off, sends no JSON, or nothing comes for long.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                let event = serde_json::from_slice(&line).unwrap_or_else(|error| {
                    let line = String::from_utf8_lossy(&line);
                    panic!("{}: {error}: {line}", self.asked)
                });
                return Some(event);
            }
            let frame = timeout(PATIENCE, self.body.frame()).await;
            let Ok(frame) = frame else {
                panic!("{}: no event comes", self.asked);
            };
            match frame {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => panic!("{}: broke off: {error}", self.asked),
                None => {
                    assert!(self.buffer.is_empty(), "{}: half a line", self.asked);
                    return None;
                }
            }
        }
    }

    /// Expects an event of this type next; gives its object.
    ///
    /// # Panics
    /// When it is another, or the watch ends.
    pub async fn event(&mut self, kind: &str) -> Value {
        let Some(mut event) = self.next().await else {
            panic!("{}: ended, {kind} was expected", self.asked);
        };
        assert_eq!(event["type"], kind, "{}: {event}", self.asked);
        event["object"].take()
    }

    /// Expects an event of this type about the object of this name next; gives
    /// the object.
    ///
    /// # Panics
    /// As [`Watching::event`].
    pub async fn event_of(&mut self, kind: &str, name: &str) -> Value {
        let object = self.event(kind).await;
        assert_eq!(object["metadata"]["name"], name, "{}: {object}", self.asked);
        object
    }

    /// All events up to the watch's end.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
