//! Watches: one JSON event per line until the client disconnects.
//!
//! Each watch reads the engine's log at its own pace, so a slow client delays only itself.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::StatusCode;
use longshore_engine::{Error, Watch, WatchEvent, WatchRequest, WatchStart};
use longshore_model::KindInfo;
use rand::RngExt as _;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::converted::Conversion;
use crate::{
    body::{Body, COPY_BELOW},
    call::{Call, Shared},
    event_line::{LINE_END, error_line, line, line_start},
    limits,
    negotiate::{Encoding, Shape, negotiate},
    offload::offload_for,
    params::{Selection, WatchParams},
    present::Presenter,
    reply::{self, Reply},
    status_error::StatusError,
    stopping::stopped,
};

/// Interval of the bookmarks that a client requests.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Time between the last bookmark and the end of the watch.
const LAST_BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Maximum size in bytes of pending events that are sent together.
const MAX_FRAME: usize = 64 * 1024;

/// Watches a collection, or one object of it if a name is given.
pub(super) async fn watch(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    name: Option<String>,
) -> Reply {
    let wanted = negotiate(&call.headers, |shape| {
        matches!(shape, Shape::Object | Shape::Table(_) | Shape::Metadata(_))
    })?;
    if wanted.encoding != Encoding::Json {
        return Err(StatusError::not_acceptable());
    }
    let presenter = Presenter::new(&call, info.clone(), wanted.shape)?;
    let params = WatchParams::parse(&call.query)?;
    let mut selection = Selection::parse(&call.query)?;
    if let Some(name) = name {
        selection.fields = selection.fields.with("metadata.name", name);
    }
    let engine = &call.shared.engine;
    let conversion = match call.converter() {
        Some(converter) => {
            let fields = engine.converted_fields(&info, &selection.fields)?;
            Some(Conversion::new(converter, info.clone(), fields))
        }
        None => None,
    };
    let request = WatchRequest {
        kind: info.clone(),
        namespace,
        labels: selection.labels,
        fields: selection.fields,
        since: params
            .since
            .unwrap_or_else(|| WatchStart::After(engine.revision())),
        initial_events: params.initial_events,
        bookmarks: params.bookmarks,
    };
    let has_state = request.initial_events || request.since == WatchStart::Latest;
    let started = if has_state && engine.count(&request.kind) >= limits::LIST_OFFLOAD {
        let engine = engine.clone();
        offload_for(&call.user, move || engine.watch(&request)).await?
    } else {
        engine.watch(&request)
    };
    let watch = match started {
        Ok(watch) => watch,
        // Clients expect this error inside the stream.
        Err(error @ Error::Expired { .. }) => {
            return Ok(reply::json(
                StatusCode::OK,
                Body::full(error_line(error.into())),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    // A random duration prevents many watches from ending at the same moment.
    let seconds = params
        .timeout_seconds
        .unwrap_or_else(|| rand::rng().random_range(1800..3600));
    let now = Instant::now();
    // Limited to a day, so that the deadline cannot overflow.
    let deadline = now + Duration::from_secs(seconds.min(86_400));
    let stream = Events {
        conversion,
        watch,
        writer: Writer {
            info,
            presenter,
            first: true,
        },
        deadline,
        bookmark: params
            .bookmarks
            .then(|| next_bookmark(now, deadline))
            .flatten(),
        stopping: call.stopping,
        done: false,
        parts: VecDeque::new(),
        _shared: call.shared,
    };
    let stream = futures::stream::unfold(stream, |mut events| async move {
        events
            .frame()
            .await
            .map(|frame| (Ok::<_, io::Error>(frame), events))
    });
    Ok(reply::json(StatusCode::OK, Body::stream(stream.boxed())))
}

/// Returns when the next bookmark is due: in a minute, or shortly before the
/// end.
fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline
        .checked_sub(LAST_BOOKMARK_BEFORE_END)
        .filter(|last| *last > now)?;
    Some(last.min(now + BOOKMARK_INTERVAL))
}

struct Events {
    watch: Watch,
    /// Converts the objects, if their definition has a conversion webhook.
    conversion: Option<Conversion>,
    writer: Writer,
    deadline: Instant,
    bookmark: Option<Instant>,
    stopping: watch::Receiver<bool>,
    done: bool,
    /// Parts that follow the last frame: a large object and the end of its line.
    parts: VecDeque<Bytes>,
    /// Keeps the server alive while its streams exist.
    _shared: Arc<Shared>,
}

impl Events {
    /// Returns the next lines to send, or `None` at the end.
    async fn frame(&mut self) -> Option<Bytes> {
        if let Some(part) = self.parts.pop_front() {
            return Some(part);
        }
        while !self.done {
            let lines = self.lines().await?;
            if !lines.is_empty() {
                return Some(lines);
            }
        }
        None
    }

    /// Waits for the next event and returns its line and the lines of the events that follow it.
    /// The result is empty if the selectors do not match any of these events, and `None` at the
    /// end.
    async fn lines(&mut self) -> Option<Bytes> {
        let bookmark = self.bookmark;
        let first = tokio::select! {
            biased;
            () = stopped(self.stopping.clone()) => return None,
            () = sleep_until(self.deadline) => return None,
            () = async { sleep_until(bookmark.unwrap_or(self.deadline)).await }, if bookmark.is_some() => {
                self.bookmark = next_bookmark(Instant::now(), self.deadline);
                match self.watch.bookmark() {
                    // Initial events are still being sent and make a bookmark
                    // unnecessary.
                    Ok(0) => self.watch.next().await,
                    result => result.map(WatchEvent::Bookmark),
                }
            }
            event = self.watch.next() => event,
        };
        let mut frame = BytesMut::new();
        let mut event = first.map(Some);
        loop {
            if let Some(conversion) = &self.conversion {
                event = match event {
                    Ok(Some(event)) => tokio::select! {
                        biased;
                        () = stopped(self.stopping.clone()) => return None,
                        () = sleep_until(self.deadline) => return None,
                        presented = conversion.present(event) => presented,
                    },
                    other => other,
                };
            }
            match event {
                Ok(Some(event)) => {
                    if let Some(object) = self.writer.event(&mut frame, &event) {
                        self.parts = [object, Bytes::from_static(LINE_END)].into();
                        break;
                    }
                }
                Ok(None) => break,
                // The kind was removed: the watch ends normally.
                Err(Error::KindGone(_)) => {
                    self.done = true;
                    break;
                }
                Err(error) => {
                    self.done = true;
                    frame.extend_from_slice(&error_line(error.into()));
                    break;
                }
            }
            // The conversion of the next event must not delay this one.
            if frame.len() >= MAX_FRAME || self.conversion.is_some() {
                break;
            }
            event = self.watch.try_next();
        }
        Some(frame.freeze())
    }
}

struct Writer {
    info: Arc<KindInfo>,
    presenter: Presenter,
    first: bool,
}

impl Writer {
    /// Writes an event. For a large object, writes only the start of the event
    /// and returns the object, which is then sent without a copy. A client that
    /// does not read therefore holds no copies.
    fn event(&mut self, frame: &mut BytesMut, event: &WatchEvent) -> Option<Bytes> {
        let (word, object, revision) = match event {
            WatchEvent::Added(object) => ("ADDED", object.bytes().clone(), object.revision()),
            WatchEvent::Modified(object) => ("MODIFIED", object.bytes().clone(), object.revision()),
            WatchEvent::Deleted(object) => ("DELETED", object.bytes().clone(), object.revision()),
            // A watch with such events has a conversion, which selects them.
            WatchEvent::Unfiltered { .. } => return None,
            WatchEvent::Bookmark(revision) => {
                ("BOOKMARK", self.bookmark(*revision, false), *revision)
            }
            WatchEvent::InitialEventsEnd(revision) => {
                ("BOOKMARK", self.bookmark(*revision, true), *revision)
            }
        };
        let object = self
            .presenter
            .event(&object, revision, std::mem::take(&mut self.first));
        if object.len() < COPY_BELOW {
            line(frame, word, &object);
            return None;
        }
        line_start(frame, word);
        Some(object)
    }

    /// Encodes an object that has only its type and a resource version.
    fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let kind = self.info.gvk.kind.as_ref();
        let bookmark =
            json!({"kind": kind, "apiVersion": self.info.api_version(), "metadata": metadata});
        if self.presenter.is_custom() {
            return bookmark.to_string().into();
        }
        reply::ordered(&bookmark)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bookmarks_come_each_minute_and_before_the_end() {
        let start = Instant::now();
        let deadline = start + Duration::from_secs(150);
        let mut at = start;
        let mut due = Vec::new();
        while let Some(next) = next_bookmark(at, deadline) {
            due.push((next - start).as_secs());
            at = next;
        }
        assert_eq!(due, [60, 120, 148]);
        assert_eq!(next_bookmark(start, start + Duration::from_secs(1)), None);
    }
}
