//! Copies of bodies for the audit log, taken while a request is handled.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::{
    input::{self, BodyError, RequestBody},
    limits, yaml,
};

/// A copy of a body, which shares memory with the body.
#[derive(Debug, Clone, Default)]
pub(super) struct Copied {
    parts: Arc<Mutex<Parts>>,
}

#[derive(Debug, Default)]
struct Parts {
    parts: Vec<Bytes>,
    size: usize,
    /// The media type, without parameters.
    media_type: String,
}

impl Copied {
    pub(super) fn of_type(media_type: String) -> Self {
        let parts = Parts {
            media_type,
            ..Parts::default()
        };
        Self {
            parts: Arc::new(Mutex::new(parts)),
        }
    }

    /// Adds a part. If the body is too large, the copy is discarded.
    pub(super) fn add(&self, part: &Bytes) {
        let mut copied = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        copied.size = copied.size.saturating_add(part.len());
        if copied.size > limits::AUDIT_BODY {
            copied.parts.clear();
        } else {
            copied.parts.push(part.clone());
        }
    }

    pub(super) fn size(&self) -> usize {
        let copied = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        copied.parts.iter().map(Bytes::len).sum()
    }

    /// The body as JSON; `None` if it is empty, too large, or not an object or a patch.
    pub(super) fn value(&self) -> Option<Value> {
        let (body, media_type) = {
            let copied = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            (copied.parts.concat(), copied.media_type.clone())
        };
        if body.is_empty() {
            return None;
        }
        match media_type.as_str() {
            "application/vnd.kubernetes.protobuf" => {
                let decoded = input::decode(&media_type, &body.into(), "");
                decoded.ok().map(|(value, _)| value)
            }
            media_type if yaml::is_named(media_type) || media_type.ends_with("+yaml") => {
                yaml::read(&body).ok().map(|(value, _)| value)
            }
            _ => serde_json::from_slice(&body).ok(),
        }
    }
}

/// A body whose parts are copied while they are read.
struct Observed {
    body: RequestBody,
    copy: Copied,
}

impl Body for Observed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(part) = frame.data_ref()
        {
            self.copy.add(part);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns a body whose parts are copied while they are read.
pub(super) fn observed(body: RequestBody, copy: Copied) -> RequestBody {
    Observed { body, copy }.boxed_unsync()
}
