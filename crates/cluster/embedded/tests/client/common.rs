//! Constant changes, and the state that a watcher derives from its events.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use longshore_client::{Cache, Cluster, Timing, View, Watch, WatchEvent, kinds::ConfigMap};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// An upper bound for any step, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Duration of the faults.
pub(crate) fn soak() -> Duration {
    let seconds = std::env::var("LONGSHORE_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(1.0, |text| text.parse().unwrap());
    Duration::from_secs_f64(seconds)
}

/// A client with short timeouts.
pub(crate) fn with_short_timeouts(cluster: &Cluster) -> Cluster {
    let mut timing = Timing::default();
    timing.initial_backoff = Duration::from_millis(1);
    timing.max_backoff = Duration::from_millis(20);
    timing.watch_idle = Duration::from_millis(150);
    cluster.clone().with_timing(timing)
}

pub(crate) fn maps(cluster: &Cluster) -> View<ConfigMap> {
    cluster.configmaps().in_namespace("default").unwrap()
}

pub(crate) fn map(name: &str, value: usize) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"part": format!("{}", value % 3)}},
        "data": {"value": value.to_string()},
    })
}

/// Creates, changes and deletes objects until it is stopped.
pub(crate) struct Churn {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Churn {
    pub(crate) fn start(cluster: &Cluster) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (view, stopped) = (maps(cluster), stop.clone());
        let task = tokio::spawn(async move {
            let mut changes = 0;
            while !stopped.load(Relaxed) {
                let name = format!("map-{}", changes * 7 % 20);
                if view.find(&name).await.unwrap().is_none() {
                    view.create(&map(&name, changes)).await.unwrap();
                } else if changes % 3 == 0 {
                    let options = longshore_client::DeleteOptions::default();
                    view.delete(&name, &options).await.unwrap();
                } else {
                    let labels = map(&name, changes)["metadata"]["labels"].clone();
                    let change = json!({"metadata": {"labels": labels}, "data": {"value": changes.to_string()}});
                    let patch = longshore_client::Patch::merge(change);
                    view.patch(&name, &patch).await.unwrap();
                }
                changes += 1;
                tokio::time::sleep(Duration::from_millis(4)).await;
            }
            changes
        });
        Self { stop, task }
    }

    /// Stops the changes. Returns the number of changes.
    pub(crate) async fn stop(self) -> usize {
        self.stop.store(true, Relaxed);
        self.task.await.unwrap()
    }
}

pub(crate) type State = BTreeMap<String, String>;

/// The state that a watcher derives: names and versions.
#[derive(Default)]
pub(crate) struct Mirror {
    pub(crate) state: State,
    pub(crate) resyncs: usize,
    pub(crate) events: usize,
}

impl Mirror {
    pub(crate) fn apply(&mut self, event: WatchEvent<ConfigMap>) {
        self.events += 1;
        match event {
            WatchEvent::Added(map) => {
                let before = self.insert(map.name(), map.version());
                assert_eq!(before, None, "{} existed", map.name());
            }
            WatchEvent::Modified(map) => {
                let before = self.insert(map.name(), map.version());
                let before = before.unwrap_or_else(|| panic!("{} is new", map.name()));
                assert_ne!(before, map.version(), "duplicate event");
            }
            WatchEvent::Deleted(map) => {
                assert!(self.state.remove(map.name()).is_some(), "{}", map.name());
            }
            WatchEvent::Resync(list) => {
                self.resyncs += 1;
                self.state = state(list.items.iter().map(|map| (map.name(), map.version())));
            }
        }
    }

    fn insert(&mut self, name: &str, version: &str) -> Option<String> {
        self.state.insert(name.to_owned(), version.to_owned())
    }

    /// Applies events for a while.
    pub(crate) async fn follow(&mut self, watch: &mut Watch<ConfigMap>, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match watch.next(Some(left)).await {
                Ok(event) => self.apply(event),
                Err(error) => assert!(error.is_timeout(), "{error}"),
            }
        }
    }

    /// Applies events until the state equals the list.
    pub(crate) async fn settle(&mut self, watch: &mut Watch<ConfigMap>, cluster: &Cluster) {
        let list = maps(cluster).list().await.unwrap();
        let wanted = state(list.items.iter().map(|map| (map.name(), map.version())));
        let settling = async {
            while self.state != wanted {
                self.apply(watch.next(None).await.unwrap());
            }
        };
        let settled = tokio::time::timeout(TIMEOUT, settling).await;
        assert!(settled.is_ok(), "{:?}, expected {wanted:?}", self.state);
        // The state must not change anymore.
        self.follow(watch, Duration::from_millis(50)).await;
        assert_eq!(self.state, wanted);
    }

    /// Waits until a cache has the same state.
    pub(crate) async fn agrees(&self, cache: &Cache<ConfigMap>) {
        let same = async {
            loop {
                let items = cache.items();
                if state(items.iter().map(|map| (map.name(), map.version()))) == self.state {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, same).await.unwrap();
    }
}

pub(crate) fn state<'a>(items: impl Iterator<Item = (&'a str, &'a str)>) -> State {
    items
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect()
}
