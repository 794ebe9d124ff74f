//! The same without `async`: points that a script meets.

use std::time::Duration;

use longshore::{
    blocking::{Cluster, Item, View, WatchEvent},
    client::{DeleteOptions, Error, kinds::ConfigMap, until},
};
use longshore_conformance::Judge;
use serde_json::json;

use crate::common::SOON;

/// A server, and a blocking client of it; the runtime drives the server.
struct Script {
    cluster: Cluster,
    judge: Judge,
    _runtime: tokio::runtime::Runtime,
}

impl Script {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let judge = runtime.block_on(Judge::start());
        let cluster = Cluster::from_kubeconfig(Some(judge.kubeconfig()), None).unwrap();
        Self {
            cluster,
            judge,
            _runtime: runtime,
        }
    }

    fn maps(&self) -> View<ConfigMap> {
        let maps = self.cluster.configmaps();
        maps.in_namespace(self.judge.namespace()).unwrap()
    }

    fn map(&self, name: &str) -> Item<ConfigMap> {
        let data =
            json!({"metadata": {"name": name, "labels": {"own": "yes"}}, "data": {"k": "v"}});
        self.maps().create(&data).unwrap()
    }
}

#[test]
fn point_21_blocking_items_are_read_and_changed() {
    let script = Script::start();
    let map = script.map("a");
    assert_eq!(map.data().unwrap()["k"], "v");
    let changed = map.labels().set("x", "1").unwrap();
    assert_eq!(changed.labels().get("x"), Some("1"));
    assert_eq!(map.fetch().unwrap(), changed);
    let noted = changed.annotations().set("note", "text").unwrap();
    assert_eq!(noted.annotations().len(), 1);
    let updated = script.maps().update("a", |object| {
        object["data"]["k"] = "w".into();
        Ok(())
    });
    assert_eq!(updated.unwrap().data().unwrap()["k"], "w");
    let waited = script.maps().wait("a", until::ready, SOON).unwrap();
    waited.delete(&DeleteOptions::default()).unwrap();
    waited.wait_gone(SOON).unwrap();
    assert!(script.maps().find("a").unwrap().is_none());
}

#[test]
fn point_14_blocking_lists_and_pages() {
    let script = Script::start();
    for name in ["a", "b", "c"] {
        script.map(name);
    }
    let maps = script.maps().filter("own").unwrap();
    let list = maps.list().unwrap();
    let names: Vec<&str> = list.items.iter().map(|item| item.name()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let streamed: Vec<Item<ConfigMap>> = maps.stream().map(Result::unwrap).collect();
    assert_eq!(streamed, list.items);
    let cache = maps.cache().unwrap();
    assert_eq!(cache.len(), 3);
    let mut changes = cache.subscribe();
    script.map("d");
    while changes.next(Some(SOON)).unwrap().item().name() != "d" {}
}

#[test]
fn point_19_blocking_watches_wait_so_long_and_no_longer() {
    let script = Script::start();
    let mut watch = script.maps().filter("own").unwrap().watch().unwrap();
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        assert!(watch.next(Some(wait)).unwrap_err().is_timeout());
    }
    let map = script.map("a");
    assert!(matches!(watch.next(None).unwrap(), WatchEvent::Added(item) if item == map));
    script.map("b");
    let event = Iterator::next(&mut watch).unwrap().unwrap();
    assert_eq!(event.item().unwrap().name(), "b");
    watch.close();
    assert!(Iterator::next(&mut watch).is_none());
}

#[test]
fn point_08_blocking_requests_by_path() {
    let script = Script::start();
    let version = script.cluster.proxy().get("/version", &[]).unwrap();
    assert!(version["gitVersion"].as_str().unwrap().starts_with('v'));
    script.cluster.close();
    let refused = script.cluster.proxy().get("/version", &[]);
    assert!(matches!(refused, Err(Error::Closed)));
}

#[tokio::test]
async fn point_31_blocking_calls_in_a_runtime_are_refused() {
    let refused = Cluster::from_url("http://127.0.0.1:1/")
        .unwrap()
        .pods()
        .list();
    let text = refused.unwrap_err().to_string();
    assert!(
        text.starts_with("a blocking call inside an asynchronous runtime"),
        "{text}"
    );
}
