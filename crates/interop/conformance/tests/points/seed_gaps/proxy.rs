//! Points 1 and 6 to 10: the URL of the API root, connections, and requests by path.

use std::{sync::atomic::Ordering::SeqCst, time::Duration};

use futures::{StreamExt, future::join_all};
use longshore::{
    Cluster,
    client::{FieldSelector, Patch, kinds::ConfigMap},
};
use serde_json::json;

use super::counting::Counting;
use crate::common::{Fixture, TIMEOUT, invalid};

#[tokio::test]
async fn point_01_the_url_of_the_api_root_is_accepted() {
    let server = Counting::start().await;
    for end in ["", "/", "/api", "/api/", "/base", "/base/api/"] {
        let cluster = Cluster::from_url(&format!("http://{}{end}", server.address)).unwrap();
        cluster.proxy().get("api/v1/nodes", &[]).await.unwrap();
    }
    let expected = ["", "", "", "", "/base", "/base"].map(|base| format!("{base}/api/v1/nodes"));
    assert_eq!(*server.paths.lock().unwrap(), expected);
    // A host can have this name, and a path can have this end.
    for (url, shown) in [
        ("http://api", "http://api"),
        ("http://api/api", "http://api"),
        ("http://localhost/my-api", "http://localhost/my-api"),
        ("http://localhost/api/api", "http://localhost/api"),
    ] {
        assert_eq!(Cluster::from_url(url).unwrap().url(), shown);
    }
}

#[tokio::test]
async fn point_06_requests_share_pooled_connections() {
    let server = Counting::start().await;
    let cluster = Cluster::from_url(&format!("http://{}", server.address)).unwrap();
    let (proxy, clone) = (cluster.proxy(), cluster.clone());
    for _ in 0..5 {
        proxy.get("/version", &[]).await.unwrap();
        clone.proxy().get("/version", &[]).await.unwrap();
    }
    assert_eq!(server.accepted.load(SeqCst), 1);

    // Concurrent requests need more connections, which later requests reuse.
    for _ in 0..3 {
        let requests = (0..4).map(|_| proxy.get("/version", &[]));
        for outcome in join_all(requests).await {
            outcome.unwrap();
        }
    }
    let accepted = server.accepted.load(SeqCst);
    assert!((2..=4).contains(&accepted), "{accepted} connections");
    assert_eq!(server.paths.lock().unwrap().len(), 22);

    // The connections are closed with the last handle.
    cluster.close();
    drop((cluster, clone, proxy));
    let closed = async {
        while server.open.load(SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, closed).await.unwrap();
}

#[tokio::test]
async fn point_08_paths_are_given_in_components() {
    let fixture = Fixture::start().await;
    let proxy = fixture.cluster.proxy();
    let namespace = fixture.namespace().to_owned();
    let maps = ["api", "v1", "namespaces", &namespace, "configmaps"];
    let data = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let made = proxy.post(maps, &[], &data).await.unwrap();
    assert_eq!(made["metadata"]["name"], "a");
    let map = [&maps[..], &["a"]].concat();
    let mut read = proxy.get(&map, &[]).await.unwrap();
    read["data"]["k"] = "w".into();
    let put = proxy.put(&map, &[], &read).await.unwrap();
    assert_eq!(put["data"]["k"], "w");
    let patch = Patch::strategic(json!({"data": {"k": "x"}}));
    let patched = proxy.patch(&map[..], &[], &patch).await.unwrap();
    assert_eq!(patched["data"]["k"], "x");
    proxy.delete(map.clone(), &[], None).await.unwrap();
    assert!(proxy.get(map, &[]).await.unwrap_err().is_not_found());

    // The path of an API is one component; a slash in a name is not a separator.
    let by_path = ["/api/v1", "namespaces", &namespace];
    let read = proxy.get(by_path, &[]).await.unwrap();
    assert_eq!(read["metadata"]["name"], namespace);
    let up = format!("../{namespace}");
    let refused = proxy.get(["/api/v1", "namespaces", &up], &[]).await;
    assert!(refused.unwrap_err().code().is_some_and(|code| code >= 400));
    let empty = invalid(proxy.get(["api", "v1", "namespaces", ""], &[]).await);
    assert!(empty.starts_with("invalid path component \"\""), "{empty}");
}

#[tokio::test]
async fn point_10_watches_by_path_select_by_any_field() {
    let fixture = Fixture::start().await;
    let (proxy, maps) = (
        fixture.cluster.proxy(),
        fixture.test.path("v1", "configmaps"),
    );
    let (_, version) = fixture.test.list(&maps).await;
    let fields = FieldSelector::everything().with("data.colour", "blue");
    let watch = proxy.watch_since(&maps, &version).await.unwrap();
    let mut watch = watch.matching(fields).unwrap();
    let late = watch.next(Some(Duration::from_millis(10))).await;
    assert!(late.unwrap_err().is_timeout());
    for (name, colour) in [("a", "red"), ("b", "blue")] {
        let data = json!({"metadata": {"name": name}, "data": {"colour": colour}});
        fixture.view::<ConfigMap>().create(&data).await.unwrap();
    }
    let event = watch.next(Some(TIMEOUT)).await.unwrap().unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "b");
    assert!(
        watch
            .next(Some(Duration::ZERO))
            .await
            .unwrap_err()
            .is_timeout()
    );
    watch.close();
    assert!(watch.next(None).await.unwrap().is_none());

    // Without a selector and as a stream; an empty selector is refused.
    let all = proxy.watch_since(&maps, &version).await.unwrap();
    let names: Vec<_> = all
        .take(2)
        .map(|event| event.unwrap()["object"]["metadata"]["name"].clone())
        .collect()
        .await;
    assert_eq!(names, ["a", "b"]);
    let watch = proxy.watch(&maps, &[]).await.unwrap();
    let empty = invalid(watch.matching(FieldSelector::everything()));
    assert!(
        empty.starts_with("matching(): an empty selector"),
        "{empty}"
    );
}
