//! Merge keys of lists.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use super::{container, map_with, merged, patch, refused, test, values};
use crate::common::pod;

#[tokio::test]
async fn rule_17_pod_lists_merge_by_key() {
    // Field, value before, patch, value after.
    let table = [
        (
            "initContainers",
            json!([container("a", json!({})), container("b", json!({}))]),
            json!([{"name": "b", "image": "j"}]),
            json!([{"name": "a", "image": "image"}, {"name": "b", "image": "j"}]),
        ),
        (
            "imagePullSecrets",
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "c"}]),
            json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]),
        ),
        (
            "hostAliases",
            json!([{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.2", "hostnames": ["b"]}]),
            json!([{"ip": "10.0.0.2", "hostnames": ["c"]}]),
            json!([{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.2", "hostnames": ["c"]}]),
        ),
        (
            "topologySpreadConstraints",
            json!([
                {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
                {"topologyKey": "host", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
            ]),
            json!([{"topologyKey": "host", "maxSkew": 3}]),
            json!([
                {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
                {"topologyKey": "host", "maxSkew": 3, "whenUnsatisfiable": "DoNotSchedule"},
            ]),
        ),
        (
            "tolerations",
            json!([{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]),
            json!([{"key": "c", "operator": "Exists"}]),
            json!([{"key": "c", "operator": "Exists"}]),
        ),
    ];
    let fields = table
        .iter()
        .map(|(field, before, ..)| ((*field).to_owned(), before.clone()));
    let (test, one) = test(Value::Object(fields.collect())).await;
    for (field, _, change, after) in table {
        let done = patch(&test, &one, json!({field: change})).await;
        assert_includes(&done[field], &after, field);
    }
}

#[tokio::test]
async fn rule_17_container_lists_merge_by_key() {
    let table = [
        (
            "env",
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
            json!([{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]),
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]),
        ),
        (
            "ports",
            json!([{"containerPort": 80, "name": "web"}, {"containerPort": 81}]),
            json!([{"containerPort": 80, "name": "http"}]),
            json!([{"containerPort": 80, "name": "http", "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]),
        ),
        (
            "volumeMounts",
            json!([{"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "v"}]),
            json!([{"mountPath": "/b", "name": "v", "readOnly": true}]),
            json!([{"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "v", "readOnly": true}]),
        ),
        (
            "volumeDevices",
            json!([{"devicePath": "/dev/a", "name": "w"}]),
            json!([{"devicePath": "/dev/b", "name": "x"}]),
            json!([{"devicePath": "/dev/b", "name": "x"}, {"devicePath": "/dev/a", "name": "w"}]),
        ),
        ("command", json!(["a", "b"]), json!(["c"]), json!(["c"])),
        ("args", json!(["a", "b"]), json!(["c"]), json!(["c"])),
        (
            "envFrom",
            json!([{"configMapRef": {"name": "a"}}]),
            json!([{"configMapRef": {"name": "b"}}]),
            json!([{"configMapRef": {"name": "b"}}]),
        ),
    ];
    let fields = table
        .iter()
        .map(|(field, before, ..)| ((*field).to_owned(), before.clone()));
    let main = container("main", Value::Object(fields.collect()));
    let claim = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let spec = json!({
        "containers": [main],
        "volumes": [{"name": "v", "emptyDir": {}}, claim("w"), claim("x")],
    });
    let (test, one) = test(spec).await;
    for (field, _, change, after) in table {
        let done = patch(
            &test,
            &one,
            json!({"containers": [{"name": "main", field: change}]}),
        )
        .await;
        assert_includes(&done["containers"][0][field], &after, field);
    }
}

/// Asserts that both lists have the same items in the same order. Items may have more
/// fields than expected, such as defaults.
#[track_caller]
fn assert_includes(given: &Value, expected: &Value, what: &str) {
    match (given, expected) {
        (Value::Array(given), Value::Array(expected)) => {
            assert_eq!(given.len(), expected.len(), "{what}: {given:?}");
            for (given, expected) in given.iter().zip(expected) {
                assert_includes(given, expected, what);
            }
        }
        (Value::Object(given), Value::Object(expected)) => {
            for (name, expected) in expected {
                let given = given.get(name).unwrap_or(&Value::Null);
                assert_includes(given, expected, what);
            }
        }
        _ => assert_eq!(given, expected, "{what}"),
    }
}

#[tokio::test]
async fn rule_17_service_ports_merge_by_port() {
    let test = ApiTest::start().await;
    let services = test.path("v1", "services");
    let service = json!({
        "metadata": {"name": "a"},
        "spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
    });
    test.create(&services, &service).await;
    let patch = json!({"spec": {"ports": [{"port": 2, "name": "c"}]}});
    let one = format!("{services}/a");
    let done = merged(&test, &one, patch).await;
    assert_eq!(values(&done["spec"]["ports"], "name"), ["a", "c"]);
}

#[tokio::test]
async fn rule_17_conditions_and_addresses_merge_by_type() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a/status");
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let status = async |path: &str, status: Value| {
        let patch = json!({"status": status});
        test.patch(path, PatchType::Strategic, &patch).await.ok()["status"].take()
    };
    status(
        &one,
        json!({"conditions": [condition("Ready", "False"), condition("Other", "True")]}),
    )
    .await;
    let done = status(&one, json!({"conditions": [condition("Ready", "True")]})).await;
    let mut both: Vec<_> = done["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["type"].clone(), c["status"].clone()))
        .collect();
    both.sort_by_key(|(kind, _)| kind.to_string());
    assert_eq!(
        both,
        [
            (json!("Other"), json!("True")),
            (json!("Ready"), json!("True"))
        ]
    );

    let nodes = test.cluster_path("v1", "nodes");
    let name = format!("{}-node", test.namespace());
    test.create(&nodes, &json!({"metadata": {"name": name}}))
        .await;
    let one = format!("{nodes}/{name}/status");
    let address = |kind: &str, address: &str| json!({"type": kind, "address": address});
    status(
        &one,
        json!({"addresses": [address("Hostname", "a"), address("InternalIP", "10.0.0.1")]}),
    )
    .await;
    let done = status(&one, json!({"addresses": [address("Hostname", "b")]})).await;
    let mut both: Vec<_> = done["addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["address"].clone())
        .collect();
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("10.0.0.1"), json!("b")]);
}

#[tokio::test]
async fn rule_17_owner_references_merge_by_uid() {
    let owner = |uid: &str, name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid});
    let owners = json!([owner("1", "a"), owner("2", "b")]);
    let (test, one) = map_with("/metadata/ownerReferences", owners).await;
    let patch = json!({"metadata": {"ownerReferences": [
        {"uid": "2", "$patch": "delete"}, owner("3", "c"),
    ]}});
    let done = merged(&test, &one, patch).await;
    let mut names = values(&done["metadata"]["ownerReferences"], "name");
    names.sort_unstable();
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test]
async fn rule_17_an_item_without_its_merge_key_is_rejected() {
    let (test, one) = test(json!({})).await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"image": "i"}]}}}});
    let response = refused(&test, &one, patch).await;
    assert_eq!(response.code, 500, "{}", response.text());
}
