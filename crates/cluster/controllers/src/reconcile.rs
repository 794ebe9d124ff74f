//! The loop that controllers share: it observes the changes of caches and
//! reconciles the queued keys.

use std::{fmt::Debug, hash::Hash};

use longshore_client::{Cache, Change, Error, Object};

use crate::{
    guard,
    key::Key,
    queue::{Next, Queue},
};

/// Passes every object in a cache to `note` before it returns. The returned future
/// passes on the changes until the cluster is closed. `what` names the controller
/// in the log.
pub(crate) fn feed<K, F>(
    what: &'static str,
    cache: &Cache<K>,
    note: F,
) -> impl Future<Output = ()> + use<K, F>
where
    K: Object,
    F: Fn(Key, &Change<K>),
{
    let mut changes = cache.subscribe();
    let note = move |change: &Change<K>| {
        let key = Key::of(change.item());
        guard::change(what, &key, &mut || note(key.clone(), change));
    };
    while let Some(change) = changes.try_next() {
        note(&change);
    }
    async move {
        while let Some(change) = changes.next().await {
            note(&change);
        }
    }
}

/// Reconciles the keys of a queue with `workers` concurrent workers, until the
/// feeds end. Create the feeds first, so that all objects are known before the
/// first decision.
pub(crate) async fn run<K, T>(
    what: &'static str,
    workers: usize,
    queue: &Queue<K>,
    feeds: impl Future,
    reconcile: impl Fn(K) -> T + Sync,
) where
    K: Clone + Debug + Eq + Hash + Ord + Send + Sync + 'static,
    T: Future<Output = Result<Next, Error>> + Send,
{
    tokio::select! {
        _ = feeds => {}
        () = queue.work(what, workers, reconcile) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{sync::Arc, time::Duration};

    use longshore_apiserver::{ApiServer, NoLogs, NoStreams};
    use longshore_client::Cluster;
    use longshore_engine::Engine;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn existing_objects_are_noted_first_and_closing_the_cluster_ends_the_loop() {
        let server = ApiServer::new(longshore_apiserver::Options {
            engine: Engine::open(longshore_engine::Options::default()).unwrap(),
            token: None,
            authorization: longshore_apiserver::AuthorizationMode::Rbac,
            token_key: None,
            node_logs: Arc::new(NoLogs),
            node_streams: Arc::new(NoStreams),
            faults: false,
            warn_unhandled_kinds: false,
        });
        let cluster = Cluster::from_service(server.service(), "default");
        let maps = cluster.configmaps().in_namespace("default").unwrap();
        let create = async |name: &str| {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            maps.create(&map).await.unwrap();
        };
        create("a").await;
        create("b").await;
        let cache = maps.cache().await.unwrap();

        let (queue, noted) = (
            Queue::new(&longshore_clock::Clock::system()),
            Mutex::new(Vec::new()),
        );
        let feed = feed("test", &cache, |key, _| {
            noted.lock().push(key.name.clone());
            queue.add(key);
        });
        assert_eq!(*noted.lock(), ["a", "b"]);

        let reconcile = async |key: Key| {
            match key.name.as_str() {
                "a" => create("c").await,
                "c" => cluster.close(),
                _ => {}
            }
            Ok(Next::Done)
        };
        let run = run("test", 1, &queue, feed, reconcile);
        tokio::time::timeout(Duration::from_secs(60), run)
            .await
            .unwrap();
        assert_eq!(*noted.lock(), ["a", "b", "c"]);
    }
}
