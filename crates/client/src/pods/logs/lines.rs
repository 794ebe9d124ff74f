//! The lines of a log that comes in pieces.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use crate::error::Result;

/// A longer line comes in parts, so that memory is bounded.
const LONGEST_LINE: usize = 1 << 20;

/// The lines, each without its end. The last one can lack its end.
pub(super) fn lines(
    pieces: impl Stream<Item = Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = Result<String>> + Send + 'static {
    let state = Splitter {
        pieces: Some(pieces.boxed()),
        rest: Vec::new(),
        ready: VecDeque::new(),
    };
    stream::unfold(state, |mut state| async {
        let line = state.next().await?;
        Some((line, state))
    })
}

struct Splitter {
    pieces: Option<BoxStream<'static, Result<Bytes>>>,
    /// The beginning of a line.
    rest: Vec<u8>,
    ready: VecDeque<String>,
}

impl Splitter {
    async fn next(&mut self) -> Option<Result<String>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            match self.pieces.as_mut()?.next().await {
                Some(Ok(piece)) => self.add(&piece),
                Some(Err(error)) => {
                    self.pieces = None;
                    return Some(Err(error));
                }
                None => {
                    self.pieces = None;
                    return (!self.rest.is_empty()).then(|| Ok(self.take()));
                }
            }
        }
    }

    fn add(&mut self, piece: &[u8]) {
        let mut parts = piece.split(|byte| *byte == b'\n');
        let unfinished = parts.next_back().unwrap_or_default();
        for end in parts {
            self.rest.extend_from_slice(end);
            let line = self.take();
            self.ready.push_back(line);
        }
        self.rest.extend_from_slice(unfinished);
        if self.rest.len() > LONGEST_LINE {
            let part = self.take();
            self.ready.push_back(part);
        }
    }

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

    async fn split(pieces: &[&[u8]]) -> Vec<String> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        lines(stream::iter(pieces)).try_collect().await.unwrap()
    }

    #[tokio::test]
    async fn lines_end_anywhere() {
        assert_eq!(
            split(&[b"one\ntw", b"o\n\nth", b"ree"]).await,
            ["one", "two", "", "three"]
        );
        assert_eq!(split(&[b"a\r\n", b"\xff\n"]).await, ["a", "\u{fffd}"]);
        assert!(split(&[]).await.is_empty());
    }

    #[tokio::test]
    async fn a_very_long_line_comes_in_parts() {
        let piece = vec![b'x'; LONGEST_LINE];
        let parts = split(&[&piece, b"y", b"z\n"]).await;
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1], "z");
    }
}
