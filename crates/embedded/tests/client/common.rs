//! Changes that never rest, and what a watcher makes of them.

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

/// Nothing takes so long, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long trouble lasts.
pub(crate) fn soak() -> Duration {
    let seconds = std::env::var("LONGSHORE_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(1.0, |text| text.parse().unwrap());
    Duration::from_secs_f64(seconds)
}

/// A client that does not wait long for anything.
pub(crate) fn hasty(cluster: &Cluster) -> Cluster {
    let mut timing = Timing::default();
    timing.first_wait = Duration::from_millis(1);
    timing.longest_wait = Duration::from_millis(20);
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

/// Makes, changes and deletes until it is told to stop.
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

    /// How many changes there were.
    pub(crate) async fn stop(self) -> usize {
        self.stop.store(true, Relaxed);
        self.task.await.unwrap()
    }
}

pub(crate) type State = BTreeMap<String, String>;

/// What a watcher knows: names and versions.
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
                assert_eq!(before, None, "{} was there", map.name());
            }
            WatchEvent::Modified(map) => {
                let before = self.insert(map.name(), map.version());
                let before = before.unwrap_or_else(|| panic!("{} is new", map.name()));
                assert_ne!(before, map.version(), "told twice");
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

    /// Applies what comes for a while.
    pub(crate) async fn follow(&mut self, watch: &mut Watch<ConfigMap>, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match watch.next(Some(left)).await {
                Ok(event) => self.apply(event),
                Err(error) => assert!(error.is_timeout(), "{error}"),
            }
        }
    }

    /// Applies what comes until it is as the list.
    pub(crate) async fn settle(&mut self, watch: &mut Watch<ConfigMap>, cluster: &Cluster) {
        let list = maps(cluster).list().await.unwrap();
        let wanted = state(list.items.iter().map(|map| (map.name(), map.version())));
        let settling = async {
            while self.state != wanted {
                self.apply(watch.next(None).await.unwrap());
            }
        };
        let settled = tokio::time::timeout(PATIENCE, settling).await;
        assert!(settled.is_ok(), "{:?} instead of {wanted:?}", self.state);
        // And it stays so.
        self.follow(watch, Duration::from_millis(50)).await;
        assert_eq!(self.state, wanted);
    }

    /// Waits until a cache knows the same.
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
        tokio::time::timeout(PATIENCE, same).await.unwrap();
    }
}

pub(crate) fn state<'a>(items: impl Iterator<Item = (&'a str, &'a str)>) -> State {
    items
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect()
}
