//! Server-sent events with the changed parts of a page.

use std::{collections::HashMap, io, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::json;
use tokio::time::timeout;

use super::{Feed, Snapshot};
use crate::pages::PagePart;

/// A comment is sent after this time, which shows both sides that the connection is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The state of a page for one tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parts {
    /// The parts of its page.
    Page(Vec<PagePart>),
    /// The run of its page does not exist any more, and the state of the connection.
    Gone(PagePart),
}

/// A tab that receives events.
struct Tab<F> {
    feed: Feed,
    render: F,
    /// The interval at which the page is rendered even without changes.
    interval: Option<Duration>,
    sent: HashMap<&'static str, String>,
    is_first: bool,
    is_over: bool,
}

/// The events of a tab: one for each change, with the changed parts. `render` is called when the
/// connection has accepted the previous event. Its argument is true if only the time has changed.
pub(crate) fn part_events(
    feed: Feed,
    interval: Option<Duration>,
    render: impl Fn(&Snapshot, bool) -> Parts + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let tab = Tab {
        feed,
        render,
        interval,
        sent: HashMap::new(),
        is_first: true,
        is_over: false,
    };
    stream::unfold(tab, async |mut tab| {
        let event = tab.next().await?;
        Some((Ok(Bytes::from(event)), tab))
    })
}

impl<F: Fn(&Snapshot, bool) -> Parts> Tab<F> {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if std::mem::take(&mut self.is_first) {
            return Some(self.event(false).unwrap_or_else(|| ":\n\n".to_owned()));
        }
        let wait = self.interval.unwrap_or(HEARTBEAT);
        let event = match timeout(wait, self.feed.changed()).await {
            Ok(false) => return None,
            Ok(true) => self.event(false),
            Err(_) => self.event(true),
        };
        Some(event.unwrap_or_else(|| ":\n\n".to_owned()))
    }

    /// The event for the newest state, if something has changed. A tick renders only what changes
    /// with time.
    fn event(&mut self, is_tick: bool) -> Option<String> {
        let snapshot = self.feed.0.borrow_and_update().clone();
        let (parts, is_gone) = match (self.render)(&snapshot, is_tick) {
            Parts::Page(parts) => (parts, false),
            Parts::Gone(part) => (vec![part], true),
        };
        let mut changed = Vec::new();
        for part in parts {
            if self.sent.get(part.id) != Some(&part.html) {
                changed.push(json!({"id": part.id, "html": part.html}));
                self.sent.insert(part.id, part.html);
            }
        }
        self.is_over = is_gone;
        let name = match is_gone {
            true => "gone",
            false if changed.is_empty() => return None,
            false => "parts",
        };
        Some(format!("event: {name}\ndata: {}\n\n", json!(changed)))
    }
}
