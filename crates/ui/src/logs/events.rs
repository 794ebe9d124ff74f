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
        // Lines of another numbering, which the tab has, come again.
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
            // Before the ring is read, so that no change is missed.
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
                // The worker has ended without a word.
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
