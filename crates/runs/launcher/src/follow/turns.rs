//! The order in which the logs of a task's attempts are read: each after the previous attempt's, so
//! that the lines of the attempts are not mixed.

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::watch, time::timeout};

/// The maximum time that a log waits for the previous attempt's log, which may never end if its
/// node is lost.
pub(super) const LONGEST: Duration = Duration::from_secs(2);

/// The last turn of each key.
#[derive(Debug)]
pub(super) struct Turns<K>(BTreeMap<K, watch::Receiver<()>>);

/// A turn, which lasts until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    before: Option<watch::Receiver<()>>,
    _lasts: watch::Sender<()>,
}

impl<K: Ord> Turns<K> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The turn after the last one of this key.
    pub(super) fn next(&mut self, key: K) -> Turn {
        let (lasts, ended) = watch::channel(());
        Turn {
            before: self.0.insert(key, ended),
            _lasts: lasts,
        }
    }
}

impl Turn {
    /// Waits until the previous turn ends, at most this long.
    pub(super) async fn begin(&mut self, longest: Duration) {
        if let Some(mut before) = self.before.take() {
            // Nothing is sent: the wait ends when the sender is dropped.
            let _ = timeout(longest, before.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_turn_begins_when_the_one_before_has_ended() {
        let mut turns = Turns::new();
        let (mut first, mut second) = (turns.next("a"), turns.next("a"));
        let mut other = turns.next("b");
        first.begin(LONGEST).await;
        other.begin(LONGEST).await;
        let mut waiting = Box::pin(second.begin(Duration::from_secs(600)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        waiting.await;
    }

    #[tokio::test]
    async fn a_turn_that_does_not_end_is_not_waited_for_forever() {
        let mut turns = Turns::new();
        let (_first, mut second) = (turns.next("a"), turns.next("a"));
        second.begin(Duration::from_millis(1)).await;
    }
}
