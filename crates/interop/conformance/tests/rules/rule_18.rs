//! Rule 18: server-side apply.

use longshore_conformance::{ApiTest, PatchType, Response};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, version, with};

/// Applies an object as a field manager; `query` contains additional parameters.
async fn apply(test: &ApiTest, one: &str, manager: &str, query: &str, object: &Value) -> Response {
    let path = format!("{one}?fieldManager={manager}{query}");
    test.patch(&path, PatchType::Apply, object).await
}

/// The ConfigMap `a` with this data.
fn map(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data,
    })
}

/// A test and the path of a ConfigMap that does not exist yet.
struct MapTest {
    test: ApiTest,
    one: String,
}

impl MapTest {
    async fn start() -> Self {
        let test = ApiTest::start().await;
        let one = format!("{}/a", test.path("v1", "configmaps"));
        Self { test, one }
    }

    /// Applies data as a field manager.
    async fn apply(&self, manager: &str, data: Value) -> Response {
        apply(&self.test, &self.one, manager, "", &map(data)).await
    }

    /// Changes the ConfigMap by a merge patch.
    async fn merge(&self, query: &str, patch: Value) -> Value {
        let path = format!("{}{query}", self.one);
        self.test.patch(&path, PatchType::Merge, &patch).await.ok()
    }
}

/// The entry of a manager and operation in `managedFields`.
#[track_caller]
fn entry<'a>(object: &'a Value, manager: &str, operation: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .find(|entry| entry["manager"] == manager && entry["operation"] == operation)
        .unwrap_or_else(|| panic!("no entry of {manager} ({operation}): {object}"))
}

#[tokio::test]
async fn rule_18_apply_creates_a_missing_object() {
    let map_test = MapTest::start().await;
    let made = map_test.apply("me", json!({"k": "v"})).await.is(201);
    let entry = entry(&made, "me", "Apply");
    assert_eq!(entry["apiVersion"], "v1");
    assert_eq!(entry["fieldsType"], "FieldsV1");
    assert_eq!(entry["fieldsV1"], json!({"f:data": {"f:k": {}}}));
    assert!(entry["time"].is_string());
    // A second apply changes nothing and returns 200.
    let again = map_test.apply("me", json!({"k": "v"})).await.ok();
    assert_eq!(version(&again), version(&made));
    assert_eq!(again, made);
}

#[tokio::test]
async fn rule_18_required_fields_and_parameters() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("v1", "configmaps"));
    let object = map(json!({"k": "v"}));
    let response = test.patch(&one, PatchType::Apply, &object).await;
    response.refused_for(422, "Invalid", &[("FieldValueRequired", "fieldManager")]);
    let mut kindless = object.clone();
    kindless.as_object_mut().unwrap().remove("apiVersion");
    let response = apply(&test, &one, "me", "", &kindless).await;
    response.refused(400, "BadRequest");
    let other = with(object.clone(), &[("/metadata/name", json!("b"))]);
    let response = apply(&test, &one, "me", "", &other).await;
    response.refused(400, "BadRequest");
    let managed = with(
        object.clone(),
        &[("/metadata/managedFields", json!([{"manager": "x"}]))],
    );
    let response = apply(&test, &one, "me", "", &managed).await;
    response.refused(400, "BadRequest");
    let long = "x".repeat(129);
    let response = apply(&test, &one, &long, "", &object).await;
    response.refused_for(422, "Invalid", &[("FieldValueTooLong", "fieldManager")]);
    let force = format!("{one}?force=true");
    let response = test.patch(&force, PatchType::Merge, &json!({})).await;
    response.refused_for(422, "Invalid", &[("FieldValueForbidden", "force")]);
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_18_the_body_may_be_yaml() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("v1", "configmaps"));
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let request = test.request("PATCH", &format!("{one}?fieldManager=me"));
    let made = request
        .body(PatchType::Apply.media_type(), yaml)
        .send()
        .await;
    assert_eq!(made.is(201)["data"], json!({"k": "v"}));
}

#[tokio::test]
async fn rule_18_another_managers_value_conflicts_regardless_of_the_operation() {
    let map_test = MapTest::start().await;
    map_test
        .apply("first", json!({"x": "1", "y": "1"}))
        .await
        .is(201);
    let patch = json!({"data": {"z": "1"}});
    map_test.merge("?fieldManager=second", patch).await;

    for (field, by) in [("x", "first"), ("z", "second")] {
        let response = map_test.apply("third", json!({field: "2"})).await;
        let cause = format!(".data.{field}");
        let status = response.refused_for(409, "Conflict", &[("FieldManagerConflict", &cause)]);
        let message = status["details"]["causes"][0]["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("conflict with {by:?}")),
            "{message}"
        );
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("Apply failed with 1 conflict: conflict with"),
            "{message}"
        );
    }
    let both = json!({"x": "2", "y": "2", "z": "2"});
    let status = map_test.apply("third", both).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 3);
    let kept = map_test.test.get(&map_test.one).await.ok();
    assert_eq!(kept["data"], json!({"x": "1", "y": "1", "z": "1"}));
}

#[tokio::test]
async fn rule_18_equal_values_are_co_owned() {
    let map_test = MapTest::start().await;
    let data = json!({"x": "1"});
    map_test.apply("first", data.clone()).await.is(201);
    let shared = map_test.apply("second", data).await.ok();
    for manager in ["first", "second"] {
        let fields = &entry(&shared, manager, "Apply")["fieldsV1"];
        assert_eq!(*fields, json!({"f:data": {"f:x": {}}}), "{manager}");
    }
    // If one owner omits the value, it stays while the other owns it.
    let left = map_test.apply("first", json!({"y": "1"})).await.ok();
    assert_eq!(left["data"], json!({"x": "1", "y": "1"}));
    // A sole owner can change the value.
    let response = map_test.apply("second", json!({"x": "2"})).await;
    response.ok();
}

#[tokio::test]
async fn rule_18_force_takes_ownership() {
    let map_test = MapTest::start().await;
    map_test
        .apply("first", json!({"x": "1", "y": "1"}))
        .await
        .is(201);
    let data = json!({"x": "2"});
    map_test
        .apply("second", data.clone())
        .await
        .refused(409, "Conflict");
    let taken = apply(
        &map_test.test,
        &map_test.one,
        "second",
        "&force=true",
        &map(data),
    )
    .await
    .ok();
    assert_eq!(taken["data"], json!({"x": "2", "y": "1"}));
    let of = |manager| &entry(&taken, manager, "Apply")["fieldsV1"];
    assert_eq!(*of("first"), json!({"f:data": {"f:y": {}}}));
    assert_eq!(*of("second"), json!({"f:data": {"f:x": {}}}));
}

#[tokio::test]
async fn rule_18_ownership_taken_by_force_is_kept() {
    let map_test = MapTest::start().await;
    let maps = map_test.test.path("v1", "configmaps");
    map_test.test.create(&maps, &map(json!({"k": "v"}))).await;
    let (test, one) = (&map_test.test, &map_test.one);
    apply(test, one, "me", "&force=true", &map(json!({"k": "w"})))
        .await
        .ok();
    // The manager of the create still owns the map, but not its contents.
    let again = map_test.apply("me", json!({"k": "x"})).await;
    let why = "until 1.22, owning a map included its contents";
    let code = test.old_or_new(409, 200, why);
    assert_eq!(again.code, code, "{}", again.text());
}

#[tokio::test]
async fn rule_18_omitted_fields_without_other_owners_are_removed() {
    let map_test = MapTest::start().await;
    map_test
        .apply("me", json!({"x": "1", "y": "1"}))
        .await
        .is(201);
    let patch = json!({"data": {"z": "1"}, "metadata": {"labels": {"a": "b"}}});
    map_test.merge("", patch).await;
    let less = map_test.apply("me", json!({"x": "1"})).await.ok();
    assert_eq!(less["data"], json!({"x": "1", "z": "1"}));
    assert_eq!(less["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        entry(&less, "me", "Apply")["fieldsV1"],
        json!({"f:data": {"f:x": {}}})
    );
}

#[tokio::test]
async fn rule_18_updates_are_recorded_under_the_user_agent_or_field_manager() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = test.create(&maps, &config_map("a")).await;
    let fields = json!({"f:data": {".": {}, "f:key": {}}});
    assert_eq!(entry(&made, "test", "Update")["fieldsV1"], fields);
    let one = format!("{maps}/a");
    let patch = json!({"data": {"other": "x"}});
    let request = test.request("PATCH", &format!("{one}?fieldManager=named"));
    let patched = request.patch(PatchType::Merge, &patch).send().await.ok();
    assert_eq!(
        entry(&patched, "named", "Update")["fieldsV1"],
        json!({"f:data": {"f:other": {}}})
    );
    let patch = json!({"data": {"third": "x"}});
    let request = test
        .request("PATCH", &one)
        .header("user-agent", "tool/v1.2 (linux) more/3");
    let patched = request.patch(PatchType::Merge, &patch).send().await.ok();
    assert_eq!(
        entry(&patched, "tool", "Update")["fieldsV1"],
        json!({"f:data": {"f:third": {}}})
    );
    // A manager that overwrites a value becomes its owner.
    let patch = json!({"data": {"other": "y"}});
    let patched = test.patch(&one, PatchType::Merge, &patch).await.ok();
    let fields = &entry(&patched, "test", "Update")["fieldsV1"]["f:data"];
    assert_eq!(fields["f:other"], json!({}), "{patched}");
    let left = patched["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        left.iter().all(|entry| entry["manager"] != "named"),
        "{patched}"
    );
}

#[tokio::test]
async fn rule_18_list_items_are_owned_by_key() {
    let test = ApiTest::start().await;
    let services = test.path("v1", "services");
    let one = format!("{services}/a");
    let service = |ports: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "spec": {"ports": ports},
        })
    };
    let port = |port: u32, protocol: &str| json!({"port": port, "protocol": protocol, "name": format!("{}{port}", protocol.to_lowercase())});
    // The same port with two protocols is two items.
    let both = service(json!([port(53, "TCP"), port(53, "UDP")]));
    let made = apply(&test, &one, "me", "", &both).await.is(201);
    let fields = &entry(&made, "me", "Apply")["fieldsV1"]["f:spec"]["f:ports"];
    for protocol in ["TCP", "UDP"] {
        let key = format!("k:{{\"port\":53,\"protocol\":\"{protocol}\"}}");
        assert!(fields[&key].is_object(), "{fields}");
    }
    // Another manager adds a port.
    let own = service(json!([port(80, "TCP")]));
    let added = apply(&test, &one, "you", "", &own).await.ok();
    assert_eq!(added["spec"]["ports"].as_array().unwrap().len(), 3);
    let less = service(json!([port(53, "UDP")]));
    let left = apply(&test, &one, "me", "", &less).await.ok();
    let left: Vec<_> = left["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["name"].clone())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(
        left.contains(&json!("udp53")) && left.contains(&json!("tcp80")),
        "{left:?}"
    );
}

#[tokio::test]
async fn rule_18_containers_and_ports_are_identified_by_keys() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("apps/v1", "deployments"));
    let port = |protocol: &str| json!({"containerPort": 53, "protocol": protocol});
    let pointer = "/spec/template/spec/containers/0/ports";
    let object = with(
        deployment("a"),
        &[(pointer, json!([port("TCP"), port("UDP")]))],
    );
    let made = apply(&test, &one, "me", "", &object).await.is(201);
    let spec = &entry(&made, "me", "Apply")["fieldsV1"]["f:spec"]["f:template"]["f:spec"];
    let ports = &spec["f:containers"]["k:{\"name\":\"main\"}"]["f:ports"];
    for protocol in ["TCP", "UDP"] {
        let key = format!("k:{{\"containerPort\":53,\"protocol\":\"{protocol}\"}}");
        assert!(ports[&key].is_object(), "{ports}");
    }
    // Another manager changes the replicas without a conflict.
    let replicas = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a"}, "spec": {"replicas": 3},
    });
    let scaled = apply(&test, &one, "scaler", "", &replicas).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let again = apply(&test, &one, "me", "", &object).await.ok();
    assert_eq!(again["spec"]["replicas"], 3);
    let image = "/spec/template/spec/containers/0/image";
    let other = with(object, &[(image, json!("other"))]);
    let response = apply(&test, &one, "scaler", "", &other).await;
    let causes = [(
        "FieldManagerConflict",
        ".spec.template.spec.containers[name=\"main\"].image",
    )];
    response.refused_for(409, "Conflict", &causes);
}

#[tokio::test]
async fn rule_18_the_status_is_applied_separately() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let one = format!("{path}/a");
    test.create(&path, &deployment("a")).await;
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a"}, "status": {"replicas": 4},
    });
    let status = format!("{one}/status");
    let written = apply(&test, &status, "me", "", &object).await.ok();
    assert_eq!(written["status"]["replicas"], 4);
    if test.is_newer("field managers are recorded per subresource since 1.22") {
        assert_eq!(entry(&written, "me", "Apply")["subresource"], "status");
    }
}

#[tokio::test]
async fn rule_18_a_dry_run_apply_stores_nothing() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("v1", "configmaps"));
    let object = map(json!({"x": "1"}));
    apply(&test, &one, "me", "&dryRun=All", &object)
        .await
        .is(201);
    test.get(&one).await.refused(404, "NotFound");
}
