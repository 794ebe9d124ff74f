//! Rule 18: server-side apply.

use longshore_conformance::{Answer, ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, version, with};

/// Applies as a manager; `query` adds parameters.
async fn apply(test: &ApiTest, one: &str, manager: &str, query: &str, object: &Value) -> Answer {
    let path = format!("{one}?fieldManager={manager}{query}");
    test.patch(&path, PatchType::Apply, object).await
}

/// The ConfigMap `a` with this data.
fn map(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data,
    })
}

/// A test, and the place of a ConfigMap that is not there.
struct Map {
    test: ApiTest,
    one: String,
}

impl Map {
    async fn start() -> Self {
        let test = ApiTest::start().await;
        let one = format!("{}/a", test.path("v1", "configmaps"));
        Self { test, one }
    }

    /// Applies data as a manager.
    async fn apply(&self, manager: &str, data: Value) -> Answer {
        apply(&self.test, &self.one, manager, "", &map(data)).await
    }

    /// Changes something without applying it.
    async fn merge(&self, query: &str, patch: Value) -> Value {
        let path = format!("{}{query}", self.one);
        self.test.patch(&path, PatchType::Merge, &patch).await.ok()
    }
}

/// The entry of a manager and operation.
#[track_caller]
fn entry<'a>(object: &'a Value, manager: &str, operation: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .find(|entry| entry["manager"] == manager && entry["operation"] == operation)
        .unwrap_or_else(|| panic!("nothing of {manager} ({operation}): {object}"))
}

#[tokio::test]
async fn rule_18_an_apply_makes_what_is_not_there() {
    let place = Map::start().await;
    let made = place.apply("me", json!({"k": "v"})).await.is(201);
    let entry = entry(&made, "me", "Apply");
    assert_eq!(entry["apiVersion"], "v1");
    assert_eq!(entry["fieldsType"], "FieldsV1");
    assert_eq!(entry["fieldsV1"], json!({"f:data": {"f:k": {}}}));
    assert!(entry["time"].is_string());
    // Again: nothing happens, 200.
    let again = place.apply("me", json!({"k": "v"})).await.ok();
    assert_eq!(version(&again), version(&made));
    assert_eq!(again, made);
}

#[tokio::test]
async fn rule_18_what_it_requires() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("v1", "configmaps"));
    let object = map(json!({"k": "v"}));
    let answer = test.patch(&one, PatchType::Apply, &object).await;
    answer.refused_for(422, "Invalid", &[("FieldValueRequired", "fieldManager")]);
    let mut kindless = object.clone();
    kindless.as_object_mut().unwrap().remove("apiVersion");
    let answer = apply(&test, &one, "me", "", &kindless).await;
    answer.refused(400, "BadRequest");
    let other = with(object.clone(), &[("/metadata/name", json!("b"))]);
    let answer = apply(&test, &one, "me", "", &other).await;
    answer.refused(400, "BadRequest");
    let managed = with(
        object.clone(),
        &[("/metadata/managedFields", json!([{"manager": "x"}]))],
    );
    let answer = apply(&test, &one, "me", "", &managed).await;
    answer.refused(400, "BadRequest");
    let long = "x".repeat(129);
    let answer = apply(&test, &one, &long, "", &object).await;
    answer.refused_for(422, "Invalid", &[("FieldValueTooLong", "fieldManager")]);
    let force = format!("{one}?force=true");
    let answer = test.patch(&force, PatchType::Merge, &json!({})).await;
    answer.refused_for(422, "Invalid", &[("FieldValueForbidden", "force")]);
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_18_the_body_may_be_yaml() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("v1", "configmaps"));
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let call = test.call("PATCH", &format!("{one}?fieldManager=me"));
    let made = call.body(PatchType::Apply.media_type(), yaml).send().await;
    assert_eq!(made.is(201)["data"], json!({"k": "v"}));
}

#[tokio::test]
async fn rule_18_another_managers_value_conflicts_however_it_was_written() {
    let place = Map::start().await;
    place
        .apply("first", json!({"x": "1", "y": "1"}))
        .await
        .is(201);
    let patch = json!({"data": {"z": "1"}});
    place.merge("?fieldManager=second", patch).await;

    for (field, by) in [("x", "first"), ("z", "second")] {
        let answer = place.apply("third", json!({field: "2"})).await;
        let cause = format!(".data.{field}");
        let status = answer.refused_for(409, "Conflict", &[("FieldManagerConflict", &cause)]);
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
    let status = place.apply("third", both).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 3);
    let kept = place.test.get(&place.one).await.ok();
    assert_eq!(kept["data"], json!({"x": "1", "y": "1", "z": "1"}));
}

#[tokio::test]
async fn rule_18_the_same_value_is_shared() {
    let place = Map::start().await;
    let data = json!({"x": "1"});
    place.apply("first", data.clone()).await.is(201);
    let shared = place.apply("second", data).await.ok();
    for manager in ["first", "second"] {
        let fields = &entry(&shared, manager, "Apply")["fieldsV1"];
        assert_eq!(*fields, json!({"f:data": {"f:x": {}}}), "{manager}");
    }
    // Who gives it up does not remove it while the other wants it.
    let left = place.apply("first", json!({"y": "1"})).await.ok();
    assert_eq!(left["data"], json!({"x": "1", "y": "1"}));
    // Who shares it cannot change it alone.
    let answer = place.apply("second", json!({"x": "2"})).await;
    answer.ok();
}

#[tokio::test]
async fn rule_18_force_takes_over() {
    let place = Map::start().await;
    place
        .apply("first", json!({"x": "1", "y": "1"}))
        .await
        .is(201);
    let data = json!({"x": "2"});
    place
        .apply("second", data.clone())
        .await
        .refused(409, "Conflict");
    let taken = apply(&place.test, &place.one, "second", "&force=true", &map(data))
        .await
        .ok();
    assert_eq!(taken["data"], json!({"x": "2", "y": "1"}));
    let of = |manager| &entry(&taken, manager, "Apply")["fieldsV1"];
    assert_eq!(*of("first"), json!({"f:data": {"f:y": {}}}));
    assert_eq!(*of("second"), json!({"f:data": {"f:x": {}}}));
}

#[tokio::test]
async fn rule_18_what_was_taken_over_stays_so() {
    let place = Map::start().await;
    let maps = place.test.path("v1", "configmaps");
    place.test.create(&maps, &map(json!({"k": "v"}))).await;
    let (test, one) = (&place.test, &place.one);
    apply(test, one, "me", "&force=true", &map(json!({"k": "w"})))
        .await
        .ok();
    // Who made it has the bare map left, which is nothing of what is in it.
    let again = place.apply("me", json!({"k": "x"})).await;
    let why = "who had a bare map had all that is in it until 1.22";
    let code = test.old_or_new(409, 200, why);
    assert_eq!(again.code, code, "{}", again.text());
}

#[tokio::test]
async fn rule_18_what_only_the_manager_owned_and_omits_goes() {
    let place = Map::start().await;
    place.apply("me", json!({"x": "1", "y": "1"})).await.is(201);
    let patch = json!({"data": {"z": "1"}, "metadata": {"labels": {"a": "b"}}});
    place.merge("", patch).await;
    let less = place.apply("me", json!({"x": "1"})).await.ok();
    assert_eq!(less["data"], json!({"x": "1", "z": "1"}));
    assert_eq!(less["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        entry(&less, "me", "Apply")["fieldsV1"],
        json!({"f:data": {"f:x": {}}})
    );
}

#[tokio::test]
async fn rule_18_updates_are_recorded_under_the_user_agent_or_the_manager() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = test.create(&maps, &config_map("a")).await;
    let fields = json!({"f:data": {".": {}, "f:key": {}}});
    assert_eq!(entry(&made, "test", "Update")["fieldsV1"], fields);
    let one = format!("{maps}/a");
    let patch = json!({"data": {"other": "x"}});
    let call = test.call("PATCH", &format!("{one}?fieldManager=named"));
    let patched = call.patch(PatchType::Merge, &patch).send().await.ok();
    assert_eq!(
        entry(&patched, "named", "Update")["fieldsV1"],
        json!({"f:data": {"f:other": {}}})
    );
    let patch = json!({"data": {"third": "x"}});
    let call = test
        .call("PATCH", &one)
        .header("user-agent", "tool/v1.2 (linux) more/3");
    let patched = call.patch(PatchType::Merge, &patch).send().await.ok();
    assert_eq!(
        entry(&patched, "tool", "Update")["fieldsV1"],
        json!({"f:data": {"f:third": {}}})
    );
    // Who overwrites a value owns it from then on.
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
async fn rule_18_lists_are_owned_by_their_keys() {
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
    // The same port under two protocols is two items.
    let both = service(json!([port(53, "TCP"), port(53, "UDP")]));
    let made = apply(&test, &one, "me", "", &both).await.is(201);
    let fields = &entry(&made, "me", "Apply")["fieldsV1"]["f:spec"]["f:ports"];
    for protocol in ["TCP", "UDP"] {
        let key = format!("k:{{\"port\":53,\"protocol\":\"{protocol}\"}}");
        assert!(fields[&key].is_object(), "{fields}");
    }
    // Another manager adds its own.
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
async fn rule_18_containers_and_their_ports_have_keys() {
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
    // Another manager changes the replicas, the first does not mind.
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
    let answer = apply(&test, &one, "scaler", "", &other).await;
    let causes = [(
        "FieldManagerConflict",
        ".spec.template.spec.containers[name=\"main\"].image",
    )];
    answer.refused_for(409, "Conflict", &causes);
}

#[tokio::test]
async fn rule_18_the_status_is_applied_apart() {
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
    if test.newer("managers of subresources are separate since 1.22") {
        assert_eq!(entry(&written, "me", "Apply")["subresource"], "status");
    }
}

#[tokio::test]
async fn rule_18_a_dry_apply_keeps_nothing() {
    let test = ApiTest::start().await;
    let one = format!("{}/a", test.path("v1", "configmaps"));
    let object = map(json!({"x": "1"}));
    apply(&test, &one, "me", "&dryRun=All", &object)
        .await
        .is(201);
    test.get(&one).await.refused(404, "NotFound");
}
