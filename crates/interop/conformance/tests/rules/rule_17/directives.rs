//! `$patch`, `$retainKeys`, and unknown directives.

use longshore_conformance::PatchType;
use serde_json::json;

use super::{container, merged, patch, refused, test, values};

#[tokio::test]
async fn rule_17_patch_delete_removes_an_item_or_an_object() {
    let spec = json!({
        "containers": [container("main", json!({})), container("side", json!({}))],
        "securityContext": {"runAsUser": 5},
    });
    let (test, one) = test(spec).await;
    let done = patch(
        &test,
        &one,
        json!({
            "containers": [{"name": "side", "$patch": "delete"}],
            "securityContext": {"$patch": "delete"},
        }),
    )
    .await;
    assert_eq!(values(&done["containers"], "name"), ["main"]);
    assert_eq!(
        done["securityContext"],
        json!({}),
        "the default is applied again"
    );
    // Deleting a missing item changes nothing.
    let same = patch(
        &test,
        &one,
        json!({
            "containers": [{"name": "none", "$patch": "delete"}],
        }),
    )
    .await;
    assert_eq!(same, done);
}

#[tokio::test]
async fn rule_17_patch_replace_replaces_the_value() {
    let spec = json!({
        "containers": [
            container("main", json!({"env": [{"name": "A", "value": "1"}], "resources": {"limits": {"cpu": "1"}}})),
            container("side", json!({})),
        ],
        "nodeSelector": {"a": "b"},
    });
    let (test, one) = test(spec).await;
    let done = patch(
        &test,
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
    // In a list, the directive is a separate item.
    let done = patch(
        &test,
        &one,
        json!({
            "containers": [{"$patch": "replace"}, {"name": "new", "image": "i"}],
        }),
    )
    .await;
    assert_eq!(values(&done["containers"], "name"), ["new"]);
    // Other fields of the item with the directive are ignored.
    let done = patch(
        &test,
        &one,
        json!({
            "containers": [
                {"$patch": "replace", "name": "lost", "image": "i"},
                {"name": "kept", "image": "i"},
            ],
        }),
    )
    .await;
    assert_eq!(values(&done["containers"], "name"), ["kept"]);
}

#[tokio::test]
async fn rule_17_patch_merge_is_rejected() {
    let spec = json!({
        "containers": [container("main", json!({"resources": {"limits": {"cpu": "1"}}}))],
        "nodeSelector": {"a": "b"},
    });
    let (test, one) = test(spec).await;
    for (pod, message) in [
        (
            json!({"nodeSelector": {"$patch": "merge", "c": "d"}}),
            "unknown patch type: merge in map",
        ),
        (
            json!({"containers": [{"$patch": "merge", "name": "main", "image": "j"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
    ] {
        let patch = json!({"spec": {"template": {"spec": pod}}});
        let response = test.patch(&one, PatchType::Strategic, &patch).await;
        assert!([400, 500].contains(&response.code), "{}", response.text());
        assert!(response.text().contains(message), "{}", response.text());
    }
}

#[tokio::test]
async fn rule_17_an_unknown_directive_is_rejected() {
    let (test, one) = test(json!({})).await;
    for patch in [
        json!({"spec": {"template": {"spec": {"$patch": "explode"}}}}),
        json!({"spec": {"$setElementOrder/nothing": []}}),
        json!({"metadata": {"$setElementOrder/labels": []}}),
    ] {
        let response = refused(&test, &one, patch).await;
        assert_eq!(response.code, 500, "{}", response.text());
    }
    for unfinished in ["$deleteFromPrimitiveList", "$setElementOrder"] {
        let patch = json!({"metadata": {unfinished: []}});
        assert_eq!(refused(&test, &one, patch).await.code, 400, "{unfinished}");
    }
}

#[tokio::test]
async fn rule_17_retain_keys_removes_all_other_keys() {
    let (test, one) =
        test(json!({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]})).await;
    let done = patch(
        &test,
        &one,
        json!({"volumes": [
            {"name": "v", "configMap": {"name": "m"}, "$retainKeys": ["name", "configMap"]},
        ]}),
    )
    .await;
    let volume = &done["volumes"][0];
    assert_eq!(volume.get("emptyDir"), None, "{volume}");
    assert_eq!(volume["configMap"]["name"], "m");
    // The parameters of the rolling update are removed.
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let done = merged(&test, &one, patch).await;
    assert_eq!(done["spec"]["strategy"], json!({"type": "Recreate"}));
    // Keys that the patch sets must be retained.
    let patch =
        json!({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}});
    refused(&test, &one, patch).await;
}

#[tokio::test]
async fn rule_17_null_deletes_a_field() {
    let (test, one) =
        test(json!({"nodeSelector": {"a": "b", "c": "d"}, "priorityClassName": ""})).await;
    let done = patch(
        &test,
        &one,
        json!({"nodeSelector": {"a": null}, "hostname": null}),
    )
    .await;
    assert_eq!(done["nodeSelector"], json!({"c": "d"}));
    let done = patch(&test, &one, json!({"nodeSelector": null})).await;
    assert_eq!(done.get("nodeSelector"), None);
}
