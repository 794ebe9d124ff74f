//! Rule 16: patch types.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, version, with};

/// A test with the ConfigMap `a`, and the path of the object.
async fn test() -> (ApiTest, String) {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = with(
        config_map("a"),
        &[
            ("/data", json!({"one": "1", "two": "2"})),
            ("/metadata/labels", json!({"app": "web"})),
        ],
    );
    test.create(&maps, &map).await;
    (test, format!("{maps}/a"))
}

#[tokio::test]
async fn rule_16_json_patches_support_all_operations() {
    let (test, one) = test().await;
    let patch = async |operations: Value| test.patch(&one, PatchType::Json, &operations).await;
    let done = patch(json!([
        {"op": "test", "path": "/data/one", "value": "1"},
        {"op": "add", "path": "/data/three", "value": "3"},
        {"op": "replace", "path": "/data/one", "value": "eins"},
        {"op": "remove", "path": "/data/two"},
        {"op": "copy", "from": "/data/one", "path": "/data/uno"},
        {"op": "move", "from": "/data/three", "path": "/data/tres"},
        {"op": "add", "path": "/metadata/labels/a~1b~0", "value": "c"},
    ]))
    .await;
    done.refused_for(422, "Invalid", &[("FieldValueInvalid", "metadata.labels")]);
    let done = patch(json!([
        {"op": "test", "path": "/data/one", "value": "1"},
        {"op": "add", "path": "/data/three", "value": "3"},
        {"op": "replace", "path": "/data/one", "value": "eins"},
        {"op": "remove", "path": "/data/two"},
        {"op": "copy", "from": "/data/one", "path": "/data/uno"},
        {"op": "move", "from": "/data/three", "path": "/data/tres"},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "c"},
    ]))
    .await
    .ok();
    assert_eq!(
        done["data"],
        json!({"one": "eins", "tres": "3", "uno": "eins"})
    );
    assert_eq!(
        done["metadata"]["labels"],
        json!({"app": "web", "a/b": "c"})
    );
    // Negative indexes count from the end.
    let done = patch(json!([
        {"op": "add", "path": "/metadata/finalizers", "value": ["a/a", "b/b"]},
        {"op": "add", "path": "/metadata/finalizers/-1", "value": "c/c"},
        {"op": "remove", "path": "/metadata/finalizers/-2"},
    ]))
    .await
    .ok();
    assert_eq!(done["metadata"]["finalizers"], json!(["a/a", "c/c"]));
}

#[tokio::test]
async fn rule_16_a_failing_json_patch_changes_nothing() {
    let (test, one) = test().await;
    let before = test.get(&one).await.ok();
    for last in [
        json!({"op": "test", "path": "/data/one", "value": "other"}),
        json!({"op": "remove", "path": "/data/none"}),
        json!({"op": "add", "path": "/none/key", "value": "x"}),
        json!({"op": "move", "from": "/data/none", "path": "/data/x"}),
    ] {
        let patch = json!([{"op": "add", "path": "/data/new", "value": "x"}, last]);
        let response = test.patch(&one, PatchType::Json, &patch).await;
        response.refused(422, "Invalid");
    }
    assert_eq!(test.get(&one).await.ok(), before);
    let patch = json!([{"op": "replace", "path": "/data/none", "value": "x"}]);
    let replaced = test.patch(&one, PatchType::Json, &patch).await.ok();
    assert_eq!(
        replaced["data"]["none"], "x",
        "replace adds a missing value"
    );
}

#[tokio::test]
async fn rule_16_a_malformed_json_patch_is_a_bad_request() {
    let (test, one) = test().await;
    for wrong in ["{}", "{\"op\": \"add\"}", "not json", "[1]", "\"text\""] {
        let response = test
            .request("PATCH", &one)
            .body(PatchType::Json.media_type(), wrong)
            .send()
            .await;
        assert!(
            [400, 422].contains(&response.code),
            "{wrong}: {}",
            response.text()
        );
    }
}

#[tokio::test]
async fn rule_16_merge_patches_merge_objects_and_replace_other_values() {
    let (test, one) = test().await;
    let patch = json!({
        "data": {"two": null, "three": "3", "none": null},
        "metadata": {"labels": {"tier": "front"}, "finalizers": ["example.com/a"]},
    });
    let done = test.patch(&one, PatchType::Merge, &patch).await.ok();
    assert_eq!(done["data"], json!({"one": "1", "three": "3"}));
    assert_eq!(
        done["metadata"]["labels"],
        json!({"app": "web", "tier": "front"})
    );
    let patch = json!({"metadata": {"labels": null, "finalizers": ["example.com/b"]}});
    let done = test.patch(&one, PatchType::Merge, &patch).await.ok();
    assert_eq!(done["metadata"].get("labels"), None);
    assert_eq!(
        done["metadata"]["finalizers"],
        json!(["example.com/b"]),
        "lists are replaced"
    );
}

#[tokio::test]
async fn rule_16_strategic_merge_patches_merge_lists_by_key() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let one = format!("{path}/a");
    test.create(&path, &crate::common::deployment("a")).await;
    let side = json!({"name": "side", "image": "other"});
    let patch = json!({"spec": {"template": {"spec": {"containers": [side]}}}});
    let done = test.patch(&one, PatchType::Strategic, &patch).await.ok();
    let containers = done["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    let names: Vec<_> = containers
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["side", "main"]);
    // The same patch as a merge patch replaces the list.
    let done = test.patch(&one, PatchType::Merge, &patch).await.ok();
    let containers = &done["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn rule_16_other_types_are_not_supported() {
    let (test, one) = test().await;
    for other in ["application/json", "text/plain", "application/xml", ""] {
        let response = test.request("PATCH", &one).body(other, "{}").send().await;
        response.refused(415, "UnsupportedMediaType");
    }
    // Parameters of the content type are ignored.
    let response = test
        .request("PATCH", &one)
        .body(
            "application/merge-patch+json; charset=utf-8",
            "{\"data\": {\"x\": \"y\"}}",
        )
        .send()
        .await;
    assert_eq!(response.ok()["data"]["x"], "y");
}

#[tokio::test]
async fn rule_16_a_patch_with_a_stale_resource_version_conflicts() {
    let (test, one) = test().await;
    let before = version(&test.get(&one).await.ok());
    let change = json!({"data": {"one": "changed"}});
    let now = test.patch(&one, PatchType::Merge, &change).await.ok();
    for kind in [PatchType::Merge, PatchType::Strategic] {
        let stale = json!({"metadata": {"resourceVersion": before}, "data": {"one": "x"}});
        test.patch(&one, kind, &stale)
            .await
            .refused(409, "Conflict");
        let right = json!({"metadata": {"resourceVersion": version(&now)}});
        test.patch(&one, kind, &right).await.ok();
    }
    let stale = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": before},
        {"op": "replace", "path": "/data/one", "value": "x"},
    ]);
    test.patch(&one, PatchType::Json, &stale)
        .await
        .refused(409, "Conflict");
    // The UID is not a precondition of a patch but an immutable field.
    let other = json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}});
    let response = test.patch(&one, PatchType::Merge, &other).await;
    response.refused_for(422, "Invalid", &[("FieldValueInvalid", "metadata.uid")]);
    assert_eq!(test.get(&one).await.ok(), now);
}

#[tokio::test]
async fn rule_16_patches_without_a_resource_version_never_conflict() {
    let (test, one) = test().await;
    let test = std::sync::Arc::new(test);
    let tasks: Vec<_> = (0..20)
        .map(|index| {
            let (test, one) = (test.clone(), one.clone());
            tokio::spawn(async move {
                let patch = json!({"data": {format!("key-{index}"): "x"}});
                test.patch(&one, PatchType::Merge, &patch).await.code
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200);
    }
    let map = test.get(&one).await.ok();
    assert_eq!(map["data"].as_object().unwrap().len(), 22, "{map}");
}

#[tokio::test]
async fn rule_16_the_result_of_a_patch_is_validated() {
    let (test, one) = test().await;
    let merge = async |patch: Value| test.patch(&one, PatchType::Merge, &patch).await;
    merge(json!({"metadata": {"name": "b"}}))
        .await
        .refused(400, "BadRequest");
    let response = merge(json!({"metadata": {"namespace": "default"}})).await;
    response.refused(400, "BadRequest");
    let response = merge(json!({"metadata": {"labels": {"-": "x"}}})).await;
    response.refused_for(422, "Invalid", &[("FieldValueInvalid", "metadata.labels")]);
    let response = merge(json!({"data": {"a": 5}})).await;
    assert!([400, 422].contains(&response.code), "{}", response.text());
    for (patch, shown, problem) in [
        (
            json!({"data": {"a": ["x", 1.5]}}),
            "map[data:map[a:[x 1.5]]]",
            "unrecognized type: string",
        ),
        (
            json!({"data": {"a": 5}}),
            "map[data:map[a:5]]",
            "cannot convert int64 to string",
        ),
        (
            json!({"data": "x"}),
            "map[data:x]",
            "cannot restore map from string",
        ),
        (
            json!({"metadata": []}),
            "map[metadata:[]]",
            "cannot restore struct from: slice",
        ),
        (
            json!({"metadata": {"finalizers": true}}),
            "map[metadata:map[finalizers:true]]",
            "cannot restore slice from bool",
        ),
    ] {
        let response = test.patch(&one, PatchType::Strategic, &patch).await;
        let status = response.refused(422, "Invalid");
        let expected = format!(" \"\" is invalid: patch: Invalid value: \"{shown}\": {problem}");
        assert_eq!(status["message"], expected);
    }
    let response = merge(json!({"kind": "Secret"})).await;
    assert!([400, 422].contains(&response.code), "{}", response.text());
    let missing = format!("{}/none", test.path("v1", "configmaps"));
    let response = test.patch(&missing, PatchType::Merge, &json!({})).await;
    response.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_16_a_patch_cannot_remove_the_name() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &json!({"metadata": {"name": "a"}}))
        .await;
    let one = format!("{maps}/a");
    for patch in [
        json!({"metadata": {"name": null}}),
        json!({"metadata": {"name": ""}}),
        json!({"metadata": null}),
        json!({"$patch": "delete"}),
    ] {
        let response = test.patch(&one, PatchType::Strategic, &patch).await;
        let status = response.refused(400, "BadRequest");
        assert_eq!(
            status["message"],
            "the name of the object (a based on URL) was undeterminable: name must be provided"
        );
    }
    // The namespace is optional.
    let patch = json!({"metadata": {"namespace": null}});
    test.patch(&one, PatchType::Merge, &patch).await.ok();
}
