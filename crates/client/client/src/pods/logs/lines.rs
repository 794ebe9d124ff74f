//! Splits the chunks of a log into lines.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use crate::error::Result;

/// The maximum length of a line, in bytes. Longer lines are split to limit memory.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Streams the lines of a log without their line ends. The last line may lack a line end.
pub(super) fn lines(
    chunks: impl Stream<Item = Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = Result<String>> + Send + 'static {
    let state = Splitter {
        chunks: Some(chunks.boxed()),
        rest: Vec::new(),
        ready: VecDeque::new(),
    };
    stream::unfold(state, |mut state| async {
        let line = state.next().await?;
        Some((line, state))
    })
}

struct Splitter {
    chunks: Option<BoxStream<'static, Result<Bytes>>>,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
    /// Complete lines.
    ready: VecDeque<String>,
}

impl Splitter {
    async fn next(&mut self) -> Option<Result<String>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            match self.chunks.as_mut()?.next().await {
                Some(Ok(chunk)) => self.add(&chunk),
                Some(Err(error)) => {
                    self.chunks = None;
                    return Some(Err(error));
                }
                None => {
                    self.chunks = None;
                    return (!self.rest.is_empty()).then(|| Ok(self.take()));
                }
            }
        }
    }

    fn add(&mut self, chunk: &[u8]) {
        let mut parts = chunk.split(|byte| *byte == b'\n');
        let unfinished = parts.next_back().unwrap_or_default();
        for end in parts {
            self.rest.extend_from_slice(end);
            let line = self.take();
            self.ready.push_back(line);
        }
        self.rest.extend_from_slice(unfinished);
        if self.rest.len() > MAX_LINE_BYTES {
            let part = self.take();
            self.ready.push_back(part);
        }
    }

    /// Takes the incomplete line.
    fn take(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.rest);
        let line = text.strip_suffix('\r').unwrap_or(&text).to_owned();
        self.rest.clear();
        line
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::TryStreamExt;

    use super::*;

    async fn split(chunks: &[&[u8]]) -> Vec<String> {
        let chunks: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        lines(stream::iter(chunks)).try_collect().await.unwrap()
    }

    #[tokio::test]
    async fn lines_can_end_at_any_position_of_a_chunk() {
        assert_eq!(
            split(&[b"one\ntw", b"o\n\nth", b"ree"]).await,
            ["one", "two", "", "three"]
        );
        assert_eq!(split(&[b"a\r\n", b"\xff\n"]).await, ["a", "\u{fffd}"]);
        assert!(split(&[]).await.is_empty());
    }

    #[tokio::test]
    async fn a_very_long_line_is_split() {
        let chunk = vec![b'x'; MAX_LINE_BYTES];
        let parts = split(&[&chunk, b"y", b"z\n"]).await;
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1], "z");
    }
}
