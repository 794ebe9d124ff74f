//! Rule 12: propagation of deletes to dependents, by finalizers that the garbage
//! collector handles.

use longshore_conformance::ApiTest;
use serde_json::{Value, json};

use crate::common::{config_map, deployment, with};

fn finalizers(object: &Value) -> &Value {
    assert!(
        object["metadata"]["deletionTimestamp"].is_string(),
        "{object}"
    );
    &object["metadata"]["finalizers"]
}

#[tokio::test]
async fn rule_12_background_is_the_default_and_adds_no_finalizer() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    for options in [
        json!({}),
        json!({"propagationPolicy": "Background"}),
        json!({"orphanDependents": false}),
    ] {
        test.create(&path, &deployment("a")).await;
        let status = test.delete_with(&format!("{path}/a"), &options).await.ok();
        assert_eq!(status["status"], "Success", "{options}");
    }
}

#[tokio::test]
async fn rule_12_orphan_and_foreground_add_finalizers() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    for (name, options, finalizer) in [
        ("a", json!({"propagationPolicy": "Orphan"}), "orphan"),
        ("b", json!({"orphanDependents": true}), "orphan"),
        (
            "c",
            json!({"propagationPolicy": "Foreground"}),
            "foregroundDeletion",
        ),
    ] {
        test.create(&path, &deployment(name)).await;
        let one = format!("{path}/{name}");
        let pending = test.delete_with(&one, &options).await.ok();
        assert_eq!(*finalizers(&pending), json!([finalizer]), "{options}");
    }
    // The query parameter has the same effect.
    test.create(&path, &deployment("d")).await;
    let query = format!("{path}/d?propagationPolicy=Foreground");
    let pending = test.delete(&query).await.ok();
    assert_eq!(*finalizers(&pending), json!(["foregroundDeletion"]));
    // Existing finalizers are kept.
    let held = with(
        deployment("e"),
        &[("/metadata/finalizers", json!(["example.com/hold"]))],
    );
    test.create(&path, &held).await;
    let query = format!("{path}/e?propagationPolicy=Orphan");
    let pending = test.delete(&query).await.ok();
    let mut both: Vec<_> = finalizers(&pending).as_array().unwrap().clone();
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("example.com/hold"), json!("orphan")]);
}

#[tokio::test]
async fn rule_12_a_later_policy_replaces_an_earlier_one() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    test.create(&path, &deployment("a")).await;
    let one = format!("{path}/a");
    let delete = async |policy: &str| {
        test.delete(&format!("{one}?propagationPolicy={policy}"))
            .await
            .ok()
    };
    assert_eq!(
        *finalizers(&delete("Foreground").await),
        json!(["foregroundDeletion"])
    );
    assert_eq!(*finalizers(&delete("Orphan").await), json!(["orphan"]));
    let gone = delete("Background").await;
    assert!(
        gone["kind"] == "Status" || gone["metadata"].get("finalizers").is_none(),
        "{gone}"
    );
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_12_an_existing_finalizer_sets_the_policy() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for finalizer in ["orphan", "foregroundDeletion"] {
        let map = with(
            config_map(&finalizer.to_lowercase()),
            &[("/metadata/finalizers", json!([finalizer]))],
        );
        test.create(&maps, &map).await;
        let one = format!("{maps}/{}", finalizer.to_lowercase());
        let pending = test.delete(&one).await.ok();
        assert_eq!(*finalizers(&pending), json!([finalizer]));
    }
}

#[tokio::test]
async fn rule_12_jobs_and_replication_controllers_orphan_by_default() {
    let test = ApiTest::start().await;
    let template = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    });
    let job = with(template.clone(), &[("/spec/restartPolicy", json!("Never"))]);
    for (group_version, plural, spec) in [
        ("batch/v1", "jobs", json!({"template": job})),
        (
            "v1",
            "replicationcontrollers",
            json!({"selector": {"app": "a"}, "template": template}),
        ),
    ] {
        let path = test.path(group_version, plural);
        let one = format!("{path}/a");
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        test.create(&path, &object).await;
        let pending = test.delete(&one).await.ok();
        assert_eq!(*finalizers(&pending), json!(["orphan"]), "{plural}");
        // An explicit policy overrides the default.
        test.create(&path, &with(object, &[("/metadata/name", json!("b"))]))
            .await;
        let other = test
            .delete(&format!("{path}/b?propagationPolicy=Background"))
            .await;
        assert_eq!(other.ok()["status"], "Success", "{plural}");
    }
}

#[tokio::test]
async fn rule_12_orphan_dependents_and_a_policy_are_mutually_exclusive() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    let both = json!({"orphanDependents": true, "propagationPolicy": "Orphan"});
    let response = test.delete_with(&one, &both).await;
    response.refused_for(
        422,
        "Invalid",
        &[("FieldValueInvalid", "propagationPolicy")],
    );
    let unknown = json!({"propagationPolicy": "Later"});
    let response = test.delete_with(&one, &unknown).await;
    let status = response.refused(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "propagationPolicy");
    test.get(&one).await.ok();
}

#[tokio::test]
async fn rule_12_the_garbage_collector_removes_finalizers_by_updates() {
    // The garbage collector removes its finalizer by an ordinary write.
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    test.create(&path, &deployment("a")).await;
    let one = format!("{path}/a");
    let pending = test
        .delete(&format!("{one}?propagationPolicy=Foreground"))
        .await
        .ok();
    let free = json!([{"op": "remove", "path": "/metadata/finalizers/0"}]);
    let json = longshore_conformance::PatchType::Json;
    let done = test.patch(&one, json, &free).await.ok();
    assert_eq!(done["metadata"]["uid"], pending["metadata"]["uid"]);
    test.get(&one).await.refused(404, "NotFound");
}
