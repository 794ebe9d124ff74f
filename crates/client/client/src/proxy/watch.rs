//! Watches by path. They use one connection and return events as JSON.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt, future, stream::BoxStream};
use longshore_model::FieldSelector;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    transport::{Call, Lines, within},
};

/// A watch by path. Its events are the JSON of the server: `{"type": …, "object": …}`.
///
/// The watch ends when the server closes the connection; [`View::watch`](crate::View::watch)
/// reconnects. Implements `Stream`.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::FieldSelector;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let version = maps.list().await?.version;
///
/// // The server supports only a few field selectors; the client compares any field.
/// let blue = FieldSelector::everything().with("data.colour", "blue");
/// let path = ["api", "v1", "namespaces", "default", "configmaps"];
/// let mut watch = cluster.proxy().watch_since(path, &version).await?.matching(blue)?;
/// for (name, colour) in [("a", "red"), ("b", "blue")] {
///     let map = serde_json::json!({"metadata": {"name": name}, "data": {"colour": colour}});
///     maps.create(&map).await?;
/// }
/// let event = watch.next(Some(Duration::from_secs(20))).await?.expect("the watch continues");
/// assert_eq!(event["object"]["metadata"]["name"], "b");
/// // A timeout of zero does not wait.
/// assert!(watch.next(Some(Duration::ZERO)).await.unwrap_err().is_timeout());
/// watch.close();
/// assert!(watch.next(None).await?.is_none());
/// # Ok(()) });
/// ```
pub struct ProxyWatch {
    events: Option<BoxStream<'static, Result<Value>>>,
    /// The condition in timeout errors.
    waiting_for: String,
}

impl ProxyWatch {
    pub(super) fn new(call: &Call, lines: Lines) -> Self {
        let event = format!("an event of {}", call.name());
        let events = futures::stream::unfold(Some((lines, event)), |state| async {
            let (mut lines, event) = state?;
            match lines.next().await {
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
                Ok(Some(line)) => match serde_json::from_slice(&line) {
                    Ok(value) => Some((Ok(value), Some((lines, event)))),
                    Err(error) => Some((Err(Error::decode(event, error)), None)),
                },
            }
        });
        Self {
            events: Some(events.boxed()),
            waiting_for: format!("waiting for an event of {}", call.name()),
        }
    }

    /// Returns only events of objects whose fields match. The client compares the fields, so
    /// that any field is supported. A path has dots, and a value is a string, a number, or a
    /// boolean. An absent field has the empty value.
    ///
    /// An object that no longer matches has no further events. `BOOKMARK` and `ERROR` events
    /// are always returned, because their objects have no fields to match.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty selector.
    pub fn matching(mut self, fields: FieldSelector) -> Result<Self> {
        if fields.is_everything() {
            return Err(Error::Invalid(
                "matching(): an empty selector selects every object: leave matching() out"
                    .to_owned(),
            ));
        }
        self.events = self.events.map(|events| {
            let filter = move |event: &Result<Value>| {
                future::ready(event.as_ref().map_or(true, |event| matches(event, &fields)))
            };
            events.filter(filter).boxed()
        });
        Ok(self)
    }

    /// Returns the next event, `None` when the watch has ended. A `timeout` of `None` waits
    /// without a limit, and zero returns only an event that has already arrived. This method
    /// is cancel safe: no event is lost if its future is dropped.
    ///
    /// # Errors
    /// [`Error::Timeout`]; the watch continues. [`Error::Decode`] for an event that is not
    /// JSON, and [`Error::Unreachable`] if the connection is lost; they end the watch.
    pub async fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Value>> {
        let Some(events) = &mut self.events else {
            return Ok(None);
        };
        let event = match timeout {
            None => events.next().await,
            Some(after) => {
                let event = within(after, events.next()).await;
                event.ok_or_else(|| Error::Timeout {
                    waiting_for: self.waiting_for.clone(),
                    after,
                    last: String::new(),
                })?
            }
        };
        if event.is_none() {
            self.events = None;
        }
        event.transpose()
    }

    /// Ends the watch and closes its connection.
    pub fn close(&mut self) {
        self.events = None;
    }
}

/// Returns true if the object of an event matches the selector.
fn matches(event: &Value, fields: &FieldSelector) -> bool {
    if matches!(event["type"].as_str(), Some("BOOKMARK" | "ERROR")) {
        return true;
    }
    fields.matches_with(|path| {
        let object = Some(&event["object"]);
        let field = path
            .split('.')
            .fold(object, |at, name| at.and_then(|at| at.get(name)));
        match field? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    })
}

impl Stream for ProxyWatch {
    type Item = Result<Value>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(events) = &mut self.events else {
            return Poll::Ready(None);
        };
        let next = events.poll_next_unpin(cx);
        if matches!(next, Poll::Ready(None)) {
            self.events = None;
        }
        next
    }
}

impl std::fmt::Debug for ProxyWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyWatch")
            .field("waiting_for", &self.waiting_for)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_compared_as_strings() {
        let event = json!({"type": "ADDED", "object": {
            "metadata": {"name": "a"}, "spec": {"replicas": 3, "paused": true, "x": null},
        }});
        for (selector, expected) in [
            ("metadata.name=a", true),
            ("metadata.name=b", false),
            ("metadata.name!=b", true),
            ("spec.replicas=3,spec.paused=true", true),
            ("spec.replicas=3,spec.paused=false", false),
            ("spec.x=", true),
            ("status.phase=", true),
            ("status.phase=Running", false),
            ("metadata.name.more=a", false),
        ] {
            let fields = selector.parse().unwrap();
            assert_eq!(matches(&event, &fields), expected, "{selector}");
        }
        let error = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410}});
        assert!(matches(&error, &"metadata.name=a".parse().unwrap()));
    }
}
