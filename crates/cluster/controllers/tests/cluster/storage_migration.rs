//! StorageVersionMigrations: every object of a resource is written again.

use longshore_client::Patch;
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

fn migration(name: &str, group: &str, resource: &str) -> Value {
    json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"group": group, "resource": resource}},
    })
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }},
    })
}

/// The conditions of a migration that has ended, by type.
async fn ended(fixture: &Fixture, name: &str) -> Vec<(String, String, String)> {
    let migrations = fixture
        .cluster
        .kind("StorageVersionMigration")
        .await
        .unwrap();
    let status = until("the end of the migration", async || {
        let status = migrations.fetch(name).await.unwrap().raw().unwrap()["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let is = |kind: &str, value: &str| {
            conditions
                .iter()
                .any(|c| c["type"] == kind && c["status"] == value)
        };
        let has_ended = is("Succeeded", "True") || is("Failed", "True");
        (has_ended && is("Running", "False")).then_some(status)
    })
    .await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().unwrap().iter();
    let shown = conditions.map(|c| (text(&c["type"]), text(&c["status"]), text(&c["message"])));
    shown.collect()
}

#[tokio::test]
async fn objects_of_a_custom_kind_are_stored_in_the_storage_version() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    cluster.create(&definition, None).await.unwrap();
    let ships = cluster.kind_in("example.com/v1", "Ship").await.unwrap();
    let ships = ships.in_namespace("default").unwrap();
    for name in ["a", "b"] {
        let ship = json!({"metadata": {"name": name}, "spec": {"size": 1}});
        ships.create(&ship).await.unwrap();
    }
    let definitions = cluster.kind("CustomResourceDefinition").await.unwrap();
    let versions = json!({"spec": {"versions": [version("v1", false), version("v2", true)]}});
    let patch = Patch::merge(versions);
    let changed = definitions
        .patch("ships.example.com", &patch)
        .await
        .unwrap();
    assert_eq!(
        changed.raw().unwrap()["status"]["storedVersions"],
        json!(["v1", "v2"])
    );
    // The object was written after the change, so it is migrated already.
    let touched = Patch::merge(json!({"metadata": {"labels": {"a": "b"}}}));
    ships.patch("b", &touched).await.unwrap();
    let before = ships.fetch("a").await.unwrap();

    cluster
        .create(&migration("m", "example.com", "ships"), None)
        .await
        .unwrap();
    let condition = |kind: &str, status: &str, message: &str| {
        (kind.to_owned(), status.to_owned(), message.to_owned())
    };
    assert_eq!(
        ended(&fixture, "m").await,
        [
            condition("Running", "False", "Migration completed"),
            condition("Succeeded", "True", "Migration completed"),
        ]
    );
    let after = ships.fetch("a").await.unwrap();
    assert_ne!(before.version(), after.version());
    assert_eq!(after.raw().unwrap()["spec"]["size"], 1);
    let definition = definitions
        .fetch("ships.example.com")
        .await
        .unwrap()
        .raw()
        .unwrap();
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    let migrating = conditions
        .iter()
        .find(|c| c["type"] == "StorageMigrating")
        .unwrap();
    assert_eq!(
        (&migrating["status"], &migrating["reason"]),
        (&json!("False"), &json!("MigrationSucceeded"))
    );
    assert_eq!(
        migrating["observedGeneration"],
        definition["metadata"]["generation"]
    );

    // The version that no object is stored in can be removed.
    let only = Patch::merge(json!({"spec": {"versions": [version("v2", true)]}}));
    definitions.patch("ships.example.com", &only).await.unwrap();
}

#[tokio::test]
async fn migrations_of_a_resource_run_one_after_another() {
    let fixture = Fixture::start().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    fixture.cluster.create(&map, Some("default")).await.unwrap();
    for name in ["first", "second"] {
        let made = migration(name, "", "configmaps");
        fixture.cluster.create(&made, None).await.unwrap();
    }
    for name in ["first", "second"] {
        let conditions = ended(&fixture, name).await;
        assert!(
            conditions
                .iter()
                .any(|(kind, status, _)| kind == "Succeeded" && status == "True")
        );
    }
}

#[tokio::test]
async fn resources_without_the_verbs_cannot_be_migrated() {
    let fixture = Fixture::start().await;
    let made = migration("m", "authentication.k8s.io", "tokenreviews");
    fixture.cluster.create(&made, None).await.unwrap();
    let conditions = ended(&fixture, "m").await;
    let message = "resource \"authentication.k8s.io/v1, Resource=tokenreviews\" does not support discovery operations: [update patch list]";
    let failed = conditions
        .iter()
        .find(|(kind, ..)| kind == "Failed")
        .unwrap();
    assert_eq!(failed.2, message);
}
