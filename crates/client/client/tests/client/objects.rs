//! Objects as Rust types: what is written, and types from other crates.

use std::borrow::Cow;

use crate::fake::{Answer, Fake};
use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_client::Resource;
use longshore_client::{
    Custom, Item, Kind, KindRef,
    kinds::{Pod, Secret},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn stored() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "resourceVersion": "1", "managedFields": [{}]},
        "spec": {"newField": 1, "containers": [{"name": "main", "newField": 2}]},
    })
}

#[tokio::test]
async fn updates_keep_fields_that_the_type_lacks() {
    let fake = Fake::new([Answer::json(200, &stored()), Answer::json(200, &stored())]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    pods.update("a", |pod| {
        let spec = pod.spec.as_mut().unwrap();
        spec.containers[0].image = Some("busybox".to_owned());
        pod.metadata
            .labels
            .get_or_insert_default()
            .insert("app".into(), "web".into());
        Ok(())
    })
    .await
    .unwrap();
    let sent = &fake.requests()[1];
    assert_eq!(sent.method, "PUT");
    let container = json!({"name": "main", "image": "busybox", "newField": 2});
    assert_eq!(
        sent.body["spec"],
        json!({"newField": 1, "containers": [container]})
    );
    assert_eq!(sent.body["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(sent.body["metadata"]["resourceVersion"], "1");
}

#[tokio::test]
async fn an_object_that_was_read_can_be_applied() {
    let fake = Fake::new([Answer::json(200, &stored()), Answer::json(200, &stored())]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    let pod: Pod = pods.fetch("a").await.unwrap().object().unwrap();
    pods.apply(&pod, "me", false).await.unwrap();
    let sent = &fake.requests()[1];
    assert_eq!(sent.path(), "/api/v1/namespaces/n/pods/a");
    assert_eq!(sent.content_type, "application/apply-patch+yaml");
    assert_eq!(sent.body["metadata"].get("managedFields"), None);
    assert_eq!(sent.body["kind"], "Pod");
}

#[tokio::test]
async fn both_the_type_and_json_are_written() {
    let fake = Fake::new([Answer::json(201, &stored()), Answer::json(201, &stored())]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let typed: Item<Pod> = pods.create(&pod).await.unwrap();
    let untyped: Item<Pod> = pods
        .create(&json!({"metadata": {"name": "a"}}))
        .await
        .unwrap();
    assert_eq!(typed, untyped);
    let seen = fake.requests();
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(
        seen[0].body["metadata"],
        json!({"name": "a", "namespace": "n"})
    );
}

/// A type as kube's derive macro generates it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Rack {
    metadata: ObjectMeta,
}

impl Resource for Rack {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Rack".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "example.com".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "racks".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test]
async fn types_with_kubes_resource_are_kinds() {
    let rack = json!({"metadata": {"name": "a"}});
    let fake = Fake::new([Answer::json(201, &rack)]);
    let racks = fake.cluster().view::<Rack>();
    assert!(!racks.kind().is_namespaced());
    let metadata = ObjectMeta {
        name: Some("a".to_owned()),
        ..ObjectMeta::default()
    };
    let made = racks.create(&Rack { metadata }).await.unwrap();
    assert_eq!(made.object().unwrap().metadata.name.as_deref(), Some("a"));
    let sent = &fake.requests()[0];
    assert_eq!(sent.path(), "/apis/example.com/v1/racks");
    assert_eq!(
        (&sent.body["apiVersion"], &sent.body["kind"]),
        (&json!("example.com/v1"), &json!("Rack"))
    );
    // Another version of a built-in kind is a separate kind.
    let older = k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler::info();
    assert_eq!(older.api_path(), "/apis/autoscaling/v1");
    assert!(older.is_namespaced());
}

#[tokio::test]
async fn errors_of_typed_updates_do_not_quote_secrets() {
    let secret = json!({"metadata": {"name": "a"}, "data": {"key": "s3cret!"}});
    let fake = Fake::new([Answer::json(200, &secret)]);
    let secrets = fake.cluster().view::<Secret>().in_namespace("n").unwrap();
    let error = secrets.update("a", |_| Ok(())).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("secrets a") && !text.contains("s3cret"),
        "{text}"
    );
}

#[tokio::test]
async fn custom_objects_have_the_types_of_spec_and_status() {
    let hat = json!({"metadata": {"name": "a"}, "spec": 58, "status": "worn"});
    let fake = Fake::new([Answer::json(200, &hat)]);
    let kind = KindRef::cluster_scoped("example.com/v1", "Hat", "hats");
    let hats = fake.cluster().view_of::<Custom<u32, String>>(kind);
    let hat = hats.fetch("a").await.unwrap().object().unwrap();
    assert_eq!((hat.spec, hat.status.as_deref()), (58, Some("worn")));
    assert_eq!(fake.requests()[0].path(), "/apis/example.com/v1/hats/a");
}
