//! Keeps the pods of a resolver up to date: with watches, or with repeated lists if
//! the token does not have the permission to watch.

use std::{collections::BTreeMap, time::Duration};

use futures::future::{select_all, try_join_all};
use longshore_client::{Change, Changes, View, kinds::Pod};
use longshore_model::facts::PodFacts;
use tokio::time::Instant;

use super::{Resolver, groups, select::facts};
use crate::{error::Error, tasks::Selected};

/// The interval between two lists of pods without a watch.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

type Key = (String, String);

/// The pods of one list selector.
enum Feed {
    Watched(Changes<Pod>, BTreeMap<Key, PodFacts>),
    /// The instant is the time of the next list.
    Listed(View<Pod>, Instant, BTreeMap<Key, PodFacts>),
}

fn key(pod: &PodFacts) -> Key {
    (
        pod.metadata.namespace().to_owned(),
        pod.metadata.name.clone(),
    )
}

fn by_key(pods: Vec<PodFacts>) -> BTreeMap<Key, PodFacts> {
    pods.into_iter().map(|pod| (key(&pod), pod)).collect()
}

impl Feed {
    async fn open(resolver: &Resolver, view: View<Pod>) -> Result<Self, Error> {
        match view.cache().await {
            Ok(cache) => {
                let mut feed = Self::Watched(cache.subscribe(), BTreeMap::new());
                feed.apply_pending()?;
                Ok(feed)
            }
            // Without permission to watch, the token may still have permission to
            // list. If it does not, the error names that permission.
            Err(error) if error.code() == Some(403) => {
                let pods = resolver.list(&view).await?;
                tracing::info!(%error, "listing pods every second because the token cannot watch them");
                Ok(Self::Listed(
                    view,
                    Instant::now() + LIST_INTERVAL,
                    by_key(pods),
                ))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn pods(&self) -> &BTreeMap<Key, PodFacts> {
        match self {
            Self::Watched(_, pods) | Self::Listed(_, _, pods) => pods,
        }
    }

    fn apply(pods: &mut BTreeMap<Key, PodFacts>, change: &Change<Pod>) -> Result<(), Error> {
        let pod = facts(change.item())?;
        match change {
            Change::Upsert(_) => pods.insert(key(&pod), pod),
            Change::Gone(_) => pods.remove(&key(&pod)),
        };
        Ok(())
    }

    /// Applies all changes that have arrived.
    fn apply_pending(&mut self) -> Result<(), Error> {
        if let Self::Watched(changes, pods) = self {
            while let Some(change) = changes.try_next() {
                Self::apply(pods, &change)?;
            }
        }
        Ok(())
    }

    /// Waits for a change. The future may be dropped at any time.
    async fn changed(&mut self, resolver: &Resolver) -> Result<(), Error> {
        match self {
            Self::Watched(changes, pods) => {
                let change = changes.next().await.ok_or(Error::Closed)?;
                Self::apply(pods, &change)
            }
            Self::Listed(view, next_list, pods) => loop {
                tokio::time::sleep_until(*next_list).await;
                let now = by_key(resolver.list(view).await?);
                *next_list = Instant::now() + LIST_INTERVAL;
                if now != *pods {
                    *pods = now;
                    return Ok(());
                }
            },
        }
    }
}

/// All pods of a resolver.
pub(super) struct PodFeeds {
    resolver: Resolver,
    feeds: Vec<Feed>,
}

impl PodFeeds {
    pub(super) async fn open(resolver: &Resolver) -> Result<Self, Error> {
        let selectors = groups::list_selectors(&resolver.mapping);
        let feeds = selectors
            .iter()
            .map(async |selector| Feed::open(resolver, resolver.view(selector)?).await);
        Ok(Self {
            feeds: try_join_all(feeds).await?,
            resolver: resolver.clone(),
        })
    }

    /// Returns the current pods of each selector.
    pub(super) fn selected(&self) -> Vec<Selected<'_>> {
        // A pod that two list selectors match counts once.
        let mut pods: BTreeMap<&Key, &PodFacts> = BTreeMap::new();
        for feed in &self.feeds {
            pods.extend(feed.pods());
        }
        let pods: Vec<&PodFacts> = pods.into_values().collect();
        groups::select(&self.resolver.mapping, &pods)
    }

    /// Waits for a change and applies all changes that have arrived. If there are
    /// no selectors, it never returns. The future may be dropped at any time; no
    /// change is lost.
    pub(super) async fn changed(&mut self) -> Result<(), Error> {
        let resolver = &self.resolver;
        let waiting = self
            .feeds
            .iter_mut()
            .map(|feed| Box::pin(feed.changed(resolver)));
        let waiting: Vec<_> = waiting.collect();
        if waiting.is_empty() {
            return std::future::pending().await;
        }
        select_all(waiting).await.0?;
        self.feeds.iter_mut().try_for_each(Feed::apply_pending)
    }
}
