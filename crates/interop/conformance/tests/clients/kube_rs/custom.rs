//! Custom kinds, as a Rust type and as dynamic objects.

use std::borrow::Cow;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    NamespaceResourceScope,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{
    Api, Client, Error,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery,
};
use kube_core::{GroupVersionKind, ObjectMeta, Resource, ResourceExt};
use kube_runtime::{
    WatchStreamExt, predicates,
    wait::{await_condition, conditions},
    watcher,
};
use longshore_conformance::Server;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{api, client, in_time};

/// A type without the derive macro of kube-rs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fox {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    spec: FoxSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<FoxStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct FoxSpec {
    colour: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct FoxStatus {
    size: i32,
}

impl Resource for Fox {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Fox".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "rust.example.org".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "foxes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Fox {
    fn new(name: &str, colour: &str) -> Self {
        Self {
            api_version: "rust.example.org/v1".into(),
            kind: "Fox".into(),
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            spec: FoxSpec {
                colour: colour.into(),
                size: None,
            },
            status: None,
        }
    }
}

/// Creates the definition and waits until the kind is established.
async fn define(client: &Client) {
    let schema = json!({
        "type": "object", "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object", "required": ["colour"],
                "properties": {
                    "colour": {"type": "string", "enum": ["red", "white"]},
                    "size": {"type": "integer", "minimum": 0, "default": 1},
                },
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "foxes.rust.example.org"},
        "spec": {
            "group": "rust.example.org", "scope": "Namespaced",
            "names": {"kind": "Fox", "plural": "foxes", "singular": "fox"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }],
        },
    }))
    .unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let waiting = tokio::spawn(await_condition(
        definitions.clone(),
        "foxes.rust.example.org",
        conditions::is_crd_established(),
    ));
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    in_time(waiting).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_30_a_custom_kind_with_a_typed_api() {
    let server = Server::bare().await;
    let client = client(&server).await;
    define(&client).await;
    let foxes: Api<Fox> = api(&client);
    let made = foxes
        .create(&PostParams::default(), &Fox::new("one", "red"))
        .await
        .unwrap();
    assert_eq!(made.spec.size, Some(1));
    let refused = foxes
        .create(&PostParams::default(), &Fox::new("two", "blue"))
        .await;
    assert!(
        matches!(&refused, Err(Error::Api(status)) if status.code == 422),
        "{refused:?}"
    );

    let params = PatchParams::apply("test");
    let applied = json!({
        "apiVersion": "rust.example.org/v1", "kind": "Fox",
        "metadata": {"name": "one"}, "spec": {"colour": "white"},
    });
    let conflict = foxes.patch("one", &params, &Patch::Apply(&applied)).await;
    assert!(
        matches!(&conflict, Err(Error::Api(status)) if status.code == 409),
        "{conflict:?}"
    );
    let forced = foxes
        .patch("one", &params.clone().force(), &Patch::Apply(&applied))
        .await
        .unwrap();
    assert_eq!(
        (forced.spec.colour.as_str(), forced.spec.size),
        ("white", Some(1))
    );
    assert_eq!(forced.metadata.generation, Some(2));

    let status = Patch::Merge(json!({"status": {"size": 5}, "spec": {"size": 7}}));
    let merge = PatchParams::default();
    let patched = foxes.patch_status("one", &merge, &status).await.unwrap();
    assert_eq!(patched.status, Some(FoxStatus { size: 5 }));
    assert_eq!(
        (patched.spec.size, patched.metadata.generation),
        (Some(1), Some(2))
    );
    let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let scale = foxes.patch_scale("one", &merge, &scale).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    assert_eq!(scale.status.unwrap().replicas, 5);
    assert_eq!(foxes.get("one").await.unwrap().spec.size, Some(3));
    let strategic = Patch::Strategic(json!({"spec": {"size": 1}}));
    let refused = foxes.patch("one", &merge, &strategic).await;
    assert!(
        matches!(&refused, Err(Error::Api(status)) if status.code == 415),
        "{refused:?}"
    );
    let mut stale = foxes.get("one").await.unwrap();
    stale.metadata.resource_version = None;
    let refused = foxes.replace("one", &PostParams::default(), &stale).await;
    assert!(
        matches!(&refused, Err(Error::Api(status)) if status.code == 422),
        "{refused:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_30_a_custom_kind_found_by_discovery() {
    let server = Server::bare().await;
    let client = client(&server).await;
    define(&client).await;
    let gvk = GroupVersionKind::gvk("rust.example.org", "v1", "Fox");
    let (kind, can) = discovery::pinned_kind(&client, &gvk).await.unwrap();
    let subresources: Vec<_> = can
        .subresources
        .iter()
        .map(|(sub, _)| sub.plural.clone())
        .collect();
    assert_eq!(subresources.len(), 2, "{subresources:?}");
    assert_eq!(ApiResource::erase::<Fox>(&()).plural, kind.plural);
    let foxes: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    let fox = DynamicObject::new("one", &kind).data(json!({"spec": {"colour": "red"}}));
    foxes.create(&PostParams::default(), &fox).await.unwrap();
    let list = foxes.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].data["spec"]["size"], 1);
    assert_eq!(list.types.kind, "FoxList");

    // After the deletion of the definition, the kind is not served.
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = "foxes.rust.example.org";
    let uid = definitions.get(name).await.unwrap().uid().unwrap();
    definitions
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
    in_time(await_condition(
        definitions,
        name,
        conditions::is_deleted(&uid),
    ))
    .await
    .unwrap();
    let gone = foxes.list(&ListParams::default()).await;
    assert!(
        matches!(&gone, Err(Error::Api(status)) if status.code == 404),
        "{gone:?}"
    );
    server.stop().await;
}

/// For controllers that react to changes of the desired state only.
#[tokio::test(flavor = "multi_thread")]
async fn rule_10_a_generation_predicate_passes_spec_changes() {
    let server = Server::bare().await;
    let client = client(&server).await;
    define(&client).await;
    let foxes: Api<Fox> = api(&client);
    for streaming in [false, true] {
        let name = if streaming { "two" } else { "one" };
        let mut config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        if streaming {
            config = config.streaming_lists();
        }
        let mut changes = watcher(foxes.clone(), config)
            .applied_objects()
            .predicate_filter(predicates::generation, Default::default())
            .boxed();
        let fox = Fox::new(name, "red");
        foxes.create(&PostParams::default(), &fox).await.unwrap();
        let seen = in_time(changes.try_next()).await.unwrap().unwrap();
        assert_eq!(seen.metadata.generation, Some(1));
        let params = PatchParams::default();
        for size in 1..4 {
            let status = Patch::Merge(json!({"status": {"size": size}}));
            foxes.patch_status(name, &params, &status).await.unwrap();
        }
        let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        foxes.patch(name, &params, &label).await.unwrap();
        let spec = Patch::Merge(json!({"spec": {"size": 9}}));
        foxes.patch(name, &params, &spec).await.unwrap();
        let seen = in_time(changes.try_next()).await.unwrap().unwrap();
        assert_eq!(
            (seen.metadata.generation, seen.spec.size),
            (Some(2), Some(9))
        );
    }
    server.stop().await;
}
