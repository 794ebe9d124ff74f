//! Server-sent events with a part of a page that is queried repeatedly.

use std::{io, time::Duration};

use bytes::Bytes;
use futures::{Stream, future::BoxFuture, stream};
use longshore_launcher::RunSummary;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::Feed;
use crate::{pages::PagePart, route::RunKey};

/// The shortest pause between two queries.
const INTERVAL: Duration = Duration::from_secs(3);
/// A query that takes long is repeated less often.
const REST_FACTOR: u32 = 4;
/// A comment is sent after this time.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A part that is read repeatedly.
struct Repeated<F> {
    feed: Feed,
    key: RunKey,
    read: F,
    sent: String,
    pause: Option<Duration>,
    /// The runs at the time of the last query, all of which had ended.
    ended: Option<Vec<RunSummary>>,
}

/// The events of a tab with a part that `read` renders, first immediately, and then repeatedly
/// while the run or another run of its sweep is active. The stream ends when the run is removed.
pub(crate) fn repeated_events(
    feed: Feed,
    key: RunKey,
    read: impl Fn(RunSummary) -> BoxFuture<'static, PagePart> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let part = Repeated {
        feed,
        key,
        read,
        sent: String::new(),
        pause: None,
        ended: None,
    };
    stream::unfold(part, async |mut part| {
        let event = part.next().await?;
        Some((Ok(Bytes::from(event)), part))
    })
}

impl<F: Fn(RunSummary) -> BoxFuture<'static, PagePart>> Repeated<F> {
    /// The next event. `None` if the run does not exist any more, or nothing changes any more.
    async fn next(&mut self) -> Option<String> {
        if let Some(pause) = self.pause.take() {
            sleep(pause).await;
        }
        let (run, group) = self.runs()?;
        if self.ended.as_ref() == Some(&group) {
            // Another run of the sweep may begin.
            let changed = timeout(HEARTBEAT, self.feed.changed()).await;
            return (changed != Ok(false)).then(|| ":\n\n".to_owned());
        }
        let began = Instant::now();
        let part = (self.read)(run).await;
        self.pause = Some(INTERVAL.max(began.elapsed().saturating_mul(REST_FACTOR)));
        // A run that ended during the query is read once more.
        self.ended = group.iter().all(|run| run.state.is_over()).then_some(group);
        if part.html == self.sent {
            return Some(":\n\n".to_owned());
        }
        let changed = json!([{"id": part.id, "html": part.html}]);
        self.sent = part.html;
        Some(format!("event: parts\ndata: {changed}\n\n"))
    }

    /// The run, and all runs of its sweep.
    fn runs(&mut self) -> Option<(RunSummary, Vec<RunSummary>)> {
        let snapshot = self.feed.0.borrow_and_update().clone();
        let run = snapshot.run(&self.key)?.clone();
        let group = snapshot.runs.iter().filter(|other| {
            let is_same = other.run.namespace == run.run.namespace;
            is_same
                && (other.run.name == run.run.name
                    || run.sweep.is_some() && other.sweep == run.sweep)
        });
        let group = group.cloned().collect();
        Some((run, group))
    }
}
