//! The body of a response on its way to the client, which is recorded.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::header;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

use super::sink::Sink;
use crate::{
    content::Content,
    line::{End, Head, ResponseBody as RecordedBody},
    listen::{BoxError, ResponseBody, full},
    request::Request,
    resource::Form,
};

/// The maximum number of bytes before the end of a line that are recorded in a part of a log.
const MAX_LOG_LINE: usize = 64 << 10;

/// The time limit for reading the rest of a response that the client does not read.
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// A value that exists as long as a response is being recorded.
pub(super) type Pending = mpsc::Sender<()>;

/// A body that is recorded while it is sent.
pub(super) struct Tap {
    inner: ResponseBody,
    /// `None` after the end was recorded.
    copy: Option<Copy>,
}

/// The recorded copy of a body.
struct Copy {
    id: u64,
    request: Request,
    head: Head,
    sink: Arc<Sink>,
    limit: usize,
    form: Form,
    begin: Instant,
    /// The bytes that are not yet recorded.
    buffer: Vec<u8>,
    is_over: bool,
    _pending: Pending,
}

impl Tap {
    pub(super) fn new(
        inner: ResponseBody,
        (id, request, head): (u64, Request, Head),
        (sink, pending): (Arc<Sink>, Pending),
        limit: usize,
    ) -> Self {
        let form = match head.status.is_success() {
            true => request.form(),
            false => Form::Whole,
        };
        if form != Form::Whole {
            sink.exchange(id, &request, &head, RecordedBody::Stream);
        }
        let copy = Copy {
            id,
            request,
            head,
            sink,
            limit,
            form,
            begin: Instant::now(),
            buffer: Vec::new(),
            is_over: false,
            _pending: pending,
        };
        let mut tap = Self {
            inner,
            copy: Some(copy),
        };
        if tap.inner.is_end_stream() {
            tap.end(Some(End::Server));
        }
        tap
    }

    /// Records the end, once; `None` if the connection was lost.
    fn end(&mut self, end: Option<End>) {
        if let Some(copy) = self.copy.take() {
            copy.end(end);
        }
    }
}

impl Body for Tap {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(copy)) = (frame.data_ref(), &mut this.copy) {
                    copy.data(data);
                }
                if this.inner.is_end_stream() {
                    this.end(Some(End::Server));
                }
            }
            Some(Err(_)) => this.end(None),
            None => this.end(Some(End::Server)),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Tap {
    /// Records the rest of a response that the client does not read, so that another client
    /// can. A stream ends with its client.
    fn drop(&mut self) {
        let Some(copy) = self.copy.take() else {
            return;
        };
        let runtime = tokio::runtime::Handle::try_current();
        match (copy.form, runtime) {
            (Form::Whole, Ok(runtime)) => {
                let inner = std::mem::replace(&mut self.inner, full(""));
                runtime.spawn(rest(inner, copy));
            }
            _ => copy.end(Some(End::Client)),
        }
    }
}

/// Reads and records the rest of a response.
async fn rest(mut inner: ResponseBody, mut copy: Copy) {
    let reading = async {
        while !copy.is_over {
            match inner.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        copy.data(data);
                    }
                }
                Some(Err(_)) => return None,
                None => break,
            }
        }
        Some(End::Server)
    };
    let end = tokio::time::timeout(REST_TIMEOUT, reading).await;
    copy.end(end.unwrap_or(Some(End::Client)));
}

impl Copy {
    fn after(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn media_type(&self) -> &str {
        let value = self.head.headers.get(header::CONTENT_TYPE);
        let value = value.and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    fn data(&mut self, data: &[u8]) {
        match self.form {
            Form::Whole => self.append(data),
            Form::Watch => {
                for piece in data.split_inclusive(|byte| *byte == b'\n') {
                    self.append(piece);
                    if piece.ends_with(b"\n") {
                        self.event();
                    }
                }
            }
            Form::Log => {
                // Whole lines, so that a token in one is recognized.
                let complete = data.iter().rposition(|byte| *byte == b'\n');
                let (complete, rest) =
                    data.split_at(complete.map_or(0, |end| end.saturating_add(1)));
                if !complete.is_empty() {
                    self.append(complete);
                    self.event();
                }
                self.append(rest);
                if self.buffer.len() > MAX_LOG_LINE {
                    self.event();
                }
            }
        }
    }

    fn append(&mut self, data: &[u8]) {
        if self.is_over || self.buffer.len().saturating_add(data.len()) > self.limit {
            self.is_over = true;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(data);
        }
    }

    /// The content of the buffer, which is then empty.
    fn take(&mut self) -> Option<Content> {
        let body = std::mem::take(&mut self.buffer);
        if std::mem::take(&mut self.is_over) {
            return Some(Content::too_large(self.limit));
        }
        let encoding = self.head.headers.get(header::CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            return Some(Content::Omitted(format!("it is encoded as {encoding:?}")));
        }
        Content::of(&body, self.media_type(), self.request.sensitivity())
    }

    /// Records the buffer as a part of the stream.
    fn event(&mut self) {
        let is_blank = self.form == Form::Watch && self.buffer.trim_ascii().is_empty();
        if is_blank && !self.is_over {
            self.buffer.clear();
            return;
        }
        let after = self.after();
        if let Some(content) = self.take() {
            self.sink.sent(self.id, after, content);
        }
    }

    fn end(mut self, end: Option<End>) {
        if self.form != Form::Whole {
            // An incomplete event cannot be replayed.
            if self.form == Form::Log {
                self.event();
            }
            // After a lost connection, clients watch again, as after an end.
            let end = end.unwrap_or(End::Server);
            return self.sink.end(self.id, self.after(), end);
        }
        let content = match end {
            Some(End::Server) => self.take(),
            Some(End::Client) | None => Some(Content::Omitted(
                "the connection ended before the response was complete".to_owned(),
            )),
        };
        let body = RecordedBody::Whole(content);
        self.sink.exchange(self.id, &self.request, &self.head, body);
    }
}
