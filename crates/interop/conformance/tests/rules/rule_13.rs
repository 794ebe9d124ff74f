//! Rule 13: dry runs validate everything and store nothing.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::json;

use crate::common::{config_map, pod, version, with};

#[tokio::test]
async fn rule_13_a_dry_run_create_returns_the_object_and_stores_nothing() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let made = test.create(&format!("{pods}?dryRun=All"), &pod("a")).await;
    assert_eq!(
        made["spec"]["restartPolicy"], "Always",
        "defaults are applied"
    );
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert!(made["metadata"]["creationTimestamp"].is_string());
    test.get(&format!("{pods}/a"))
        .await
        .refused(404, "NotFound");
    // Names are generated.
    let generated = json!({"metadata": {"generateName": "x-"}, "spec": pod("a")["spec"]});
    let made = test.create(&format!("{pods}?dryRun=All"), &generated).await;
    assert_eq!(made["metadata"]["name"].as_str().unwrap().len(), 7);
    // The object is validated.
    let invalid = with(pod("a"), &[("/spec/containers", json!([]))]);
    let response = test.post(&format!("{pods}?dryRun=All"), &invalid).await;
    response.refused_for(422, "Invalid", &[("FieldValueRequired", "spec.containers")]);
    test.create(&pods, &pod("b")).await;
    let response = test.post(&format!("{pods}?dryRun=All"), &pod("b")).await;
    response.refused(409, "AlreadyExists");
}

#[tokio::test]
async fn rule_13_dry_run_updates_and_patches_change_nothing() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let dry = format!("{one}?dryRun=All");
    let made = test.create(&maps, &config_map("a")).await;
    let mut watch = test
        .watch(&format!(
            "{maps}?watch=1&resourceVersion={}",
            version(&made)
        ))
        .await;
    let changed = with(made.clone(), &[("/data/key", json!("changed"))]);
    let written = test.put(&dry, &changed).await.ok();
    assert_eq!(written["data"]["key"], "changed");
    assert_eq!(test.get(&one).await.ok(), made);
    let value = json!({"data": {"key": "changed"}});
    for (kind, patch) in [
        (PatchType::Merge, value.clone()),
        (PatchType::Strategic, value),
        (
            PatchType::Json,
            json!([{"op": "replace", "path": "/data/key", "value": "changed"}]),
        ),
    ] {
        let written = test.patch(&dry, kind, &patch).await.ok();
        assert_eq!(written["data"]["key"], "changed", "{kind:?}");
        assert_eq!(test.get(&one).await.ok(), made, "{kind:?}");
    }
    // Resource versions are checked.
    let stale = with(made.clone(), &[("/metadata/resourceVersion", json!("1"))]);
    test.put(&dry, &stale).await.refused(409, "Conflict");
    // The first event is for the first real change.
    let real = test.put(&one, &changed).await.ok();
    assert_eq!(watch.event("MODIFIED").await, real);
}

#[tokio::test]
async fn rule_13_a_dry_run_delete_deletes_nothing() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let made = test.create(&maps, &config_map("a")).await;
    let status = test.delete(&format!("{one}?dryRun=All")).await.ok();
    assert_eq!(status["status"], "Success");
    let options = json!({"dryRun": ["All"]});
    test.delete_with(&one, &options).await.ok();
    test.delete(&format!("{maps}?dryRun=All")).await.ok();
    assert_eq!(test.get(&one).await.ok(), made);
    let missing = test.delete(&format!("{maps}/b?dryRun=All")).await;
    missing.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_13_other_values_are_rejected() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    let cause = [("FieldValueNotSupported", "dryRun")];
    for value in ["Some", "all", "true"] {
        let query = format!("dryRun={value}");
        let response = test
            .post(&format!("{maps}?{query}"), &config_map("b"))
            .await;
        let status = response.refused_for(422, "Invalid", &cause);
        let old = format!("[]string{{{value:?}}}");
        let shown = test.old_or_new(old, format!("[{value:?}]"), "values are shown as JSON");
        let expected = format!(
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: {shown}: supported values: \"All\""
        );
        assert_eq!(status["message"], expected);
        assert_eq!(status["details"]["group"], "meta.k8s.io");
        assert_eq!(status["details"]["kind"], "CreateOptions");
        let response = test.put(&format!("{one}?{query}"), &config_map("a")).await;
        let status = response.refused_for(422, "Invalid", &cause);
        assert_eq!(status["details"]["kind"], "UpdateOptions");
        let merge = PatchType::Merge;
        let response = test
            .patch(&format!("{one}?{query}"), merge, &json!({}))
            .await;
        let status = response.refused_for(422, "Invalid", &cause);
        assert_eq!(status["details"]["kind"], "PatchOptions");
        let response = test.delete(&format!("{one}?{query}")).await;
        response.refused_for(422, "Invalid", &cause);
    }
    test.get(&format!("{maps}/b"))
        .await
        .refused(404, "NotFound");
    test.get(&one).await.ok();
}
