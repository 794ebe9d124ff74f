//! Measures the delay that one request can cause for writes of other clients: sends large and
//! hostile requests one after the other, and small writes concurrently.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube_client::{Client, client::Body};
use longshore::Cluster;
use serde_json::{Map, Value, json};

use crate::{
    program::Instance,
    report::{Failure, Report, millis},
};

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const NODE: &str = "/api/v1/nodes/hostile";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// The text that the cluster logs for a write that blocked the writer for too long.
const BLOCKED_MESSAGE: &str = "a write blocked all other writes";
/// The maximum time for which a request may block the writer.
const GOAL: &str = "50 ms";

/// Sends a request and returns the status code of the response.
async fn send(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<u16, Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Body::from(body.to_string().into_bytes()))?;
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    response.into_body().collect().await?;
    Ok(code)
}

/// A request: method, path, media type, body.
type PreparedRequest = (Method, String, &'static str, Value);

/// All attacks: their descriptions and their requests.
fn attacks(count: usize) -> Vec<(&'static str, Vec<PreparedRequest>)> {
    let post = |path: &str, body: Value| (Method::POST, path.to_owned(), JSON, body);
    let delete = |path: &str| (Method::DELETE, path.to_owned(), JSON, json!({}));
    let conditions = |count: usize, status: &str| -> Value {
        let condition = |n: usize| json!({"type": format!("t{n}"), "status": status});
        json!({"status": {"conditions": (0..count).map(condition).collect::<Vec<_>>()}})
    };
    let merge = |count, status| {
        let path = format!("{NODE}/status");
        (Method::PATCH, path, STRATEGIC, conditions(count, status))
    };
    let finalizers: Vec<_> = (0..20_000).map(|n| format!("example.com/{n}")).collect();
    let list = "/metadata/finalizers";
    let moves = |from: &str, path: &str| {
        let operation = json!({"op": "move", "from": format!("{list}/{from}"), "path": format!("{list}/{path}")});
        let body = vec![operation; 10_000].into();
        (Method::PATCH, format!("{CONFIGS}/moved"), OPERATIONS, body)
    };
    let data: Map<String, Value> = (0..20_000)
        .map(|n| (format!("key-{n}"), json!("value")))
        .collect();
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "applied"}, "data": data});
    let apply = |manager: &str| {
        let path = format!("{CONFIGS}/applied?fieldManager={manager}&force=true");
        (Method::PATCH, path, APPLY, applied.clone())
    };
    let labels: Map<String, Value> = (0..10_000)
        .map(|n| (format!("example.com/{n}"), json!("x")))
        .collect();
    let values: Vec<_> = (0..500).map(|n| format!("v{n}")).collect();
    let selector = format!("labelSelector=a+notin+({})", values.join(","));
    let unknown: Map<String, Value> = (0..60_000).map(|n| (format!("u{n}"), json!(n))).collect();
    let odd = json!({"metadata": {"name": "odd"}, "spec": unknown});
    let object = |n: usize| {
        let object = json!({"metadata": {"name": format!("o{n}")}, "spec": {"f0": "text"}});
        post("/apis/example.com/v1/namespaces/default/things", object)
    };
    let change = json!({"spec": {"versions": [version("^[a-z]+$", 2)]}});
    let definition = format!("{DEFINITIONS}/things.example.com");
    vec![
        (
            "strategic merge of 8,000 and 16,000 conditions",
            vec![
                post("/api/v1/nodes", json!({"metadata": {"name": "hostile"}})),
                merge(8_000, "True"),
                merge(8_000, "False"),
                // Larger objects are refused, as by etcd.
                merge(16_000, "True"),
                delete(NODE),
            ],
        ),
        (
            "JSON patch of 10,000 moves",
            vec![
                post(
                    CONFIGS,
                    json!({"metadata": {"name": "moved", "finalizers": finalizers}}),
                ),
                moves("0", "19999"),
                moves("-1", "-2"),
            ],
        ),
        (
            "definitions with 400 patterns",
            vec![
                post(DEFINITIONS, custom_definition(r"^\w{15}N", 400)),
                delete(&definition),
                post(DEFINITIONS, custom_definition(r"^\p{L}{200}N", 400)),
            ],
        ),
        (
            "apply of 20,000 fields by two managers",
            vec![apply("one"), apply("two"), apply("one")],
        ),
        (
            "merge patch of 20,000 fields",
            vec![
                post(CONFIGS, json!({"metadata": {"name": "merged"}})),
                (
                    Method::PATCH,
                    format!("{CONFIGS}/merged"),
                    MERGE,
                    json!({"data": data}),
                ),
            ],
        ),
        (
            "10,000 labels, and a long selector",
            vec![
                post(
                    CONFIGS,
                    json!({"metadata": {"name": "labels", "labels": labels}}),
                ),
                (
                    Method::DELETE,
                    format!("/api/v1/namespaces/default/secrets?{selector}"),
                    JSON,
                    json!({}),
                ),
            ],
        ),
        (
            "60,000 unknown fields, strict validation",
            vec![post(
                "/api/v1/namespaces/default/pods?fieldValidation=Strict",
                odd,
            )],
        ),
        (
            "deletecollection of many objects",
            (0..count)
                .map(|n| {
                    post(
                        "/api/v1/namespaces/default/secrets",
                        json!({"metadata": {"name": format!("s{n}")}, "stringData": {"a": "b"}}),
                    )
                })
                .chain([delete("/api/v1/namespaces/default/secrets")])
                .collect(),
        ),
        (
            "change and delete a definition with many objects",
            [post(DEFINITIONS, custom_definition("^[a-z]+$", 1))]
                .into_iter()
                .chain((0..count).map(object))
                .chain([
                    (Method::PATCH, definition.clone(), MERGE, change),
                    delete(&definition),
                ])
                .collect(),
        ),
    ]
}

fn version(pattern: &str, fields: usize) -> Value {
    let field = |n: usize| {
        let pattern = pattern.replace('N', &n.to_string());
        (
            format!("f{n}"),
            json!({"type": "string", "pattern": pattern}),
        )
    };
    let fields: Map<String, Value> = (0..fields).map(field).collect();
    let spec = json!({"type": "object", "properties": fields});
    json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
        {"type": "object", "properties": {"spec": spec}}}})
}

fn custom_definition(pattern: &str, fields: usize) -> Value {
    json!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [version(pattern, fields)]}})
}

/// Sends small writes until `stop` is set. Returns the duration of the slowest one.
async fn probe(client: Client, stop: Arc<AtomicBool>) -> Result<Duration, String> {
    let mut slowest = Duration::ZERO;
    for n in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let start = Instant::now();
        let body = json!({"data": {"n": n.to_string()}});
        let path = format!("{CONFIGS}/probe");
        send(&client, Method::PATCH, &path, MERGE, &body)
            .await
            .map_err(|error| error.to_string())?;
        slowest = slowest.max(start.elapsed());
    }
    Ok(slowest)
}

/// The duration of the slowest small write during `work`.
async fn slowest_write_during(
    client: &Client,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<Duration, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let probing = tokio::spawn(probe(client.clone(), stop.clone()));
    let done = work.await;
    stop.store(true, Ordering::Relaxed);
    let slowest = probing.await??;
    done.map(|()| slowest)
}

/// Runs each attack and reports the slowest small write during it. Requests that prepare
/// an attack count as part of it.
pub(crate) async fn run(report: &mut Report, count: usize) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let cluster = Cluster::from_kubeconfig(Some(&instance.kubeconfig()), None).await?;
    let client = cluster.kube_client();
    let config_map = json!({"metadata": {"name": "probe"}});
    send(&client, Method::POST, CONFIGS, JSON, &config_map).await?;
    let idle = slowest_write_during(&client, async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    });
    report.figure(
        "slowest small write, no other load",
        millis(idle.await?),
        "",
    );
    for (what, requests) in attacks(count) {
        let start = Instant::now();
        let work = async {
            for (method, path, media_type, body) in &requests {
                let code = send(&client, method.clone(), path, media_type, body).await?;
                if code >= 500 {
                    return Err(format!("{method} {path}: {code}").into());
                }
            }
            Ok(())
        };
        let slowest = slowest_write_during(&client, work).await?;
        report.figure(what, millis(slowest), GOAL);
        report.figure("  all requests of the attack", millis(start.elapsed()), "");
    }
    let log = std::fs::read_to_string(instance.path().join("data/cluster.log"))?;
    let blocked = log
        .lines()
        .filter(|line| line.contains(BLOCKED_MESSAGE))
        .count();
    report.figure(
        "writes that blocked the writer for over 50 ms",
        blocked,
        "0",
    );
    Ok(())
}
