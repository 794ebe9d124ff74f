//! Rule 10: the generation, which counts changes of the desired state.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, pod, with};

#[track_caller]
fn generation(object: &Value) -> u64 {
    object["metadata"]["generation"]
        .as_u64()
        .unwrap_or_else(|| panic!("no generation: {}", object["metadata"]))
}

#[tokio::test]
async fn rule_10_spec_and_annotation_changes_increment_a_deployments_generation() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let one = format!("{path}/a");
    let made = with(deployment("a"), &[("/metadata/generation", json!(7))]);
    assert_eq!(generation(&test.create(&path, &made).await), 1);
    let merge = async |path: &str, patch: Value| {
        generation(&test.patch(path, PatchType::Merge, &patch).await.ok())
    };
    assert_eq!(merge(&one, json!({"spec": {"replicas": 3}})).await, 2);
    assert_eq!(
        merge(&one, json!({"spec": {"replicas": 3}})).await,
        2,
        "no change"
    );
    assert_eq!(
        merge(&one, json!({"metadata": {"labels": {"a": "b"}}})).await,
        2
    );
    let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
    assert_eq!(merge(&one, annotated).await, 3);
    assert_eq!(
        merge(&one, json!({"metadata": {"generation": 50}})).await,
        3
    );
    assert_eq!(merge(&one, json!({"status": {"replicas": 3}})).await, 3);
    let status = format!("{one}/status");
    let observed = json!({"status": {"observedGeneration": 3}});
    assert_eq!(merge(&status, observed).await, 3);
    let read = test.get(&one).await.ok();
    let put = with(read, &[("/spec/paused", json!(true))]);
    assert_eq!(generation(&test.put(&one, &put).await.ok()), 4);
}

#[tokio::test]
async fn rule_10_only_spec_changes_increment_the_generation_of_other_kinds() {
    let test = ApiTest::start().await;
    let template = deployment("a")["spec"]["template"].clone();
    let selector = json!({"matchLabels": {"app": "a"}});
    for (group_version, plural, spec, change) in [
        (
            "apps/v1",
            "replicasets",
            json!({"selector": selector, "template": template}),
            json!({"replicas": 2}),
        ),
        (
            "apps/v1",
            "statefulsets",
            json!({"selector": selector, "template": template, "serviceName": "x"}),
            json!({"replicas": 2}),
        ),
        (
            "apps/v1",
            "daemonsets",
            json!({"selector": selector, "template": template}),
            json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}),
        ),
    ] {
        let path = test.path(group_version, plural);
        let one = format!("{path}/a");
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        assert_eq!(
            generation(&test.create(&path, &object).await),
            1,
            "{plural}"
        );
        let merge =
            async |patch: Value| generation(&test.patch(&one, PatchType::Merge, &patch).await.ok());
        let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
        assert_eq!(merge(annotated).await, 1, "{plural}");
        assert_eq!(merge(json!({"spec": change})).await, 2, "{plural}");
    }
}

#[tokio::test]
async fn rule_10_kinds_without_a_spec_keep_the_given_generation() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let given = with(config_map("a"), &[("/metadata/generation", json!(5))]);
    let made = test.create(&maps, &given).await;
    assert_eq!(generation(&made), 5, "the given generation is kept: {made}");
    let pods = test.path("v1", "pods");
    let made = test.create(&pods, &pod("a")).await;
    if test.is_newer("pods have a generation since 1.34") {
        assert_eq!(generation(&made), 1);
    }
}

#[tokio::test]
async fn rule_10_marking_for_deletion_increments_the_generation_once() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let one = format!("{path}/a");
    let held = with(
        deployment("a"),
        &[("/metadata/finalizers", json!(["example.com/hold"]))],
    );
    test.create(&path, &held).await;
    let pending = test.delete(&one).await.ok();
    assert_eq!(generation(&pending), 2);
    assert!(pending["metadata"]["deletionTimestamp"].is_string());
    let again = test.delete(&one).await.ok();
    assert_eq!(generation(&again), 2, "a second delete");
}
