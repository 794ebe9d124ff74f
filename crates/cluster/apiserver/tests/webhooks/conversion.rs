//! Conversion webhooks of CustomResourceDefinitions: reads and writes in each version.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::{
    MERGE,
    common::{Server, TABLE},
    configure,
    hook::{Hook, patch},
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn path(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/ships")
}

/// The definition of Ships: `spec.hostPort` in v1 is `spec.host` and `spec.port` in v2.
fn definition(hook: &Hook) -> Value {
    let version = |name: &str, storage: bool, fields: Value| {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": fields},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        }});
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        })
    };
    let text = json!({"type": "string"});
    json!({
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [
                version("v1", true, json!({"hostPort": text})),
                version("v2", false, json!({"host": text, "port": text, "color": {"type": "string", "default": "red"}})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": hook.client_config("/convert"),
                "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

fn converted(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    assert_ne!(object["apiVersion"], version, "{object}");
    object["apiVersion"] = version.into();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &object["spec"];
    object["spec"] = if version.ends_with("v2") {
        let host_port = text(&spec["hostPort"]);
        let (host, port) = host_port.split_once(':').unwrap_or((&host_port, ""));
        json!({"host": host, "port": port})
    } else {
        json!({"hostPort": format!("{}:{}", text(&spec["host"]), text(&spec["port"]))})
    };
    object
}

fn answer(request: &Value, objects: Vec<Value>) -> Response<Full<Bytes>> {
    let response = json!({
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
    });
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response,
    });
    Response::new(Full::new(review.to_string().into()))
}

fn convert(hook: &Hook, change: impl Fn(&mut Value) + Send + Sync + Clone + 'static) {
    hook.on_async("/convert", move |request| {
        let change = change.clone();
        Box::pin(async move {
            let version = request["desiredAPIVersion"].as_str().unwrap();
            let objects = request["objects"].as_array().unwrap().iter();
            let mut objects: Vec<Value> = objects.map(|one| converted(one, version)).collect();
            objects.iter_mut().for_each(change);
            answer(&request, objects)
        })
    });
}

async fn start() -> (Server, Hook) {
    let (server, hook) = (Server::new(), Hook::start().await);
    convert(&hook, |_| {});
    let made = server.post(DEFINITIONS, &definition(&hook)).await;
    assert_eq!(made.code, 201, "{}", made.text());
    (server, hook)
}

fn ship(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Ship",
        "metadata": {"name": name}, "spec": spec,
    })
}

async fn make(server: &Server, version: &str, name: &str, spec: Value) -> Value {
    let made = server
        .post(&path(version), &ship(version, name, spec))
        .await;
    assert_eq!(made.code, 201, "{}", made.text());
    made.json()
}

async fn spec_of(server: &Server, version: &str, name: &str) -> Value {
    let read = server.get(&format!("{}/{name}", path(version))).await;
    assert_eq!(read.code, 200, "{}", read.text());
    assert_eq!(read.json()["apiVersion"], format!("example.com/{version}"));
    read.json()["spec"].clone()
}

#[tokio::test]
async fn stored_objects_are_read_in_each_version() {
    let (server, hook) = start().await;
    let made = make(&server, "v1", "a", json!({"hostPort": "h:1"})).await;
    make(&server, "v1", "b", json!({"hostPort": "i:2"})).await;
    assert!(hook.calls().is_empty());
    let expected = json!({"host": "h", "port": "1", "color": "red"});
    assert_eq!(spec_of(&server, "v2", "a").await, expected);
    let read = server.get(&format!("{}/a", path("v2"))).await.json();
    assert_eq!(read["metadata"], made["metadata"]);

    hook.clear();
    let list = server.get(&path("v2")).await.json();
    assert_eq!(list["items"][1]["spec"]["host"], "i");
    assert_eq!(list["items"][0]["apiVersion"], "example.com/v2");
    // All objects of a list are converted at once.
    assert_eq!(hook.calls().len(), 1);
    assert_eq!(hook.calls()[0].path, "/convert?timeout=30s");
    let table = server.get_as(&path("v2"), TABLE).await.json();
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);

    let watch = format!("{}?watch=true&timeoutSeconds=1", path("v2"));
    let request = http::Request::get(watch).body(Full::default()).unwrap();
    let events = server.send(request).await.into_body();
    let events = events.collect().await.unwrap().to_bytes();
    let events: Vec<Value> = events
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["object"]["spec"], expected);
}

#[tokio::test]
async fn objects_are_written_in_each_version() {
    let (server, hook) = start().await;
    let made = make(&server, "v2", "a", json!({"host": "h", "port": "1"})).await;
    assert_eq!(made["apiVersion"], "example.com/v2");
    assert_eq!(
        made["spec"],
        json!({"host": "h", "port": "1", "color": "red"})
    );
    let v1 = async || spec_of(&server, "v1", "a").await["hostPort"].clone();
    assert_eq!(v1().await, "h:1");
    let at = format!("{}/a", path("v2"));
    let patched = server.patch(&at, MERGE, r#"{"spec": {"port": "2"}}"#).await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    assert_eq!(
        (&patched.json()["spec"]["port"], v1().await),
        (&json!("2"), json!("h:2"))
    );
    assert_eq!(patched.json()["metadata"]["generation"], 2);
    let operations = r#"[{"op": "replace", "path": "/spec/host", "value": "i"}]"#;
    let patched = server
        .patch(&at, "application/json-patch+json", operations)
        .await;
    assert_eq!((patched.code, v1().await), (200, json!("i:2")));
    let mut object = server.get(&at).await.json();
    object["spec"]["port"] = "3".into();
    let updated = server.put(&at, &object).await;
    assert_eq!(updated.code, 200, "{}", updated.text());
    assert_eq!(v1().await, "i:3");
    // The version in the request is no longer the object's version.
    assert_eq!(server.put(&at, &object).await.code, 409);
    let status = server
        .patch(
            &format!("{at}/status"),
            MERGE,
            r#"{"status": {"phase": "x"}}"#,
        )
        .await;
    assert_eq!(status.code, 200, "{}", status.text());
    assert_eq!(
        (&status.json()["status"]["phase"], v1().await),
        (&json!("x"), json!("i:3"))
    );
    let applied = ship("v2", "a", json!({"host": "j"})).to_string();
    let apply = format!("{at}?fieldManager=me&force=true");
    let applied = server
        .patch(&apply, "application/apply-patch+yaml", &applied)
        .await;
    assert_eq!(applied.code, 200, "{}", applied.text());
    assert_eq!(v1().await, "j:3");
    let unchanged = server.patch(&at, MERGE, "{}").await.json();
    assert_eq!(
        unchanged["metadata"]["resourceVersion"],
        applied.json()["metadata"]["resourceVersion"]
    );

    let invalid = server.patch(&at, MERGE, r#"{"spec": {"port": 4}}"#).await;
    assert_eq!(invalid.code, 422, "{}", invalid.text());
    hook.clear();
    let deleted = server.call("DELETE", &at, &[], "").await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    assert_eq!(server.get(&at).await.code, 404);
}

#[tokio::test]
async fn objects_in_several_stored_versions_are_read_in_each() {
    let (server, hook) = start().await;
    make(&server, "v1", "a", json!({"hostPort": "h:1"})).await;
    let at = format!("{DEFINITIONS}/ships.example.com");
    let mut changed = server.get(&at).await.json();
    for version in changed["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = (version["name"] == "v2").into();
    }
    let updated = server.put(&at, &changed).await;
    assert_eq!(updated.code, 200, "{}", updated.text());
    make(&server, "v1", "b", json!({"hostPort": "i:2"})).await;
    for (version, first, second) in [
        ("v1", json!({"hostPort": "h:1"}), json!({"hostPort": "i:2"})),
        (
            "v2",
            json!({"host": "h", "port": "1", "color": "red"}),
            json!({"host": "i", "port": "2", "color": "red"}),
        ),
    ] {
        hook.clear();
        let list = server.get(&path(version)).await.json();
        let specs = [&list["items"][0]["spec"], &list["items"][1]["spec"]];
        assert_eq!(specs, [&first, &second]);
        // Only the object in the other version is converted.
        assert_eq!(
            hook.calls()[0].request["objects"].as_array().unwrap().len(),
            1
        );
    }
    // A write without a change stores the object in the storage version.
    let before = server.get(&format!("{}/a", path("v2"))).await.json();
    let migrated = server
        .patch(&format!("{}/a", path("v2")), MERGE, "{}")
        .await;
    assert_eq!(migrated.code, 200, "{}", migrated.text());
    assert_ne!(
        migrated.json()["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    hook.clear();
    assert_eq!(spec_of(&server, "v2", "a").await, before["spec"]);
    assert!(hook.calls().is_empty());
}

#[tokio::test]
async fn failed_conversions_are_errors() {
    let (server, hook) = start().await;
    make(&server, "v1", "a", json!({"hostPort": "h:1"})).await;
    convert(&hook, |object| object["metadata"]["name"] = "b".into());
    let failed = server.get(&format!("{}/a", path("v2"))).await;
    assert_eq!(
        (failed.code, &*failed.message()),
        (
            500,
            "conversion webhook for example.com/v1, Kind=Ship returned invalid converted object at index 0: must have the same name: a != b"
        )
    );
    let refused = server
        .post(&path("v2"), &ship("v2", "c", json!({"host": "h"})))
        .await;
    assert_eq!(refused.code, 500, "{}", refused.text());
    assert_eq!(server.get(&format!("{}/c", path("v1"))).await.code, 404);
    hook.on_async("/convert", |_| {
        let response = Response::builder().status(503).body(Full::default());
        Box::pin(async move { response.unwrap() })
    });
    assert_eq!(
        server.get(&path("v2")).await.message(),
        "conversion webhook for example.com/v1, Kind=Ship failed: the server is currently unable to handle the request"
    );
    assert_eq!(spec_of(&server, "v1", "a").await["hostPort"], "h:1");
}

#[tokio::test]
async fn slow_conversions_of_new_objects_come_to_an_end() {
    let (server, hook) = start().await;
    let clock = server.clock.clone();
    convert(&hook, move |_| clock.advance(2));
    make(&server, "v2", "a", json!({"host": "h", "port": "1"})).await;
    // A call for storage, and a call for the response.
    assert_eq!(hook.calls().len(), 2);
}

#[tokio::test]
async fn admission_webhooks_receive_converted_objects() {
    let (server, hook) = start().await;
    let mut webhook = hook.webhook("/m", &["*"], &["ships"]);
    webhook["rules"][0]["apiVersions"] = json!(["v2"]);
    configure(&server, "Mutating", "a", &[webhook]).await;
    hook.on("/m", |request| match request["object"].is_null() {
        true => json!({"allowed": true}),
        false => patch(&json!([{"op": "replace", "path": "/spec/host", "value": "mutated"}])),
    });
    let made = make(&server, "v1", "a", json!({"hostPort": "h:1"})).await;
    assert_eq!(made["spec"]["hostPort"], "mutated:1");
    let reviews: Vec<_> = hook
        .calls()
        .into_iter()
        .filter(|call| call.path.starts_with("/m"))
        .collect();
    assert_eq!(reviews[0].request["object"]["spec"]["host"], "h");
    hook.clear();
    let deleted = server
        .call("DELETE", &format!("{}/a", path("v1")), &[], "")
        .await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    let reviews: Vec<_> = hook
        .calls()
        .into_iter()
        .filter(|call| call.path.starts_with("/m"))
        .collect();
    assert_eq!(reviews[0].request["oldObject"]["spec"]["host"], "mutated");
}

/// The definition with selectable fields, which are the spec's fields in each version.
async fn start_selectable() -> (Server, Hook) {
    let (server, hook) = (Server::new(), Hook::start().await);
    convert(&hook, |_| {});
    let mut definition = definition(&hook);
    let versions = &mut definition["spec"]["versions"];
    versions[0]["selectableFields"] = json!([{"jsonPath": ".spec.hostPort"}]);
    versions[1]["selectableFields"] = json!([
        {"jsonPath": ".spec.host"}, {"jsonPath": ".spec.port"}, {"jsonPath": ".spec.color"},
    ]);
    let made = server.post(DEFINITIONS, &definition).await;
    assert_eq!(made.code, 201, "{}", made.text());
    (server, hook)
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

/// The type and the name of the object of each event of a watch from a resource version.
async fn events_after(server: &Server, version: &str, query: &str, since: &str) -> Vec<String> {
    let watch = format!(
        "{}?watch=true&timeoutSeconds=1&resourceVersion={since}&{query}",
        path(version)
    );
    let request = http::Request::get(watch).body(Full::default()).unwrap();
    let events = server.send(request).await.into_body();
    let events = events.collect().await.unwrap().to_bytes();
    let events = events.split(|byte| *byte == b'\n');
    let events = events.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let shown = events.map(|event| {
        let object = &event["object"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&object["metadata"]["name"]);
        format!("{} {name} {}", text(&event["type"]), object["spec"])
    });
    shown.collect()
}

#[tokio::test]
async fn lists_select_fields_of_the_requested_version() {
    let (server, hook) = start_selectable().await;
    for (name, host, port) in [
        ("a", "h", "1"),
        ("b", "i", "1"),
        ("c", "h", "2"),
        ("d", "h", "3"),
    ] {
        let spec = json!({"host": host, "port": port});
        make(&server, "v2", name, spec).await;
    }
    let list = async |version: &str, query: &str| {
        let listed = server.get(&format!("{}?{query}", path(version))).await;
        assert_eq!(listed.code, 200, "{}", listed.text());
        listed.json()
    };
    for (version, selector, expected) in [
        ("v2", "spec.host=h", vec!["a", "c", "d"]),
        ("v2", "spec.host=h,spec.port=2", vec!["c"]),
        ("v2", "spec.host!=h", vec!["b"]),
        ("v2", "spec.host=h,metadata.name=d", vec!["d"]),
        ("v2", "spec.color=red", vec!["a", "b", "c", "d"]),
        ("v1", "spec.hostPort=h:3", vec!["d"]),
    ] {
        let found = list(version, &format!("fieldSelector={selector}")).await;
        assert_eq!(names(&found), expected, "{selector}");
    }
    let refused = server
        .get(&format!("{}?fieldSelector=spec.host=h", path("v1")))
        .await;
    assert_eq!(refused.code, 400);

    // Pages contain as many matching objects as the limit permits.
    let page = list("v2", "fieldSelector=spec.host=h&limit=2").await;
    assert_eq!(names(&page), ["a", "c"]);
    assert_eq!(page["metadata"]["remainingItemCount"], json!(null));
    let next = page["metadata"]["continue"].as_str().unwrap();
    let query = format!("fieldSelector=spec.host=h&limit=2&continue={next}");
    let page = list("v2", &query).await;
    assert_eq!(
        (names(&page), &page["metadata"]["continue"]),
        (vec!["d"], &json!(null))
    );

    // No webhook is called for the stored version, and none for other objects.
    hook.clear();
    list("v1", "fieldSelector=spec.hostPort=h:3").await;
    list("v2", "fieldSelector=spec.host=h,metadata.name=x").await;
    assert!(hook.calls().is_empty());
}

#[tokio::test]
async fn a_collection_is_deleted_by_fields_of_the_requested_version() {
    let (server, _hook) = start_selectable().await;
    for (name, host) in [("a", "h"), ("b", "i"), ("c", "h")] {
        make(&server, "v2", name, json!({"host": host, "port": "1"})).await;
    }
    let at = format!("{}?fieldSelector=spec.host=h", path("v2"));
    let deleted = server.call("DELETE", &at, &[], "").await;
    assert_eq!(names(&deleted.json()), ["a", "c"]);
    assert_eq!(names(&server.get(&path("v2")).await.json()), ["b"]);
}

#[tokio::test]
async fn watches_select_fields_of_the_requested_version() {
    let (server, _hook) = start_selectable().await;
    let first = make(&server, "v2", "a", json!({"host": "h", "port": "1"})).await;
    let since = first["metadata"]["resourceVersion"].as_str().unwrap();
    make(&server, "v2", "b", json!({"host": "i", "port": "1"})).await;
    for (name, body) in [
        ("a", r#"{"spec": {"port": "2"}}"#),
        ("b", r#"{"spec": {"host": "h"}}"#),
        ("a", r#"{"spec": {"host": "j"}}"#),
    ] {
        let changed = server
            .patch(&format!("{}/{name}", path("v2")), MERGE, body)
            .await;
        assert_eq!(changed.code, 200, "{}", changed.text());
    }
    let last = server
        .call("DELETE", &format!("{}/b", path("v2")), &[], "")
        .await;
    assert_eq!(last.code, 200);
    let spec = |host: &str, port: &str| json!({"color": "red", "host": host, "port": port});
    assert_eq!(
        events_after(&server, "v2", "fieldSelector=spec.host=h", since).await,
        [
            format!("MODIFIED a {}", spec("h", "2")),
            format!("ADDED b {}", spec("h", "1")),
            format!("DELETED a {}", spec("h", "2")),
            format!("DELETED b {}", spec("h", "1")),
        ]
    );
    assert_eq!(
        events_after(&server, "v1", "fieldSelector=spec.hostPort=h:2", since).await,
        [
            r#"ADDED a {"hostPort":"h:2"}"#.to_owned(),
            r#"DELETED a {"hostPort":"h:2"}"#.to_owned(),
        ]
    );
    // Initial events are also selected, and the bookmark that ends them is sent.
    make(&server, "v2", "c", json!({"host": "h", "port": "1"})).await;
    let query = "fieldSelector=spec.host=h&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    assert_eq!(
        events_after(&server, "v2", query, "").await,
        [
            format!("ADDED c {}", spec("h", "1")),
            "BOOKMARK  null".to_owned()
        ]
    );
}

#[tokio::test]
async fn a_failing_conversion_fails_only_requests_that_need_it() {
    let (server, hook) = start_selectable().await;
    make(&server, "v1", "a", json!({"hostPort": "h:1"})).await;
    convert(&hook, |object| object["metadata"]["name"] = "x".into());
    let failed = server
        .get(&format!("{}?fieldSelector=spec.host=h", path("v2")))
        .await;
    assert_eq!(failed.code, 500, "{}", failed.text());
    let message = failed.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("conversion webhook for example.com/v1, Kind=Ship"),
        "{message}"
    );
    let served = server
        .get(&format!("{}?fieldSelector=spec.hostPort=h:1", path("v1")))
        .await;
    assert_eq!(names(&served.json()), ["a"]);
    assert_eq!(
        events_after(&server, "v2", "fieldSelector=spec.host=h", "0").await,
        ["ERROR  null"]
    );
}

/// A webhook that reads the object that it converts, which causes another conversion, without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_causes_itself_is_bounded() {
    let (server, hook) = start().await;
    make(&server, "v1", "a", json!({"hostPort": "h:1"})).await;
    let server = Arc::new(server);
    let looping = server.clone();
    hook.on_async("/convert", move |_| {
        let server = looping.clone();
        Box::pin(async move {
            server.get(&format!("{}/a", path("v2"))).await;
            std::future::pending().await
        })
    });
    hook.clear();
    let reader = server.clone();
    let read = tokio::spawn(async move { reader.get(&format!("{}/a", path("v2"))).await.code });
    let most = longshore_apiserver::limits::WEBHOOK_CALLS;
    while hook.calls().len() < most {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // No call has ended, so another call waits in vain, like the call of the loop.
    let late = server.get(&format!("{}/a?timeout=1s", path("v2"))).await;
    assert_eq!(late.code, 504, "{}", late.text());
    assert_eq!(hook.calls().len(), most);
    read.abort();
    // Other requests are served, and the webhook works again once it does not loop.
    assert_eq!(spec_of(&server, "v1", "a").await["hostPort"], "h:1");
    convert(&hook, |_| {});
    assert_eq!(spec_of(&server, "v2", "a").await["host"], "h");
}
