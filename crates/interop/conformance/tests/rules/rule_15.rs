//! Rule 15: status and scale subresources.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{deployment, number, pod, version, with};

#[tokio::test]
async fn rule_15_the_status_endpoint_changes_only_the_status() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let status = format!("{path}/a/status");
    let made = test.create(&path, &deployment("a")).await;
    assert_eq!(test.get(&status).await.ok(), made);
    let both = with(
        made.clone(),
        &[
            ("/spec/replicas", json!(5)),
            ("/metadata/labels", json!({"a": "b"})),
            ("/status", json!({"replicas": 2, "observedGeneration": 1})),
        ],
    );
    let written = test.put(&status, &both).await.ok();
    assert_eq!(written["status"]["replicas"], 2);
    assert_eq!(written["spec"], made["spec"]);
    assert_eq!(written["metadata"].get("labels"), None, "{written}");
    for kind in [PatchType::Merge, PatchType::Strategic] {
        let patch = json!({"spec": {"replicas": 7}, "status": {"readyReplicas": 1}});
        let written = test.patch(&status, kind, &patch).await.ok();
        assert_eq!(written["status"]["readyReplicas"], 1, "{kind:?}: {written}");
        assert_eq!(written["status"]["replicas"], 2, "{kind:?}");
        assert_eq!(written["spec"]["replicas"], 1, "{kind:?}");
    }
    let patch = json!([{"op": "replace", "path": "/status/replicas", "value": 3}]);
    let written = test.patch(&status, PatchType::Json, &patch).await.ok();
    assert_eq!(written["status"]["replicas"], 3);
    assert_eq!(
        written["metadata"]["generation"],
        made["metadata"]["generation"]
    );
    // The status endpoint supports neither POST nor DELETE.
    test.post(&status, &made)
        .await
        .refused(405, "MethodNotAllowed");
    test.delete(&status).await.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn rule_15_the_status_endpoint_changes_metadata_of_most_kinds() {
    let test = ApiTest::start().await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": test.namespace()},
        "spec": {"attacher": "example.org", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    });
    let all = ["labels", "annotations", "finalizers", "ownerReferences"];
    let attachments = test.cluster_path("storage.k8s.io/v1", "volumeattachments");
    for (path, object, changes) in [
        (test.path("v1", "persistentvolumeclaims"), claim, &all[..]),
        (test.path("v1", "pods"), pod("a"), &all[..3]),
        (
            test.path("apps/v1", "deployments"),
            deployment("a"),
            &all[1..],
        ),
        (attachments, attachment, &[]),
    ] {
        let made = test.create(&path, &object).await;
        let name = made["metadata"]["name"].as_str().unwrap();
        let status = format!("{path}/{name}/status");
        let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}]);
        let patch = json!({"metadata": {
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["example.com/hold"],
            "ownerReferences": owners,
        }});
        let written = test.patch(&status, PatchType::Merge, &patch).await.ok();
        for field in all {
            let expected = match changes.contains(&field) {
                true => &patch["metadata"][field],
                false => &made["metadata"][field],
            };
            assert_eq!(&written["metadata"][field], expected, "{path} {field}");
        }
        let patch = json!({"metadata": {"labels": {"a": "?"}}});
        let response = test.patch(&status, PatchType::Merge, &patch).await;
        match changes.contains(&"labels") {
            true => drop(response.refused(422, "Invalid")),
            false => assert_eq!(response.ok()["metadata"], written["metadata"]),
        }
        let patch = json!({"metadata": {"finalizers": null}});
        test.patch(&status, PatchType::Merge, &patch).await.ok();
    }
}

#[tokio::test]
async fn rule_15_the_main_endpoint_ignores_the_status() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let one = format!("{pods}/a");
    test.create(&pods, &pod("a")).await;
    let running = json!({"status": {"phase": "Running", "podIP": "10.1.2.3"}});
    let status = format!("{one}/status");
    let running = test.patch(&status, PatchType::Merge, &running).await.ok();
    assert_eq!(running["status"]["podIPs"], json!([{"ip": "10.1.2.3"}]));
    let failed = json!({"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "b"}}});
    let patched = test.patch(&one, PatchType::Merge, &failed).await.ok();
    assert_eq!(patched["status"], running["status"]);
    assert_eq!(patched["metadata"]["labels"]["a"], "b");
    // The status is also kept if the update omits it.
    let bare = with(
        patched.clone(),
        &[("/status", json!(null)), ("/metadata/labels/a", json!("c"))],
    );
    let written = test.put(&one, &bare).await.ok();
    assert_eq!(written["status"], running["status"]);
    // A patch that contains only the status changes nothing.
    let only = json!({"status": {"phase": "Failed"}});
    let same = test.patch(&one, PatchType::Merge, &only).await.ok();
    if test
        .is_newer("a status sent to the main endpoint is ignored: 1.20 records its field manager")
    {
        assert_eq!(version(&same), version(&written));
    }
}

#[tokio::test]
async fn rule_15_kinds_without_a_status_have_no_status_endpoint() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &crate::common::config_map("a")).await;
    test.get(&format!("{maps}/a/status"))
        .await
        .refused(404, "NotFound");
}

#[track_caller]
fn check_scale(scale: &Value, name: &str, wanted: i64, present: i64) {
    assert_eq!(
        (&scale["kind"], &scale["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!(scale["metadata"]["name"], name);
    // Zero replicas are omitted, as in the types of Kubernetes.
    let spec = if wanted == 0 {
        json!({})
    } else {
        json!({"replicas": wanted})
    };
    assert_eq!(scale["spec"], spec);
    let selector = format!("app={name}");
    assert_eq!(
        scale["status"],
        json!({"replicas": present, "selector": selector})
    );
}

#[tokio::test]
async fn rule_15_the_scale_is_an_autoscaling_v1_object() {
    let test = ApiTest::start().await;
    for plural in ["deployments", "replicasets", "statefulsets"] {
        let path = test.path("apps/v1", plural);
        let one = format!("{path}/a");
        let mut object = deployment("a");
        object.as_object_mut().unwrap().remove("kind");
        if plural == "statefulsets" {
            object["spec"]["serviceName"] = json!("a");
        }
        object["spec"]["replicas"] = json!(2);
        let made = test.create(&path, &object).await;
        let scale = format!("{one}/scale");
        let read = test.get(&scale).await.ok();
        check_scale(&read, "a", 2, 0);
        for field in ["namespace", "uid", "resourceVersion", "creationTimestamp"] {
            assert_eq!(read["metadata"][field], made["metadata"][field], "{plural}");
        }
        let four = with(read.clone(), &[("/spec/replicas", json!(4))]);
        let written = test.put(&scale, &four).await.ok();
        check_scale(&written, "a", 4, 0);
        let object = test.get(&one).await.ok();
        assert_eq!(object["spec"]["replicas"], 4);
        assert_eq!(version(&object), version(&written));
        assert!(number(&object) > number(&made));
        assert_eq!(object["metadata"]["generation"], 2);
        // A stale resource version conflicts; a missing one does not.
        test.put(&scale, &four).await.refused(409, "Conflict");
        let five = with(
            four,
            &[
                ("/spec/replicas", json!(5)),
                ("/metadata/resourceVersion", json!("")),
            ],
        );
        check_scale(&test.put(&scale, &five).await.ok(), "a", 5, 0);
        let patch = json!({"spec": {"replicas": 0}});
        let patched = test.patch(&scale, PatchType::Merge, &patch).await.ok();
        check_scale(&patched, "a", 0, 0);
        let negative = json!({"spec": {"replicas": -1}});
        let response = test.patch(&scale, PatchType::Merge, &negative).await;
        response.refused_for(422, "Invalid", &[("FieldValueInvalid", "spec.replicas")]);
    }
}
