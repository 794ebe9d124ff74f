//! Server-sent events with the lines of a run, for one tab.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::json;
use tokio::{sync::watch, time::timeout};

use super::{
    feed::{LogFeed, State},
    ring::Next,
};

/// A comment is sent after this time without lines.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A tab that reads lines.
struct Tab {
    feed: Arc<LogFeed>,
    changes: watch::Receiver<State>,
    position: u64,
    /// An event to send before lines.
    first: Option<String>,
    is_over: bool,
}

/// The lines after the last event that the tab has, or all kept lines. The next lines are read
/// when the connection has accepted the previous ones.
pub(crate) fn log_events(
    feed: Arc<LogFeed>,
    after: Option<&str>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let known = after.and_then(|id| {
        let (epoch, position) = id.split_once('-')?;
        let epoch: u64 = epoch.parse().ok()?;
        (epoch == feed.epoch).then(|| position.parse().ok())?
    });
    let changes = feed.changes();
    let tab = Tab {
        changes,
        position: known.unwrap_or(0),
        // If the numbering has changed, the tab receives all lines again.
        first: known
            .is_none()
            .then(|| "event: reset\ndata: {}\n\n".to_owned()),
        is_over: false,
        feed,
    };
    stream::unfold(tab, async |mut tab| {
        let event = tab.next().await?;
        Some((Ok(event), tab))
    })
}

impl Tab {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        loop {
            // Must precede the read of the ring, so that no change is missed.
            let state = self.changes.borrow_and_update().clone();
            if let Next::Lines {
                json,
                dropped,
                next,
            } = self.feed.read(self.position)
            {
                self.position = next;
                return Some(self.lines(&json, dropped));
            }
            if self.is_over {
                return None;
            }
            match state {
                State::Open => {}
                State::Ended => {
                    self.is_over = true;
                    return Some("event: end\ndata: {}\n\n".into());
                }
                State::Failed(error) => {
                    self.is_over = true;
                    let data = json!({"error": error});
                    return Some(format!("event: failed\ndata: {data}\n\n").into());
                }
            }
            match timeout(HEARTBEAT, self.changes.changed()).await {
                Ok(Ok(())) => {}
                // The worker has ended without a final state.
                Ok(Err(_)) => return None,
                Err(_) => return Some(":\n\n".into()),
            }
        }
    }

    fn lines(&self, json: &Bytes, dropped: u64) -> Bytes {
        let mut event = Vec::with_capacity(json.len() + 128);
        if dropped > 0 {
            let data = json!({"lines": dropped});
            event.extend_from_slice(format!("event: dropped\ndata: {data}\n\n").as_bytes());
        }
        let id = format!("id: {}-{}\ndata: ", self.feed.epoch, self.position);
        event.extend_from_slice(id.as_bytes());
        event.extend_from_slice(json);
        event.extend_from_slice(b"\n\n");
        event.into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::{Stream, StreamExt as _};
    use longshore_launcher::{follow::LogLine, names::Task};

    use super::{
        super::{chunk::Chunk, ring::Limits},
        *,
    };

    const FEW: Limits = Limits {
        lines: 3,
        bytes: usize::MAX,
    };

    fn chunk(text: &str) -> Chunk {
        let mut chunk = Chunk::default();
        chunk.add(&LogLine {
            task: Task {
                role: "main".to_owned(),
                index: 0,
            },
            container: None,
            time: None,
            line: text.to_owned(),
        });
        chunk
    }

    async fn next(events: &mut (impl Stream<Item = io::Result<Bytes>> + Unpin)) -> String {
        let event = events.next().await.unwrap().unwrap();
        String::from_utf8_lossy(&event).into_owned()
    }

    #[tokio::test]
    async fn a_slow_tab_loses_lines_and_gets_their_number() {
        let (feed, sender) = LogFeed::of_test(FEW);
        let slow = log_events(Arc::clone(&feed), None);
        let mut slow = Box::pin(slow);
        assert_eq!(next(&mut slow).await, "event: reset\ndata: {}\n\n");
        feed.add(&chunk("a"));
        let first = next(&mut slow).await;
        assert!(
            first.starts_with("id: 7-1\ndata: {") && first.contains("\"a\""),
            "{first}"
        );
        // A tab that does not read while many lines arrive loses lines.
        for number in 0..10 {
            feed.add(&chunk(&number.to_string()));
        }
        sender.send_replace(State::Ended);
        let later = next(&mut slow).await;
        let dropped = "event: dropped\ndata: {\"lines\":7}\n\nid: 7-9\n";
        assert!(later.starts_with(dropped), "{later}");
        assert!(next(&mut slow).await.starts_with("id: 7-10\n"));
        assert!(next(&mut slow).await.starts_with("id: 7-11\n"));
        assert!(next(&mut slow).await.starts_with("event: end\n"));
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn a_tab_continues_after_its_last_event() {
        let (feed, sender) = LogFeed::of_test(FEW);
        feed.add(&chunk("a"));
        feed.add(&chunk("b"));
        sender.send_replace(State::Failed("no response".to_owned()));
        let mut events = Box::pin(log_events(Arc::clone(&feed), Some("7-1")));
        assert!(next(&mut events).await.starts_with("id: 7-2\n"));
        let failed = next(&mut events).await;
        assert!(
            failed.starts_with("event: failed\n") && failed.contains("no response"),
            "{failed}"
        );
        for foreign in ["8-1", "7", "7-x", "-", ""] {
            let mut events = Box::pin(log_events(Arc::clone(&feed), Some(foreign)));
            assert!(
                next(&mut events).await.starts_with("event: reset"),
                "{foreign}"
            );
            assert!(
                next(&mut events).await.starts_with("id: 7-1\n"),
                "{foreign}"
            );
        }
    }

    #[tokio::test]
    async fn lines_that_arrive_later_wake_a_tab() {
        let (feed, sender) = LogFeed::of_test(FEW);
        let mut events = Box::pin(log_events(Arc::clone(&feed), Some("7-0")));
        let add = async {
            tokio::task::yield_now().await;
            feed.add(&chunk("late"));
            sender.send_replace(State::Open);
        };
        let ((), event) = futures::join!(add, next(&mut events));
        assert!(event.contains("late"), "{event}");
    }
}
