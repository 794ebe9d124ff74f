//! The pods of a resolver, followed: by watches, or by lists again and again
//! where the token may not watch.

use std::{collections::BTreeMap, time::Duration};

use futures::future::{select_all, try_join_all};
use longshore_client::{Change, Changes, View, kinds::Pod};
use tokio::time::Instant;

use super::{Resolver, groups, select::facts};
use crate::{error::Error, facts::PodFacts, tasks::Selected};

/// How often lists are asked for.
const AGAIN: Duration = Duration::from_secs(1);

type Key = (String, String);

/// The pods of one question.
enum Feed {
    Watched(Changes<Pod>, BTreeMap<Key, PodFacts>),
    /// With the moment to list again.
    Listed(View<Pod>, Instant, BTreeMap<Key, PodFacts>),
}

fn key(pod: &PodFacts) -> Key {
    (pod.metadata.namespace.clone(), pod.metadata.name.clone())
}

fn keyed(pods: Vec<PodFacts>) -> BTreeMap<Key, PodFacts> {
    pods.into_iter().map(|pod| (key(&pod), pod)).collect()
}

impl Feed {
    async fn open(resolver: &Resolver, view: View<Pod>) -> Result<Self, Error> {
        match view.cache().await {
            Ok(cache) => {
                let mut feed = Self::Watched(cache.subscribe(), BTreeMap::new());
                feed.take()?;
                Ok(feed)
            }
            // May it list, at least? Else that is the right to ask for.
            Err(error) if error.code() == Some(403) => {
                let pods = resolver.list(&view).await?;
                tracing::info!(%error, "pods are listed every second, for they cannot be watched");
                Ok(Self::Listed(view, Instant::now() + AGAIN, keyed(pods)))
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

    /// Takes what has come.
    fn take(&mut self) -> Result<(), Error> {
        if let Self::Watched(changes, pods) = self {
            while let Some(change) = changes.try_next() {
                Self::apply(pods, &change)?;
            }
        }
        Ok(())
    }

    /// Waits until something has changed. May be given up at any time.
    async fn changed(&mut self, resolver: &Resolver) -> Result<(), Error> {
        match self {
            Self::Watched(changes, pods) => {
                let change = changes.next().await.ok_or(Error::Closed)?;
                Self::apply(pods, &change)
            }
            Self::Listed(view, again, pods) => loop {
                tokio::time::sleep_until(*again).await;
                let now = keyed(resolver.list(view).await?);
                *again = Instant::now() + AGAIN;
                if now != *pods {
                    *pods = now;
                    return Ok(());
                }
            },
        }
    }
}

/// All pods of a resolver.
pub(super) struct Live {
    resolver: Resolver,
    feeds: Vec<Feed>,
}

impl Live {
    pub(super) async fn open(resolver: &Resolver) -> Result<Self, Error> {
        let questions = groups::questions(&resolver.mapping);
        let feeds = questions
            .iter()
            .map(async |question| Feed::open(resolver, resolver.view(question)?).await);
        Ok(Self {
            feeds: try_join_all(feeds).await?,
            resolver: resolver.clone(),
        })
    }

    /// Who is there now.
    pub(super) fn selected(&self) -> Vec<Selected<'_>> {
        // A pod that two questions match is one.
        let mut pods: BTreeMap<&Key, &PodFacts> = BTreeMap::new();
        for feed in &self.feeds {
            pods.extend(feed.pods());
        }
        let pods: Vec<&PodFacts> = pods.into_values().collect();
        groups::select(&self.resolver.mapping, &pods)
    }

    /// Waits until something has changed, and takes all that has. For ever
    /// when nobody can come. May be given up at any time; no change is lost.
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
        self.feeds.iter_mut().try_for_each(Feed::take)
    }
}
