//! The default FlowSchemas and PriorityLevelConfigurations, and the condition of FlowSchemas.

use longshore_client::{DeleteOptions, Patch, View, kinds::Any};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

/// The condition `Dangling` of a FlowSchema.
async fn dangling(schemas: &View<Any>, name: &str) -> Option<Value> {
    let schema = schemas.find(name).await.unwrap()?.raw().unwrap();
    let conditions = schema["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|found| found["type"] == "Dangling");
    found.cloned()
}

async fn until_reason(schemas: &View<Any>, name: &str, reason: &str) -> Value {
    until(reason, async || {
        let condition = dangling(schemas, name).await?;
        (condition["reason"] == reason).then_some(condition)
    })
    .await
}

fn schema(name: &str, level: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "me"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    })
}

fn names(list: &longshore_client::List<Any>) -> Vec<String> {
    list.items
        .iter()
        .map(|item| item.name().to_owned())
        .collect()
}

#[tokio::test]
async fn a_schema_dangles_while_its_level_does_not_exist() {
    let fixture = Fixture::start().await;
    let schemas = fixture.cluster.kind("flowschemas").await.unwrap();
    let levels = fixture
        .cluster
        .kind("prioritylevelconfigurations")
        .await
        .unwrap();
    schemas.create(&schema("own", "mine")).await.unwrap();
    let condition = until_reason(&schemas, "own", "NotFound").await;
    assert_eq!(condition["status"], "True");
    assert_eq!(
        condition["message"],
        "This FlowSchema references the PriorityLevelConfiguration object named \"mine\" but there is no such object"
    );
    let level = json!({
        "metadata": {"name": "mine"},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    });
    levels.create(&level).await.unwrap();
    let condition = until_reason(&schemas, "own", "Found").await;
    assert_eq!(condition["status"], "False");
    assert_eq!(
        condition["message"],
        "This FlowSchema references the PriorityLevelConfiguration object named \"mine\" and it exists"
    );
    let raw = schemas.fetch("own").await.unwrap().raw().unwrap();
    let managers = raw["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| {
        entry["manager"] == "api-priority-and-fairness-config-consumer-v1"
            && entry["operation"] == "Apply"
            && entry["subresource"] == "status"
    }));
    levels
        .delete("mine", &DeleteOptions::default())
        .await
        .unwrap();
    until_reason(&schemas, "own", "NotFound").await;
    let to_exempt =
        Patch::merge(json!({"spec": {"priorityLevelConfiguration": {"name": "exempt"}}}));
    schemas.patch("own", &to_exempt).await.unwrap();
    let condition = until_reason(&schemas, "own", "Found").await;
    assert!(
        condition["message"]
            .as_str()
            .unwrap()
            .contains("\"exempt\"")
    );
}

#[tokio::test]
async fn deleted_defaults_return_and_changed_specs_are_restored() {
    let mut fixture = Fixture::start().await;
    let schemas = fixture.cluster.kind("flowschemas").await.unwrap();
    let levels = fixture
        .cluster
        .kind("prioritylevelconfigurations")
        .await
        .unwrap();
    let all_levels = names(&levels.list().await.unwrap());
    let all_schemas = names(&schemas.list().await.unwrap());
    assert_eq!((all_levels.len(), all_schemas.len()), (8, 11));
    for name in &all_schemas {
        let condition = dangling(&schemas, name).await.unwrap();
        assert_eq!(condition["reason"], "Found", "{name}");
    }
    // Objects that are deleted while no controller runs are restored, too.
    fixture.stop_controllers().await;
    let deleted = schemas.fetch("probes").await.unwrap();
    schemas
        .delete("probes", &DeleteOptions::default())
        .await
        .unwrap();
    fixture.start_controllers().await;
    until("the suggested schema", async || {
        let returned = schemas.find("probes").await.unwrap()?;
        (returned.uid() != deleted.uid()).then_some(())
    })
    .await;
    until_reason(&schemas, "probes", "Found").await;
    levels.delete_all(&DeleteOptions::default()).await.unwrap();
    schemas.delete_all(&DeleteOptions::default()).await.unwrap();
    until("all defaults", async || {
        let levels = names(&levels.list().await.unwrap());
        let schemas = names(&schemas.list().await.unwrap());
        (levels == all_levels && schemas == all_schemas).then_some(())
    })
    .await;
    for name in &all_schemas {
        until_reason(&schemas, name, "Found").await;
    }

    let changed = Patch::merge(json!({"spec": {"matchingPrecedence": 77}}));
    let refused = schemas.patch("catch-all", &changed).await.unwrap_err();
    assert_eq!(refused.code(), Some(422));
    schemas.patch("service-accounts", &changed).await.unwrap();
    until("the precedence", async || {
        let schema = schemas.fetch("service-accounts").await.unwrap();
        let schema = schema.raw().unwrap();
        (schema["spec"]["matchingPrecedence"] == 9000).then_some(())
    })
    .await;
    // The level of requests without limits keeps its shares.
    let shares = Patch::merge(json!({"spec": {"exempt": {"nominalConcurrencyShares": 3}}}));
    levels.patch("exempt", &shares).await.unwrap();
    let annotation = json!({"metadata": {"annotations": {
        "apf.kubernetes.io/autoupdate-spec": "false"}}});
    schemas
        .patch("catch-all", &Patch::merge(annotation))
        .await
        .unwrap();
    until("the annotation", async || {
        let schema = schemas.fetch("catch-all").await.unwrap();
        let annotations = &schema.meta().annotations;
        (annotations["apf.kubernetes.io/autoupdate-spec"] == "true").then_some(())
    })
    .await;
    // A suggested object may be changed if its annotation permits it.
    let changed = Patch::merge(json!({
        "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}},
        "spec": {"matchingPrecedence": 77},
    }));
    schemas.patch("probes", &changed).await.unwrap();
    let annotated = json!({
        "metadata": {
            "name": "old", "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
        },
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    });
    levels.create(&annotated).await.unwrap();
    until("the end of the level of another release", async || {
        levels.find("old").await.unwrap().is_none().then_some(())
    })
    .await;
    let probes = schemas.fetch("probes").await.unwrap().raw().unwrap();
    assert_eq!(probes["spec"]["matchingPrecedence"], 77);

    // All changes before the marker have been processed, and none was repeated.
    schemas.create(&schema("marker", "exempt")).await.unwrap();
    until_reason(&schemas, "marker", "Found").await;
    for item in levels.list().await.unwrap().items {
        let expected = if item.name() == "exempt" { 2 } else { 1 };
        let generation = item.raw().unwrap()["metadata"]["generation"].clone();
        assert_eq!(generation, expected, "{}", item.name());
    }
    for item in schemas.list().await.unwrap().items {
        let expected = match item.name() {
            "service-accounts" => 3,
            "probes" => 2,
            _ => 1,
        };
        let generation = item.raw().unwrap()["metadata"]["generation"].clone();
        assert_eq!(generation, expected, "{}", item.name());
    }
}
