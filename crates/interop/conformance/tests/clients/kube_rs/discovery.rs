//! Discovery, and objects of discovered kinds.

use kube_client::{
    Api,
    api::{DynamicObject, ListParams, PostParams},
    discovery::{self, Discovery, Scope, verbs},
};
use kube_core::{GroupVersion, GroupVersionKind, ResourceExt};
use longshore_conformance::Server;
use serde_json::json;

use super::client;

#[tokio::test(flavor = "multi_thread")]
async fn rule_23_both_discovery_formats_agree() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let plain = Discovery::new(client.clone()).run().await.unwrap();
    let aggregated = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .unwrap();
    let describe = |found: &Discovery| -> Vec<String> {
        let mut lines = Vec::new();
        for group in found.groups_alphabetical() {
            for version in group.versions() {
                for (kind, can) in group.versioned_resources(version) {
                    let scope = can.scope == Scope::Namespaced;
                    let mut verbs = can.operations.clone();
                    verbs.sort();
                    let subresources: Vec<_> = can
                        .subresources
                        .iter()
                        .map(|(sub, _)| &sub.plural)
                        .collect();
                    lines.push(format!(
                        "{} {} {} {scope} {verbs:?} {subresources:?}",
                        kind.api_version, kind.kind, kind.plural
                    ));
                }
            }
        }
        lines.sort();
        lines
    };
    assert_eq!(describe(&plain), describe(&aggregated));
    for group in ["", "apps", "batch", "coordination.k8s.io"] {
        assert!(plain.has_group(group), "{group:?}");
    }

    let gvk = GroupVersionKind::gvk("batch", "v1", "Job");
    let (job, can) = discovery::pinned_kind(&client, &gvk).await.unwrap();
    assert_eq!(
        (job.plural.as_str(), can.scope.clone()),
        ("jobs", Scope::Namespaced)
    );
    assert!(can.supports_operation(verbs::WATCH));
    let group = discovery::pinned_group(&client, &GroupVersion::gv("batch", "v1"))
        .await
        .unwrap();
    assert!(group.recommended_kind("Job").is_some());
    let none = discovery::pinned_kind(&client, &GroupVersionKind::gvk("batch", "v1", "Wolf")).await;
    assert!(none.is_err());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_listed_as_dynamic_objects_and_as_metadata() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let found = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .unwrap();
    let mut listed = 0;
    for group in found.groups() {
        for (kind, can) in group.recommended_resources() {
            if !can.supports_operation(verbs::LIST) {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
            let objects = api.list(&ListParams::default()).await.unwrap();
            let metadata = api.list_metadata(&ListParams::default()).await.unwrap();
            assert_eq!(objects.items.len(), metadata.items.len(), "{}", kind.kind);
            listed += 1;
        }
    }
    assert!(listed >= 10, "{listed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamic_objects_are_written_and_read() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let gvk = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let (kind, can) = discovery::pinned_kind(&client, &gvk).await.unwrap();
    assert_eq!(can.scope, Scope::Namespaced);
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let object = DynamicObject::new("one", &kind).data(json!({"data": {"a": "b"}}));
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(made.types.as_ref().unwrap().kind, "ConfigMap");
    let read = api.get("one").await.unwrap();
    assert_eq!(
        (read.uid(), &read.data["data"]["a"]),
        (made.uid(), &json!("b"))
    );
    let metadata = api.get_metadata("one").await.unwrap();
    assert_eq!(metadata.uid(), made.uid());
    assert_eq!(metadata.types.unwrap().kind, "PartialObjectMetadata");
    server.stop().await;
}
