//! Requests, errors, retries and paging, on a fake API server.

use crate::fake::{Answer, Fake, list, pod, status};
use futures::{FutureExt, StreamExt};
use longshore_client::{
    Cluster, DeleteOptions, Error, FieldSelector, LogOptions, Patch, Timing, kinds::Any,
    model::StatusReason,
};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn lists_with_selectors_and_reads_names_and_phases() {
    let fake = Fake::new([Answer::json(200, &list(7, &[pod("a", 3), pod("b", 4)]))]);
    let view = fake
        .cluster()
        .pods()
        .in_namespace("n")
        .unwrap()
        .filter("app in (x,y)")
        .unwrap();
    let view = view
        .fields(FieldSelector::everything().with("status.phase", "Running"))
        .fields(FieldSelector::everything().with("metadata.name", "a"));
    let list = view.list().await.unwrap();
    assert_eq!(list.version, "7");
    let names: Vec<&str> = list.items.iter().map(|item| item.name()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(list.items[0].phase().unwrap().as_str(), "Running");
    let seen = &fake.requests()[0];
    assert_eq!(seen.path(), "/api/v1/namespaces/n/pods");
    assert_eq!(seen.query("labelSelector"), Some("app%20in%20%28x%2Cy%29"));
    let fields = "status.phase%3DRunning%2Cmetadata.name%3Da";
    assert_eq!(seen.query("fieldSelector"), Some(fields));
}

#[tokio::test]
async fn an_item_knows_its_type_and_compares_by_version() {
    let fake = Fake::new([
        Answer::json(200, &pod("a", 3)),
        Answer::json(200, &pod("a", 4)),
    ]);
    let view = fake.cluster().pods().in_namespace("n").unwrap();
    let (first, second) = (
        view.fetch("a").await.unwrap(),
        view.fetch("a").await.unwrap(),
    );
    assert_eq!(first.raw().unwrap()["kind"], "Pod");
    assert_eq!(first.link(), "/api/v1/namespaces/n/pods/a");
    assert_eq!(first.meta().resource_version, "3");
    assert_eq!(first, first.clone());
    assert_ne!(first, second);
    let typed: k8s_openapi::api::core::v1::Pod = first.typed().unwrap();
    assert_eq!(typed.metadata.name.as_deref(), Some("a"));
}

#[tokio::test]
async fn errors_contain_request_message_and_code() {
    let fake = Fake::new([
        Answer::status(403, "Forbidden", "pods is forbidden"),
        Answer::status(404, "NotFound", "pods \"x\" not found"),
        Answer::status(404, "NotFound", "pods \"x\" not found"),
        Answer::status(409, "AlreadyExists", "pods \"x\" already exists"),
        Answer::status(409, "Conflict", "the object has been modified"),
    ]);
    let view = fake.cluster().pods().in_namespace("n").unwrap();
    let error = view.list().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET /api/v1/namespaces/n/pods: pods is forbidden (403 Forbidden)"
    );
    assert_eq!(
        (error.code(), error.reason()),
        (Some(403), Some(&StatusReason::Forbidden))
    );
    assert!(view.fetch("x").await.unwrap_err().is_not_found());
    assert_eq!(view.find("x").await.unwrap(), None);
    let exists = view.create(&pod("x", 0)).await.unwrap_err();
    assert!(exists.is_already_exists() && !exists.is_conflict());
    assert!(
        view.replace("x", &pod("x", 1))
            .await
            .unwrap_err()
            .is_conflict()
    );
}

#[tokio::test]
async fn create_sets_type_and_namespace() {
    let fake = Fake::new([
        Answer::json(201, &pod("a", 1)),
        Answer::json(201, &pod("a", 1)),
    ]);
    let cluster = fake.cluster();
    let data = json!({"metadata": {"name": "a"}});
    cluster
        .pods()
        .in_namespace("n")
        .unwrap()
        .create(&data)
        .await
        .unwrap();
    let data = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}});
    let item = cluster.create(&data, Some("n")).await.unwrap();
    assert_eq!(item.kind().plural, "pods");
    let seen = fake.requests();
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path()),
        ("POST", "/api/v1/namespaces/n/pods")
    );
    assert_eq!(seen[0].body["kind"], "Pod");
    assert_eq!(seen[0].body["metadata"]["namespace"], "n");
    assert_eq!(seen[1].body["metadata"]["generateName"], "a-");
}

#[tokio::test]
async fn patches_have_their_media_type() {
    let fake = Fake::new((0..5).map(|_| Answer::json(200, &pod("a", 2))));
    let view = fake.cluster().pods().in_namespace("n").unwrap();
    for patch in [
        Patch::merge(json!({})),
        Patch::strategic(json!({})),
        Patch::json(json!([])),
    ] {
        view.patch("a", &patch).await.unwrap();
    }
    view.patch_status("a", &Patch::apply(json!({"status": {}}), "me", true))
        .await
        .unwrap();
    let item = view.fetch("a").await.unwrap();
    assert_eq!(item.version(), "2");
    let seen = fake.requests();
    let types: Vec<&str> = seen.iter().map(|seen| seen.content_type.as_str()).collect();
    assert_eq!(
        types,
        [
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/json-patch+json",
            "application/apply-patch+yaml",
            "",
        ]
    );
    assert_eq!(seen[3].path(), "/api/v1/namespaces/n/pods/a/status");
    assert_eq!(
        (seen[3].query("fieldManager"), seen[3].query("force")),
        (Some("me"), Some("true"))
    );
    assert_eq!(seen[3].body["metadata"]["name"], "a");
    assert_eq!(seen[3].body["apiVersion"], "v1");
}

#[tokio::test]
async fn labels_are_validated_and_patched() {
    let mut with_labels = pod("a", 1);
    with_labels["metadata"]["labels"] = json!({"app": "web"});
    let fake = Fake::new([
        Answer::json(200, &with_labels),
        Answer::json(200, &pod("a", 2)),
        Answer::json(200, &pod("a", 3)),
    ]);
    let item = fake
        .cluster()
        .pods()
        .in_namespace("n")
        .unwrap()
        .fetch("a")
        .await
        .unwrap();
    let labels = item.labels();
    assert_eq!(labels.get("app"), Some("web"));
    assert_eq!(labels.iter().collect::<Vec<_>>(), [("app", "web")]);
    assert!(matches!(
        labels.set("-bad", "x").await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        labels.set("good", "b a d").await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(labels.delete("").await, Err(Error::Invalid(_))));
    assert_eq!(fake.requests().len(), 1);
    assert_eq!(
        labels
            .set_many([("a", "1"), ("b", "")])
            .await
            .unwrap()
            .version(),
        "2"
    );
    assert_eq!(labels.delete("app").await.unwrap().version(), "3");
    let seen = fake.requests();
    assert_eq!(
        seen[1].body,
        json!({"metadata": {"labels": {"a": "1", "b": ""}}})
    );
    assert_eq!(seen[2].body, json!({"metadata": {"labels": {"app": null}}}));
}

#[tokio::test]
async fn deleting_a_missing_object_is_not_an_error() {
    let fake = Fake::new([
        Answer::status(404, "NotFound", "gone"),
        Answer::status(409, "Conflict", "already terminating"),
        Answer::status(409, "Conflict", "the uid does not match"),
    ]);
    let cluster = fake.cluster();
    let pods = cluster.pods().in_namespace("n").unwrap();
    pods.delete("a", &DeleteOptions::default()).await.unwrap();
    cluster
        .namespaces()
        .delete("n", &DeleteOptions::default())
        .await
        .unwrap();
    let only = DeleteOptions {
        uid: Some("u".into()),
        ..DeleteOptions::default()
    };
    assert!(pods.delete("a", &only).await.unwrap_err().is_conflict());
    assert_eq!(fake.requests()[2].body["preconditions"]["uid"], "u");
}

#[tokio::test]
async fn only_reads_are_retried_when_the_server_is_busy() {
    let busy = || Answer::status(503, "ServiceUnavailable", "starting");
    let fake = Fake::new([
        busy(),
        Answer::status(429, "TooManyRequests", "slow down"),
        Answer::json(200, &pod("a", 1)),
        busy(),
    ]);
    let view = fake.cluster().pods().in_namespace("n").unwrap();
    assert_eq!(view.fetch("a").await.unwrap().name(), "a");
    assert_eq!(fake.requests().len(), 3);
    let error = view.create(&pod("a", 0)).await.unwrap_err();
    assert_eq!(error.code(), Some(503));
    assert_eq!(fake.requests().len(), 4);
}

#[tokio::test]
async fn a_write_is_retried_when_the_server_asks_for_it() {
    let later = Answer::Plain(
        429,
        vec![("retry-after", "0".into())],
        status(429, "TooManyRequests", "later").to_string().into(),
    );
    let fake = Fake::new([later, Answer::json(201, &pod("a", 1))]);
    let view = fake.cluster().pods().in_namespace("n").unwrap();
    view.create(&pod("a", 0)).await.unwrap();
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn retries_of_a_busy_server_are_limited() {
    let fake = Fake::new((0..20).map(|_| Answer::status(503, "ServiceUnavailable", "starting")));
    assert_eq!(
        fake.cluster().nodes().list().await.unwrap_err().code(),
        Some(503)
    );
    assert_eq!(fake.requests().len(), 7);
}

#[tokio::test]
async fn pages_are_read_in_order() {
    let mut first = list(9, &[pod("a", 1), pod("b", 2)]);
    first["metadata"]["continue"] = "next page".into();
    let mut expired = status(410, "Expired", "the token is too old");
    expired["metadata"] = json!({"continue": "newer"});
    let fake = Fake::new([
        Answer::json(200, &first),
        Answer::json(410, &expired),
        Answer::json(200, &list(12, &[pod("c", 3)])),
    ]);
    let view = fake.cluster().pods();
    let names: Vec<String> = view
        .stream()
        .map(|item| item.unwrap().name().to_owned())
        .collect()
        .await;
    assert_eq!(names, ["a", "b", "c"]);
    let seen = fake.requests();
    assert_eq!(seen[0].query("continue"), None);
    assert_eq!(seen[1].query("continue"), Some("next%20page"));
    assert_eq!(seen[2].query("continue"), Some("newer"));
}

#[tokio::test]
async fn a_complete_list_is_a_consistent_snapshot() {
    let mut first = list(9, &[pod("a", 1)]);
    first["metadata"]["continue"] = "x".into();
    let second = list(9, &[pod("b", 2)]);
    let all = list(12, &[pod("b", 2), pod("c", 3)]);
    let mut expired = status(410, "Expired", "too old");
    expired["metadata"] = json!({"continue": "newer"});
    let fake = Fake::new([
        Answer::json(200, &first),
        Answer::json(200, &second),
        Answer::json(200, &first),
        Answer::json(410, &expired),
        Answer::json(200, &all),
    ]);
    let view = fake.cluster().pods();
    for (names, version) in [(["a", "b"], "9"), (["b", "c"], "12")] {
        let found = view.list().await.unwrap();
        let found_names: Vec<&str> = found.items.iter().map(|item| item.name()).collect();
        assert_eq!((&found_names[..], &*found.version), (&names[..], version));
    }
    let limits: Vec<_> = fake
        .requests()
        .iter()
        .map(|seen| seen.query("limit").map(str::to_owned))
        .collect();
    let page = Some("500".to_owned());
    assert_eq!(
        limits[..4],
        [page.clone(), page.clone(), page.clone(), page]
    );
    assert_eq!(limits[4], None);
}

#[tokio::test]
async fn a_continue_token_that_repeats_is_an_error() {
    let mut same = list(9, &[pod("a", 1)]);
    same["metadata"]["continue"] = "x".into();
    let fake = Fake::new((0..4).map(|_| Answer::json(200, &same)));
    let view = fake.cluster().pods();
    let error = view.list().await.unwrap_err().to_string();
    let wanted = "the response to GET /api/v1/pods cannot be read: it leads to the same page again";
    assert_eq!(error, wanted);
    let items: Vec<_> = view.stream().collect().await;
    assert!(items.len() == 2 && items[1].is_err());
}

#[test]
fn without_a_runtime_there_is_an_error() {
    let view = Fake::new([]).cluster().pods();
    let all = view.list().now_or_never().unwrap().unwrap_err();
    let items: Vec<_> = view.stream().collect().now_or_never().unwrap();
    for error in [&all, items[0].as_ref().unwrap_err()] {
        assert!(
            error.to_string().contains("need a tokio runtime"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_failing_page_is_reported_once() {
    let mut first = list(9, &[pod("a", 1)]);
    first["metadata"]["continue"] = "x".into();
    let fake = Fake::new([
        Answer::json(200, &first),
        Answer::status(410, "Expired", "too old"),
    ]);
    let items: Vec<_> = fake.cluster().pods().stream().collect().await;
    assert_eq!(items.len(), 2);
    assert!(items[0].is_ok() && items[1].as_ref().unwrap_err().is_expired());
}

#[tokio::test]
async fn malformed_fields_are_errors_when_they_are_read() {
    let text = r#"{"items":[{"metadata":{"name":"a","labels":5,"annotations":{"k":"v"}},"status":{"phase":7,"podIP":[tru]}}]}"#;
    let fake = Fake::new([Answer::Plain(200, Vec::new(), text.into())]);
    let list = fake.cluster().pods().list().await.unwrap();
    let item = &list.items[0];
    assert!(matches!(item.phase(), Err(Error::Decode { .. })));
    assert!(matches!(item.ip(), Err(Error::Decode { .. })));
    assert!(matches!(item.raw(), Err(Error::Decode { .. })));
    assert!(matches!(item.checked_meta(), Err(Error::Decode { .. })));
    assert_eq!(
        (
            item.meta().name.as_str(),
            item.meta().annotations["k"].as_str()
        ),
        ("a", "v")
    );
}

#[tokio::test]
async fn the_error_of_an_unreachable_cluster_names_it_and_a_remedy() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let cluster = Cluster::from_url(&format!("http://user:secret@{address}/base/")).unwrap();
    let error = cluster.pods().list().await.unwrap_err();
    assert!(error.is_unreachable(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&format!("http://{address}/base")), "{text}");
    assert!(
        text.contains("check that it runs") && !text.contains("secret"),
        "{text}"
    );
}

/// The same rule as in client-go.
#[tokio::test]
async fn reads_are_retried_when_the_connection_is_lost() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // Closes every other connection after the request.
    let serving = tokio::spawn(async move {
        for number in 0_u32.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            if number % 2 == 1 {
                let response = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"items\": []}";
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        }
    });
    let mut timing = Timing::default();
    timing.initial_backoff = Duration::from_millis(1);
    let cluster = Cluster::from_url(&url).unwrap().with_timing(timing);
    for _ in 0..3 {
        assert!(cluster.pods().list().await.unwrap().items.is_empty());
    }
    let error = cluster
        .nodes()
        .delete("web", &DeleteOptions::default())
        .await
        .unwrap_err();
    assert!(error.is_unreachable(), "{error:?}");
    serving.abort();
}

#[tokio::test]
async fn a_broken_transport_is_unreachable() {
    let fake = Fake::new([Answer::Refused]);
    let error = fake.cluster().pods().list().await.unwrap_err();
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert!(error.is_unreachable());
}

#[test]
fn invalid_urls_are_rejected() {
    for url in ["", "localhost:8001", "ftp://x", "http://"] {
        assert!(
            matches!(Cluster::from_url(url), Err(Error::Config(_))),
            "{url}"
        );
    }
}

#[tokio::test]
async fn https_needs_no_installed_crypto_provider() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let cluster = Cluster::from_url(&format!("https://{address}")).unwrap();
    assert!(cluster.pods().list().await.is_err());
}

#[tokio::test]
async fn a_closed_cluster_rejects_requests() {
    let fake = Fake::new([]);
    let cluster = fake.cluster();
    cluster.clone().close();
    assert!(matches!(cluster.pods().list().await, Err(Error::Closed)));
    assert!(matches!(
        cluster.proxy().get("/version", &[]).await,
        Err(Error::Closed)
    ));
    assert!(fake.requests().is_empty());
}

#[tokio::test]
async fn the_proxy_accepts_any_success_and_keeps_the_query() {
    let fake = Fake::new([
        Answer::json(200, &json!({"major": "1"})),
        Answer::json(202, &json!({"ok": true})),
        Answer::Plain(200, Vec::new(), "ok".into()),
        Answer::Plain(204, Vec::new(), "".into()),
    ]);
    let proxy = fake.cluster().proxy();
    assert_eq!(
        proxy.get("version", &[("a b", "c&d")]).await.unwrap()["major"],
        "1"
    );
    let sent = json!({"x": 1});
    assert_eq!(proxy.post("/things", &[], &sent).await.unwrap()["ok"], true);
    assert_eq!(proxy.get_bytes("/readyz", &[]).await.unwrap(), "ok");
    assert_eq!(
        proxy.delete("/things/1", &[], None).await.unwrap(),
        serde_json::Value::Null
    );
    let seen = fake.requests();
    assert_eq!(seen[0].target, "/version?a%20b=c%26d");
    assert_eq!(seen[1].body, sent);
}

#[tokio::test]
async fn logs_and_bindings_use_their_subresources() {
    let fake = Fake::new([
        Answer::Lines(
            vec!["one\n".into(), "two\n".into()],
            crate::fake::End::Clean,
        ),
        Answer::status(400, "BadRequest", "container is waiting to start"),
        Answer::json(201, &json!({"kind": "Status", "status": "Success"})),
    ]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    let options = LogOptions {
        tail_lines: Some(2),
        ..LogOptions::default()
    };
    let pieces: Vec<_> = pods.logs("a", &options).await.unwrap().collect().await;
    let text: Vec<u8> = pieces
        .into_iter()
        .flat_map(|piece| piece.unwrap())
        .collect();
    assert_eq!(text, b"one\ntwo\n");
    let refused = pods.logs("a", &options).await.err().unwrap();
    assert_eq!(refused.code(), Some(400));
    pods.bind("a", "node-1").await.unwrap();
    let seen = fake.requests();
    assert_eq!(
        seen[0].target,
        "/api/v1/namespaces/n/pods/a/log?tailLines=2"
    );
    assert_eq!(seen[2].path(), "/api/v1/namespaces/n/pods/a/binding");
    assert_eq!(seen[2].body["target"]["name"], "node-1");
}

#[tokio::test]
async fn kinds_are_discovered_once() {
    let groups = json!({"kind": "APIGroupList", "groups": [{
        "name": "example.org", "versions": [{"groupVersion": "example.org/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "example.org/v1", "version": "v1"},
    }]});
    let core = json!({"kind": "APIVersions", "versions": []});
    let apps = json!({"kind": "APIResourceList", "groupVersion": "example.org/v1", "resources": [
        {"name": "boots", "singularName": "boot", "namespaced": true, "kind": "Boot", "shortNames": ["bt"], "verbs": []},
        {"name": "boots/status", "singularName": "", "namespaced": true, "kind": "Boot", "verbs": []},
    ]});
    let again = [core.clone(), json!({"kind": "APIGroupList", "groups": []})];
    let fake =
        Fake::new([&core, &groups, &apps, &again[0], &again[1]].map(|v| Answer::json(200, v)));
    let cluster = fake.cluster();
    let view = cluster.kind("bt").await.unwrap();
    assert_eq!(
        view.kind().collection_path(Some("n")),
        "/apis/example.org/v1/namespaces/n/boots"
    );
    assert!(view.kind().has_subresource("status"));
    cluster.kind("Boot").await.unwrap();
    cluster.kind("boots.example.org").await.unwrap();
    cluster.kind("po").await.unwrap();
    assert_eq!(fake.requests().len(), 3);
    let unknown = cluster.kind("hats").await.err().unwrap();
    assert!(matches!(unknown, Error::Invalid(_)), "{unknown}");
    assert_eq!(fake.requests().len(), 5);
}

#[tokio::test]
async fn aggregated_discovery_is_supported() {
    let core = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []});
    let groups = json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "example.org"}, "versions": [
        {"version": "v2", "resources": [{"resource": "shoes", "responseKind": {"group": "", "version": "", "kind": "Shoe"}, "scope": "Cluster", "singularResource": "shoe", "shortNames": ["sh"], "subresources": [{"subresource": "scale"}]}]},
        {"version": "v1", "resources": [{"resource": "shoes", "responseKind": {"kind": "Shoe"}, "scope": "Cluster"}]},
    ]}]});
    let fake = Fake::new([Answer::json(200, &core), Answer::json(200, &groups)]);
    let view: longshore_client::View<Any> = fake.cluster().kind("sh.example.org").await.unwrap();
    assert_eq!(
        view.kind().collection_path(None),
        "/apis/example.org/v2/shoes"
    );
    assert!(view.kind().has_subresource("scale"));
}
