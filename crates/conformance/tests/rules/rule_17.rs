//! Rule 17: strategic merge: directives and merge keys.

use longshore_conformance::{Judge, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, pod, with};

/// A judge with a Deployment whose pods' spec has these fields besides, and
/// the Deployment's path.
async fn judge(spec: Value) -> (Judge, String) {
    let judge = Judge::start().await;
    let path = judge.path("apps/v1", "deployments");
    let mut object = deployment("a");
    let fields = spec.as_object().unwrap().clone();
    let pods = object["spec"]["template"]["spec"].as_object_mut().unwrap();
    pods.extend(fields);
    judge.create(&path, &object).await;
    (judge, format!("{path}/a"))
}

/// Patches the pods' spec; gives the new one.
async fn patch(judge: &Judge, one: &str, spec: Value) -> Value {
    let patch = json!({"spec": {"template": {"spec": spec}}});
    let mut done = judge.patch(one, PatchType::Strategic, &patch).await.ok();
    done["spec"]["template"]["spec"].take()
}

fn values<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items
        .iter()
        .map(|item| item[key].as_str().unwrap())
        .collect()
}

/// A container with these fields besides.
fn container(name: &str, fields: Value) -> Value {
    let mut container = json!({"name": name, "image": "image"});
    let fields = fields.as_object().unwrap().clone();
    container.as_object_mut().unwrap().extend(fields);
    container
}

#[tokio::test]
async fn rule_17_patch_delete_removes_an_item_or_an_object() {
    let spec = json!({
        "containers": [container("main", json!({})), container("side", json!({}))],
        "securityContext": {"runAsUser": 5},
    });
    let (judge, one) = judge(spec).await;
    let done = patch(
        &judge,
        &one,
        json!({
            "containers": [{"name": "side", "$patch": "delete"}],
            "securityContext": {"$patch": "delete"},
        }),
    )
    .await;
    assert_eq!(values(&done["containers"], "name"), ["main"]);
    assert_eq!(done["securityContext"], json!({}), "the default again");
    // One that is not there: nothing to do.
    let same = patch(
        &judge,
        &one,
        json!({
            "containers": [{"name": "none", "$patch": "delete"}],
        }),
    )
    .await;
    assert_eq!(same, done);
}

#[tokio::test]
async fn rule_17_patch_replace_takes_the_patch_as_it_is() {
    let spec = json!({
        "containers": [
            container("main", json!({"env": [{"name": "A", "value": "1"}], "resources": {"limits": {"cpu": "1"}}})),
            container("side", json!({})),
        ],
        "nodeSelector": {"a": "b"},
    });
    let (judge, one) = judge(spec).await;
    let done = patch(
        &judge,
        &one,
        json!({
            "nodeSelector": {"c": "d", "$patch": "replace"},
            "containers": [{
                "name": "main", "resources": {"$patch": "replace", "requests": {"cpu": "2"}},
            }],
        }),
    )
    .await;
    assert_eq!(done["nodeSelector"], json!({"c": "d"}));
    let main = &done["containers"][0];
    assert_eq!(main["resources"], json!({"requests": {"cpu": "2"}}));
    assert_eq!(main["env"][0]["name"], "A");
    // A list: the directive is an item of its own.
    let done = patch(
        &judge,
        &one,
        json!({
            "containers": [{"$patch": "replace"}, {"name": "new", "image": "i"}],
        }),
    )
    .await;
    assert_eq!(values(&done["containers"], "name"), ["new"]);
    // To merge may be said, too.
    if judge.newer("$patch: merge, which only says what is done anyway, is refused") {
        let merge = json!({"nodeSelector": {"e": "f", "$patch": "merge"}});
        let done = patch(&judge, &one, merge).await;
        assert_eq!(done["nodeSelector"], json!({"c": "d", "e": "f"}));
    }
}

#[tokio::test]
async fn rule_17_an_unknown_directive_is_refused() {
    let (judge, one) = judge(json!({})).await;
    let patch = json!({"spec": {"template": {"spec": {"$patch": "explode"}}}});
    let answer = judge.patch(&one, PatchType::Strategic, &patch).await;
    assert!([400, 422, 500].contains(&answer.code), "{}", answer.text());
    if judge.newer("unknown directives answered with a reason: 1.20 answers 500") {
        assert_eq!(answer.code, 400, "{}", answer.text());
    }
}

#[tokio::test]
async fn rule_17_items_are_deleted_from_lists_of_primitives() {
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    let finalizers = json!(["example.com/a", "example.com/b", "example.com/c"]);
    judge
        .create(
            &maps,
            &with(config_map("a"), &[("/metadata/finalizers", finalizers)]),
        )
        .await;
    let one = format!("{maps}/a");
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/b", "example.com/none"],
    }});
    let done = judge.patch(&one, PatchType::Strategic, &patch).await.ok();
    assert_eq!(
        done["metadata"]["finalizers"],
        json!(["example.com/a", "example.com/c"])
    );
}

#[tokio::test]
async fn rule_17_finalizers_merge_as_a_set() {
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    let finalizers = json!(["example.com/a"]);
    judge
        .create(
            &maps,
            &with(config_map("a"), &[("/metadata/finalizers", finalizers)]),
        )
        .await;
    let one = format!("{maps}/a");
    let patch = json!({"metadata": {"finalizers": ["example.com/b", "example.com/a"]}});
    let done = judge.patch(&one, PatchType::Strategic, &patch).await.ok();
    let mut both = done["metadata"]["finalizers"].as_array().unwrap().clone();
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("example.com/a"), json!("example.com/b")]);
}

#[tokio::test]
async fn rule_17_set_element_order_orders_merged_lists() {
    let spec = json!({"containers": [
        container("a", json!({})), container("b", json!({})), container("c", json!({})),
    ]});
    let (judge, one) = judge(spec).await;
    let done = patch(&judge, &one, json!({
        "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}, {"name": "b"}],
        "containers": [{"name": "d", "image": "i"}],
    }))
    .await;
    assert_eq!(values(&done["containers"], "name"), ["c", "d", "a", "b"]);
    // What the order does not name stays behind what it stood behind.
    let done = patch(
        &judge,
        &one,
        json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}],
            "containers": [{"name": "b", "image": "j"}],
        }),
    )
    .await;
    let names = values(&done["containers"], "name");
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert!(place("b") < place("c"), "{names:?}");
    assert_eq!(names.len(), 4);
    // Of primitives, too.
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    let finalizers = json!(["example.com/a", "example.com/b"]);
    judge
        .create(
            &maps,
            &with(config_map("a"), &[("/metadata/finalizers", finalizers)]),
        )
        .await;
    let patch = json!({"metadata": {
        "$setElementOrder/finalizers": ["example.com/c", "example.com/b", "example.com/a"],
        "finalizers": ["example.com/c"],
    }});
    let one = format!("{maps}/a");
    let done = judge.patch(&one, PatchType::Strategic, &patch).await.ok();
    let expected = json!(["example.com/c", "example.com/b", "example.com/a"]);
    assert_eq!(done["metadata"]["finalizers"], expected);
}

#[tokio::test]
async fn rule_17_without_an_order_new_items_stand_before_what_follows_them() {
    let spec = json!({"containers": [
        container("a", json!({})), container("b", json!({})), container("c", json!({})),
    ]});
    let (judge, one) = judge(spec).await;
    for (names, expected) in [
        (&["x"][..], &["x", "a", "b", "c"][..]),
        (&["b", "y"], &["x", "a", "b", "y", "c"]),
        (&["z", "a"], &["z", "x", "a", "b", "y", "c"]),
    ] {
        let items: Vec<_> = names
            .iter()
            .map(|name| container(name, json!({})))
            .collect();
        let done = patch(&judge, &one, json!({"containers": items})).await;
        assert_eq!(values(&done["containers"], "name"), expected);
    }
}

#[tokio::test]
async fn rule_17_retain_keys_drops_all_others() {
    let (judge, one) =
        judge(json!({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]})).await;
    let done = patch(
        &judge,
        &one,
        json!({"volumes": [
            {"name": "v", "configMap": {"name": "m"}, "$retainKeys": ["name", "configMap"]},
        ]}),
    )
    .await;
    let volume = &done["volumes"][0];
    assert_eq!(volume.get("emptyDir"), None, "{volume}");
    assert_eq!(volume["configMap"]["name"], "m");
    // Deployment strategies: the rolling update's parameters go with it.
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let done = judge.patch(&one, PatchType::Strategic, &patch).await.ok();
    assert_eq!(done["spec"]["strategy"], json!({"type": "Recreate"}));
    // Keys that the patch sets must be retained.
    let patch =
        json!({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}});
    let answer = judge.patch(&one, PatchType::Strategic, &patch).await;
    assert!([400, 422, 500].contains(&answer.code), "{}", answer.text());
}

#[tokio::test]
async fn rule_17_lists_of_pods_merge_by_their_keys() {
    // Field, merge key, what is there, what is patched, what is there then.
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
    let (judge, one) = judge(Value::Object(fields.collect())).await;
    for (field, _, change, after) in table {
        let done = patch(&judge, &one, json!({field: change})).await;
        assert_like(&done[field], &after, field);
    }
}

#[tokio::test]
async fn rule_17_lists_of_containers_merge_by_their_keys() {
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
    let (judge, one) = judge(spec).await;
    for (field, _, change, after) in table {
        let done = patch(
            &judge,
            &one,
            json!({"containers": [{"name": "main", field: change}]}),
        )
        .await;
        assert_like(&done["containers"][0][field], &after, field);
    }
}

/// Both lists have the same items in the same order, as far as `expected`
/// says: defaults may be there besides.
#[track_caller]
fn assert_like(given: &Value, expected: &Value, what: &str) {
    match (given, expected) {
        (Value::Array(given), Value::Array(expected)) => {
            assert_eq!(given.len(), expected.len(), "{what}: {given:?}");
            for (given, expected) in given.iter().zip(expected) {
                assert_like(given, expected, what);
            }
        }
        (Value::Object(given), Value::Object(expected)) => {
            for (name, expected) in expected {
                let given = given.get(name).unwrap_or(&Value::Null);
                assert_like(given, expected, what);
            }
        }
        _ => assert_eq!(given, expected, "{what}"),
    }
}

#[tokio::test]
async fn rule_17_service_ports_merge_by_port() {
    let judge = Judge::start().await;
    let services = judge.path("v1", "services");
    let service = json!({
        "metadata": {"name": "a"},
        "spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
    });
    judge.create(&services, &service).await;
    let patch = json!({"spec": {"ports": [{"port": 2, "name": "c"}]}});
    let one = format!("{services}/a");
    let done = judge.patch(&one, PatchType::Strategic, &patch).await.ok();
    assert_eq!(values(&done["spec"]["ports"], "name"), ["a", "c"]);
}

#[tokio::test]
async fn rule_17_conditions_and_addresses_merge_by_type() {
    let judge = Judge::start().await;
    let pods = judge.path("v1", "pods");
    judge.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a/status");
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let status = async |path: &str, status: Value| {
        let patch = json!({"status": status});
        judge.patch(path, PatchType::Strategic, &patch).await.ok()["status"].take()
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

    let nodes = judge.wide("v1", "nodes");
    let name = format!("{}-node", judge.namespace());
    judge
        .create(&nodes, &json!({"metadata": {"name": name}}))
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
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    let owner = |uid: &str, name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid});
    let owners = json!([owner("1", "a"), owner("2", "b")]);
    judge
        .create(
            &maps,
            &with(config_map("a"), &[("/metadata/ownerReferences", owners)]),
        )
        .await;
    let one = format!("{maps}/a");
    let patch = json!({"metadata": {"ownerReferences": [
        {"uid": "2", "$patch": "delete"}, owner("3", "c"),
    ]}});
    let done = judge.patch(&one, PatchType::Strategic, &patch).await.ok();
    let mut names = values(&done["metadata"]["ownerReferences"], "name");
    names.sort_unstable();
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test]
async fn rule_17_an_item_without_its_key_is_refused() {
    let (judge, one) = judge(json!({})).await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"image": "i"}]}}}});
    let answer = judge.patch(&one, PatchType::Strategic, &patch).await;
    assert!([400, 422, 500].contains(&answer.code), "{}", answer.text());
    if judge.newer("a missing merge key answered with a reason: 1.20 answers 500") {
        assert_ne!(answer.code, 500, "{}", answer.text());
    }
}

#[tokio::test]
async fn rule_17_null_deletes() {
    let (judge, one) =
        judge(json!({"nodeSelector": {"a": "b", "c": "d"}, "priorityClassName": ""})).await;
    let done = patch(
        &judge,
        &one,
        json!({"nodeSelector": {"a": null}, "hostname": null}),
    )
    .await;
    assert_eq!(done["nodeSelector"], json!({"c": "d"}));
    let done = patch(&judge, &one, json!({"nodeSelector": null})).await;
    assert_eq!(done.get("nodeSelector"), None);
}
