//! The subresource `resize` of pods.

use std::sync::Arc;

use longshore_engine::{Error, FieldValidation, Object, Subresource};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use crate::support::{Api, api, status};

async fn pod(api: &Api, cpu: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    let spec = json!({"automountServiceAccountToken": false, "containers": [container]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    api.create("pods", pod).await.unwrap().value()
}

async fn patch(api: &Api, spec: Value) -> Result<Arc<Object>, Error> {
    let written = api
        .patch_with(
            Api::target("pods", "p"),
            Subresource::Resize,
            PatchKind::Strategic,
            json!({"metadata": {"labels": {"a": "b"}}, "spec": spec}),
            FieldValidation::Warn,
        )
        .await;
    Ok(written?.object)
}

async fn resize(api: &Api, resources: Value) -> Result<Arc<Object>, Error> {
    patch(
        api,
        json!({"containers": [{"name": "c", "resources": resources}]}),
    )
    .await
}

#[tokio::test]
async fn only_the_resources_of_a_pod_change() {
    let api = api();
    let before = pod(&api, "1").await;
    let spec = json!({"nodeName": "n", "containers": [
        {"name": "c", "image": "other", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]});
    let after = patch(&api, spec).await.unwrap().value();
    let mut expected = before.clone();
    expected["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "2", "memory": "1Gi"}});
    assert_eq!(after["spec"], expected["spec"]);
    assert!(after["metadata"]["labels"].is_null());
    assert_eq!(after["metadata"]["generation"], 2);
    let fields = after["metadata"]["managedFields"].as_array().unwrap();
    let of_resize = fields.iter().find(|entry| entry["subresource"] == "resize");
    let owned = &of_resize.unwrap()["fieldsV1"]["f:spec"]["f:containers"];
    assert!(
        owned["k:{\"name\":\"c\"}"]["f:resources"].is_object(),
        "{fields:#?}"
    );

    // An update that changes no field does not write the object.
    let again = api
        .update_part("pods", "p", Subresource::Resize, after.clone())
        .await
        .unwrap()
        .value();
    assert_eq!(again["metadata"]["generation"], 2);
    let (code, _, message) = status(
        resize(
            &api,
            json!({"limits": {"cpu": "3"}, "requests": {"cpu": "3", "memory": null}}),
        )
        .await,
    );
    assert_eq!(code, 422, "{message}");
    assert!(
        message.contains("resource requests cannot be removed"),
        "{message}"
    );
    let (code, _, message) =
        status(patch(&api, json!({"containers": [{"name": "d", "image": "i"}]})).await);
    assert_eq!(code, 422);
    assert!(
        message.contains("containers may not be added or removed on resize"),
        "{message}"
    );
}

#[tokio::test]
async fn limits_quotas_and_the_node_bound_a_resize() {
    let api = api();
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
        {"type": "Container", "max": {"memory": "4Gi"}}]}});
    api.create("limitranges", range).await.unwrap();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "3"}}});
    api.create("resourcequotas", quota).await.unwrap();
    let used = json!({"status": {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "0"}}});
    api.merge_status("resourcequotas", "q", used).await.unwrap();
    let container = json!({"name": "c", "image": "i", "resources":
        {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}});
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [container]}});
    api.create("pods", pod).await.unwrap();

    let (code, _, message) = status(resize(&api, json!({"requests": {"cpu": "2"}})).await);
    assert_eq!(code, 403);
    assert!(message.ends_with("node \"n\" not found"), "{message}");
    let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "5", "memory": "8Gi"}}});
    api.create("nodes", node).await.unwrap();
    let refusal = async |resources: Value| status(resize(&api, resources).await).2;
    let message = refusal(json!({"limits": {"memory": "5Gi"}})).await;
    assert!(
        message.contains("maximum memory usage per Container is 4Gi"),
        "{message}"
    );
    let message = refusal(json!({"requests": {"cpu": "6"}})).await;
    let expected = "node didn't have enough allocatable resources: cpu, requested: 6000, \
                    allocatable: 5000";
    assert!(message.ends_with(expected), "{message}");
    let message = refusal(json!({"requests": {"cpu": "4"}})).await;
    assert!(
        message.contains("exceeded quota: q, requested: requests.cpu=3"),
        "{message}"
    );
    resize(&api, json!({"requests": {"cpu": "3"}}))
        .await
        .unwrap();
    let quota = api.get("resourcequotas", "q").unwrap().value();
    assert_eq!(quota["status"]["used"]["requests.cpu"], "3");

    // While the node reports more allocated resources, the quota is charged for these.
    let allocated = json!({"status": {"containerStatuses": [{"name": "c", "image": "i", "imageID": "",
        "ready": true, "restartCount": 0, "allocatedResources": {"cpu": "3"},
        "resources": {"requests": {"cpu": "3"}}}]}});
    api.merge_status("pods", "p", allocated).await.unwrap();
    resize(&api, json!({"requests": {"cpu": "1"}}))
        .await
        .unwrap();
    resize(&api, json!({"requests": {"cpu": "3"}}))
        .await
        .unwrap();
    let quota = api.get("resourcequotas", "q").unwrap().value();
    assert_eq!(quota["status"]["used"]["requests.cpu"], "3");
}

#[tokio::test]
async fn a_limit_range_sets_the_defaults_that_a_resized_pod_lacks() {
    let api = api();
    pod(&api, "1").await;
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
        {"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"memory": "1Gi"}}]}});
    api.create("limitranges", range).await.unwrap();
    let after = resize(&api, json!({"requests": {"cpu": "2"}}))
        .await
        .unwrap()
        .value();
    let resources = &after["spec"]["containers"][0]["resources"];
    let expected = json!({"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "2Gi"}});
    assert_eq!(*resources, expected);
    assert!(after["metadata"]["annotations"].is_null());
}
