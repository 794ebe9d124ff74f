//! Server-side apply and subresources.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube_client::{
    Api, Error,
    api::{Patch, PatchParams, PostParams},
};
use kube_core::ResourceExt;
use longshore_conformance::Server;
use serde_json::{Value, json};

use super::{api, client};

fn settings(data: &Value) -> Patch<Value> {
    Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_18_applied_fields_are_owned() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    let both = settings(&json!({"a": "1", "b": "1"}));
    let made = maps.patch("settings", &first, &both).await.unwrap();
    let again = maps.patch("settings", &first, &both).await.unwrap();
    assert_eq!(made.resource_version(), again.resource_version());
    assert_eq!(made.managed_fields()[0].manager.as_deref(), Some("first"));

    let other = settings(&json!({"a": "2"}));
    let Err(Error::Api(status)) = maps.patch("settings", &second, &other).await else {
        panic!("expected a conflict")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let causes = status.details.unwrap().causes;
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(
        (causes[0].reason.as_str(), causes[0].field.as_str()),
        ("FieldManagerConflict", ".data.a")
    );
    assert!(causes[0].message.contains("\"first\""), "{causes:?}");

    let forced = maps
        .patch("settings", &second.clone().force(), &other)
        .await
        .unwrap();
    assert_eq!(json!(forced.data), json!({"a": "2", "b": "1"}));
    // Equal values are co-owned; the value stays while one owner applies it.
    maps.patch("settings", &first, &settings(&json!({"a": "2"})))
        .await
        .unwrap();
    let kept = maps
        .patch("settings", &second, &settings(&json!({})))
        .await
        .unwrap();
    assert_eq!(json!(kept.data), json!({"a": "2"}));

    // Apply requires a field manager.
    let unmanaged = PatchParams::default();
    let refused = maps.patch("settings", &unmanaged, &other).await;
    assert!(matches!(refused, Err(Error::Api(_))), "{refused:?}");
    let mut dry = first.clone();
    dry.dry_run = true;
    let tried = maps
        .patch("settings", &dry, &settings(&json!({"a": "2", "c": "3"})))
        .await
        .unwrap();
    assert_eq!(tried.data.unwrap()["c"], "3");
    assert!(
        !maps
            .get("settings")
            .await
            .unwrap()
            .data
            .unwrap()
            .contains_key("c")
    );
    server.stop().await;
}

fn web() -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "a", "image": "x"}]},
            },
        },
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_15_scale_and_status_are_applied_and_replaced() {
    let server = Server::bare().await;
    let deployments: Api<Deployment> = api(&client(&server).await);
    deployments
        .create(&PostParams::default(), &web())
        .await
        .unwrap();

    let mut scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(2));
    assert_eq!(
        scale.status.as_ref().unwrap().selector.as_deref(),
        Some("app=web")
    );
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let patched = deployments
        .patch_scale("web", &PatchParams::default(), &three)
        .await
        .unwrap();
    assert_eq!(patched.spec.unwrap().replicas, Some(3));
    scale.spec.as_mut().unwrap().replicas = Some(4);
    let stale = deployments
        .replace_scale("web", &PostParams::default(), &scale)
        .await;
    assert!(
        matches!(&stale, Err(Error::Api(status)) if status.code == 409),
        "{stale:?}"
    );
    scale.metadata.resource_version = None;
    let replaced = deployments
        .replace_scale("web", &PostParams::default(), &scale)
        .await
        .unwrap();
    assert_eq!(replaced.spec.unwrap().replicas, Some(4));

    let status = Patch::Apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "status": {"replicas": 4, "conditions": [{"type": "Available", "status": "True"}]},
    }));
    let params = PatchParams::apply("controller").force();
    let shown = deployments
        .patch_status("web", &params, &status)
        .await
        .unwrap();
    assert_eq!(shown.status.as_ref().unwrap().replicas, Some(4));
    assert_eq!(shown.spec.replicas, Some(4));
    let entry = shown.managed_fields().iter();
    let entry = entry.filter(|entry| entry.manager.as_deref() == Some("controller"));
    let subresources: Vec<_> = entry.map(|entry| entry.subresource.as_deref()).collect();
    assert_eq!(subresources, [Some("status")]);

    let mut status = deployments.get_status("web").await.unwrap();
    status.status.as_mut().unwrap().replicas = Some(1);
    status.spec.replicas = Some(9);
    let replaced = deployments
        .replace_status("web", &PostParams::default(), &status)
        .await
        .unwrap();
    assert_eq!(replaced.status.unwrap().replicas, Some(1));
    assert_eq!(replaced.spec.replicas, Some(4));
    server.stop().await;
}
