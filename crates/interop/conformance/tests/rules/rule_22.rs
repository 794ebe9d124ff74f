//! Rule 22: protobuf request bodies, as kubectl sends them.

use longshore_conformance::{ApiTest, Response};
use serde_json::json;

use crate::common::{config_map, version};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A length-delimited field.
fn field(number: u8, contents: impl AsRef<[u8]>) -> Vec<u8> {
    let contents = contents.as_ref();
    let mut bytes = vec![number << 3 | 2];
    let mut length = contents.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(contents);
    bytes
}

/// A varint field with a small value.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// The envelope of all protobuf bodies.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, type_meta), field(2, raw)].concat()
}

fn map(name: &str, value: &str) -> Vec<u8> {
    let entry = [field(1, "key"), field(2, value)].concat();
    let raw = [field(1, field(1, name)), field(2, entry)].concat();
    envelope("v1", "ConfigMap", &raw)
}

async fn send(test: &ApiTest, method: &str, path: &str, body: Vec<u8>) -> Response {
    let request = test.request(method, path).accept("application/json");
    request.body(PROTOBUF, body).send().await
}

#[tokio::test]
async fn rule_22_objects_are_created_and_replaced_in_protobuf() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = send(&test, "POST", &maps, map("a", "one")).await.is(201);
    assert_eq!(made["data"], json!({"key": "one"}));
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    let one = format!("{maps}/a");
    let replaced = send(&test, "PUT", &one, map("a", "two")).await.ok();
    assert_eq!(replaced["data"], json!({"key": "two"}));
    assert_ne!(version(&made), version(&replaced));
}

#[tokio::test]
async fn rule_22_a_pod_with_nested_and_repeated_fields() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let port = [number(3, 80), field(4, "TCP")].concat();
    let quantity = field(1, "500m");
    let limit = [field(1, "cpu"), field(2, quantity)].concat();
    let container = |name: &str| {
        [
            field(1, name),
            field(2, "image"),
            field(3, "sleep"),
            field(3, "5"),
            field(6, &port),
            field(8, field(1, &limit)),
        ]
        .concat()
    };
    let label = [field(1, "app"), field(2, "web")].concat();
    let metadata = [field(1, "a"), field(11, label)].concat();
    let spec = [
        field(2, container("main")),
        field(2, container("side")),
        field(3, "Never"),
        number(4, 7),
    ]
    .concat();
    let raw = [field(1, metadata), field(2, spec)].concat();
    let body = envelope("v1", "Pod", &raw);
    let made = send(&test, "POST", &pods, body).await.is(201);
    assert_eq!(made["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(made["spec"]["restartPolicy"], "Never");
    assert_eq!(made["spec"]["terminationGracePeriodSeconds"], 7);
    let containers = made["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2);
    assert_eq!(containers[1]["name"], "side");
    assert_eq!(containers[0]["command"], json!(["sleep", "5"]));
    assert_eq!(
        containers[0]["ports"],
        json!([{"containerPort": 80, "protocol": "TCP"}])
    );
    assert_eq!(containers[0]["resources"]["limits"], json!({"cpu": "500m"}));
}

#[tokio::test]
async fn rule_22_delete_options_in_protobuf() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    let one = format!("{maps}/a");
    let options = |policy: &str| {
        let raw = [number(1, 0), field(4, policy)].concat();
        envelope("v1", "DeleteOptions", &raw)
    };
    let pending = send(&test, "DELETE", &one, options("Foreground"))
        .await
        .ok();
    assert_eq!(
        pending["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    let wrong = field(2, field(1, "11111111-2222-3333-4444-555555555555"));
    let wrong = envelope("v1", "DeleteOptions", &wrong);
    send(&test, "DELETE", &one, wrong)
        .await
        .refused(409, "Conflict");
    send(&test, "DELETE", &one, options("Background"))
        .await
        .ok();
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_22_a_response_may_be_json() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let request = test.request("POST", &maps).accept("application/json, */*");
    let made = request.body(PROTOBUF, map("a", "one")).send().await.is(201);
    assert_eq!(made["metadata"]["name"], "a");
}

#[tokio::test]
async fn rule_22_a_malformed_body_is_a_bad_request() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let good = map("a", "one");
    for body in [
        b"k8s".to_vec(),
        b"{\"metadata\": {\"name\": \"a\"}}".to_vec(),
        good[4..].to_vec(),
        good[..good.len() - 3].to_vec(),
        envelope("v1", "ConfigMap", &[0xff; 8]),
        envelope("v1", "Secret", &field(1, field(1, "a"))),
        envelope("v9", "ConfigMap", &field(1, field(1, "a"))),
    ] {
        let response = send(&test, "POST", &maps, body.clone()).await;
        assert!(
            (400..500).contains(&response.code),
            "{body:?}: {}",
            response.text()
        );
        assert_eq!(response.json()["kind"], "Status");
    }
    test.get(&format!("{maps}/a"))
        .await
        .refused(404, "NotFound");
}
