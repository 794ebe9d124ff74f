//! The blocking client.

use std::{
    io::{Read, Write},
    time::Duration,
};

use longshore::{
    blocking::{Cluster, Item, View, WatchEvent},
    client::{DeleteOptions, Error, ExecOptions, kinds::ConfigMap, until},
};
use longshore_conformance::{ApiTest, Server};
use serde_json::json;

use crate::common::TIMEOUT;

/// A server and a blocking client. The runtime runs the server.
struct BlockingTest {
    cluster: Cluster,
    test: ApiTest,
    _runtime: tokio::runtime::Runtime,
}

impl BlockingTest {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let test = runtime.block_on(ApiTest::start());
        let cluster = Cluster::from_kubeconfig(Some(test.kubeconfig()), None).unwrap();
        Self {
            cluster,
            test,
            _runtime: runtime,
        }
    }

    fn maps(&self) -> View<ConfigMap> {
        let maps = self.cluster.configmaps();
        maps.in_namespace(self.test.namespace()).unwrap()
    }

    fn map(&self, name: &str) -> Item<ConfigMap> {
        let data =
            json!({"metadata": {"name": name, "labels": {"own": "yes"}}, "data": {"k": "v"}});
        self.maps().create(&data).unwrap()
    }
}

#[test]
fn point_21_blocking_items_are_read_and_changed() {
    let blocking = BlockingTest::start();
    let map = blocking.map("a");
    assert_eq!(map.data().unwrap()["k"], "v");
    let changed = map.labels().set("x", "1").unwrap();
    assert_eq!(changed.labels().get("x"), Some("1"));
    assert_eq!(map.fetch().unwrap(), changed);
    let noted = changed.annotations().set("note", "text").unwrap();
    assert_eq!(noted.annotations().len(), 1);
    let updated = blocking.maps().update("a", |map| {
        map.data
            .get_or_insert_default()
            .insert("k".into(), "w".into());
        Ok(())
    });
    assert_eq!(updated.unwrap().data().unwrap()["k"], "w");
    let waited = blocking.maps().wait("a", until::ready, TIMEOUT).unwrap();
    waited.delete(&DeleteOptions::default()).unwrap();
    waited.wait_gone(TIMEOUT).unwrap();
    assert!(blocking.maps().find("a").unwrap().is_none());
}

#[test]
fn point_14_blocking_lists_and_pages() {
    let blocking = BlockingTest::start();
    for name in ["a", "b", "c"] {
        blocking.map(name);
    }
    let maps = blocking.maps().filter("own").unwrap();
    let list = maps.list().unwrap();
    let names: Vec<&str> = list.items.iter().map(|item| item.name()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let streamed: Vec<Item<ConfigMap>> = maps.stream().map(Result::unwrap).collect();
    assert_eq!(streamed, list.items);
    let cache = maps.cache().unwrap();
    assert_eq!(cache.len(), 3);
    let mut changes = cache.subscribe();
    blocking.map("d");
    while changes.next(Some(TIMEOUT)).unwrap().item().name() != "d" {}
}

#[test]
fn point_19_blocking_watches_time_out() {
    let blocking = BlockingTest::start();
    let mut watch = blocking.maps().filter("own").unwrap().watch().unwrap();
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        assert!(watch.next(Some(wait)).unwrap_err().is_timeout());
    }
    let map = blocking.map("a");
    assert!(matches!(watch.next(None).unwrap(), WatchEvent::Added(item) if item == map));
    blocking.map("b");
    let event = Iterator::next(&mut watch).unwrap().unwrap();
    assert_eq!(event.item().unwrap().name(), "b");
    watch.close();
    assert!(Iterator::next(&mut watch).is_none());
}

#[test]
fn point_08_blocking_requests_by_path() {
    let blocking = BlockingTest::start();
    let version = blocking.cluster.proxy().get("/version", &[]).unwrap();
    assert!(version["gitVersion"].as_str().unwrap().starts_with('v'));
    blocking.cluster.close();
    let refused = blocking.cluster.proxy().get("/version", &[]);
    assert!(matches!(refused, Err(Error::Closed)));
}

#[tokio::test]
async fn point_31_blocking_calls_in_a_runtime_are_rejected() {
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

#[test]
fn point_45_blocking_sessions_are_read_and_written() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if runtime.block_on(crate::sessions::lacks_a_node()) {
        return;
    }
    let server = runtime.block_on(Server::start());
    let cluster = Cluster::from_kubeconfig(Some(&server.kubeconfig()), None).unwrap();
    let pods = cluster.pods().in_namespace("default").unwrap();
    let script = "import os, socket\ns = socket.create_server((os.environ['IP'], 7009))\nwhile True:\n c, _ = s.accept()\n c.sendall(c.recv(100).upper())\n c.close()\n";
    let ip = json!({"fieldRef": {"fieldPath": "status.podIP"}});
    let container = json!({
        "name": "main",
        "image": "any",
        "command": ["python3", "-c", script],
        "env": [{"name": "IP", "valueFrom": ip}],
    });
    let pod = json!({"metadata": {"name": "box"}, "spec": {"containers": [container]}});
    pods.create(&pod).unwrap();
    let pod = pods.wait("box", until::ready, TIMEOUT).unwrap();

    let output = pod.output(["sh", "-c", "echo out; exit 3"], None).unwrap();
    assert_eq!((output.code, &output.stdout[..]), (3, &b"out\n"[..]));
    let options = ExecOptions {
        stdin: true,
        ..ExecOptions::default()
    };
    let mut session = pod.exec(["tr", "a-z", "A-Z"], &options).unwrap();
    let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    input.write_all(b"hello").unwrap();
    drop(input);
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), session.wait().unwrap()), ("HELLO", 0));

    let forward = pod.port_forward(7009).unwrap();
    let begun = std::time::Instant::now();
    // The program may not listen yet.
    let text = loop {
        let mut stream = forward.connect().unwrap();
        let _ = stream.write_all(b"again");
        let mut text = String::new();
        match stream.read_to_string(&mut text) {
            Ok(_) => break text,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(text, "AGAIN");
    runtime.block_on(server.stop());
}
