//! Rule 15: `/scale` of the built-in kinds is a `Scale` of autoscaling/v1.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

fn workload(kind: &str) -> Value {
    let labels = json!({"app": "a", "tier": "b"});
    let template = json!({"metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "image"}]}});
    let (version, selector) = match kind {
        "ReplicationController" => ("v1", labels),
        _ => ("apps/v1", json!({"matchLabels": labels})),
    };
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"},
        "spec": {"replicas": 2, "selector": selector, "template": template}});
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!("a");
    }
    object
}

#[tokio::test]
async fn rule_15_scale_of_each_built_in_kind() {
    let test = ApiTest::start().await;
    for (version, plural, kind) in [
        ("apps/v1", "deployments", "Deployment"),
        ("apps/v1", "replicasets", "ReplicaSet"),
        ("apps/v1", "statefulsets", "StatefulSet"),
        ("v1", "replicationcontrollers", "ReplicationController"),
    ] {
        let path = test.path(version, plural);
        let made = test.create(&path, &workload(kind)).await;
        let scale = format!("{path}/a/scale");
        let seen = test.get(&scale).await.ok();
        assert_eq!(
            (&seen["apiVersion"], &seen["kind"]),
            (&json!("autoscaling/v1"), &json!("Scale"))
        );
        assert_eq!(seen["metadata"]["uid"], made["metadata"]["uid"]);
        assert_eq!(seen["spec"], json!({"replicas": 2}), "{kind}");
        assert_eq!(
            seen["status"],
            json!({"replicas": 0, "selector": "app=a,tier=b"}),
            "{kind}"
        );
        let mut set = seen.clone();
        set["spec"]["replicas"] = json!(3);
        let set = test.put(&scale, &set).await.ok();
        assert_eq!(set["spec"]["replicas"], 3);
        for patch in [PatchType::Merge, PatchType::Strategic] {
            let patched = test
                .patch(&scale, patch, &json!({"spec": {"replicas": 4}}))
                .await
                .ok();
            assert_eq!(patched["spec"]["replicas"], 4);
        }
        let now = test.get(&format!("{path}/a")).await.ok();
        assert_eq!(
            (&now["spec"]["replicas"], &now["metadata"]["generation"]),
            (&json!(4), &json!(3))
        );
        let stale = test.put(&scale, &seen).await;
        stale.refused(409, "Conflict");
        let negative = json!({"spec": {"replicas": -1}});
        test.patch(&scale, PatchType::Merge, &negative)
            .await
            .refused_for(422, "Invalid", &[("FieldValueInvalid", "spec.replicas")]);
        test.delete(&format!("{path}/a?propagationPolicy=Background"))
            .await
            .ok();
    }
}
