//! Rules 30 and 15: CustomResourceDefinitions, the kinds they make, and scale.

use std::{path::Path, sync::Arc};

use crate::support::{Api, api, options, status, told};
use longshore_engine::{
    Create, Delete, DeleteOptions, Engine, Error, FieldValidation, ListRequest, Object, Patch,
    ReadVersion, Storage, Subresource, Target, Update, WatchRequest, WatchStart, WriteOptions,
    Written,
};
use longshore_model::{KindInfo, PatchKind};
use serde_json::{Value, json};

const DEFINITIONS: &str = "customresourcedefinitions";

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "default": "red"},
            "replicas": {"type": "integer"},
        }},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"},
        }},
    }})
}

fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": schema()},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "selectableFields": [{"jsonPath": ".spec.size"}]})
}

fn definition(versions: Value) -> Value {
    json!({"metadata": {"name": "shoes.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "shoes", "kind": "Shoe", "shortNames": ["sh"]},
        "versions": versions,
    }})
}

/// A server with the kind `Shoe`.
async fn shoes() -> Api {
    let api = api();
    let crd = definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, crd).await.unwrap();
    api
}

fn shoe_kind(api: &Api, version: &str) -> Arc<KindInfo> {
    api.0.find("example.com", version, "shoes").unwrap()
}

fn target(api: &Api, version: &str, name: &str) -> Target {
    Target {
        kind: shoe_kind(api, version),
        namespace: Some("default".into()),
        name: name.into(),
    }
}

fn shoe(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"size": 40}})
}

async fn create(api: &Api, version: &str, object: Value) -> Result<Written, Error> {
    let kind = shoe_kind(api, version);
    let create = Create {
        kind,
        namespace: Some("default".into()),
        object,
        options: WriteOptions::default(),
    };
    api.0.create(create).await
}

fn get(api: &Api, version: &str, name: &str) -> Result<Value, Error> {
    let kind = shoe_kind(api, version);
    let object = api
        .0
        .get(&kind, Some("default"), name, ReadVersion::Latest)?;
    Ok(object.value())
}

async fn put(
    api: &Api,
    name: &str,
    subresource: Subresource,
    object: Value,
) -> Result<Arc<Object>, Error> {
    let update = Update {
        target: target(api, "v1", name),
        subresource,
        object,
        options: WriteOptions::default(),
    };
    Ok(api.0.update(update).await?.object)
}

async fn patch(
    api: &Api,
    version: &str,
    subresource: Subresource,
    kind: PatchKind,
    body: Value,
) -> Result<Arc<Object>, Error> {
    let patch = Patch {
        target: target(api, version, "a"),
        subresource,
        kind,
        body,
        options: WriteOptions::default(),
    };
    Ok(api.0.patch(patch).await?.object)
}

async fn delete(api: &Api, name: &str) {
    let delete = Delete {
        target: target(api, "v1", name),
        options: DeleteOptions::default(),
    };
    api.0.delete(delete).await.unwrap();
}

#[tokio::test]
async fn rule_30_a_definition_gets_its_defaults_and_is_established() {
    let api = api();
    let crd = definition(json!([version("v1", true)]));
    let made = api.create(DEFINITIONS, crd).await.unwrap().value();
    assert_eq!(made["spec"]["names"]["singular"], "shoe");
    assert_eq!(made["spec"]["names"]["listKind"], "ShoeList");
    assert_eq!(made["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        made["status"],
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": ["v1"]})
    );
    let now = api.get(DEFINITIONS, "shoes.example.com").unwrap().value();
    assert_eq!(now["status"]["acceptedNames"], now["spec"]["names"]);
    let conditions: Vec<_> = now["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            format!(
                "{} {} {} {}",
                c["type"], c["status"], c["reason"], c["message"]
            )
        })
        .collect();
    assert_eq!(
        conditions,
        [
            r#""NamesAccepted" "True" "NoConflicts" "no conflicts found""#,
            r#""Established" "True" "InitialNamesAccepted" "the initial names have been accepted""#,
        ]
    );
    let kind = shoe_kind(&api, "v1");
    assert_eq!((&*kind.singular, &*kind.list_kind()), ("shoe", "ShoeList"));
    assert!(kind.short_names.contains("sh") && kind.has_subresource("scale"));
}

#[tokio::test]
async fn rule_30_definitions_that_break_the_rules_are_refused() {
    let api = api();
    let mut crd = definition(json!([version("v1", false)]));
    crd["metadata"]["name"] = json!("boots.example.com");
    crd["spec"]["scope"] = json!("World");
    let (code, _, message) = status(api.create(DEFINITIONS, crd).await);
    assert_eq!(code, 422);
    for part in [
        r#"metadata.name: Invalid value: "boots.example.com": must be spec.names.plural+"."+spec.group"#,
        r#"spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced""#,
        "must have exactly one version marked as storage version",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let mut crd = definition(json!([version("v1", true)]));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["x"] = json!({});
    let (_, _, message) = status(api.create(DEFINITIONS, crd).await);
    assert!(
        message.ends_with(
            "spec.validation.openAPIV3Schema.properties[x].type: Required value: must not be empty for specified object fields"
        ),
        "{message}"
    );
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
}

#[tokio::test]
async fn rule_30_names_that_another_has_are_not_accepted_until_it_goes() {
    let api = shoes().await;
    let mut other = definition(json!([version("v1", true)]));
    other["metadata"]["name"] = json!("slippers.example.com");
    other["spec"]["names"] = json!({"plural": "slippers", "kind": "Shoe", "shortNames": ["sh"]});
    api.create(DEFINITIONS, other).await.unwrap();
    let conditions = |api: &Api| {
        let crd = api
            .get(DEFINITIONS, "slippers.example.com")
            .unwrap()
            .value();
        let one = |index: usize| crd["status"]["conditions"][index].clone();
        (one(0), one(1))
    };
    let (names, established) = conditions(&api);
    assert_eq!(
        (&names["status"], &names["reason"], &names["message"]),
        (
            &json!("False"),
            &json!("ListKindConflict"),
            &json!("\"ShoeList\" is already in use")
        )
    );
    assert_eq!(established["status"], "False");
    assert!(api.0.find("example.com", "v1", "slippers").is_none());
    api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    let (names, established) = conditions(&api);
    assert_eq!(
        (&names["status"], &established["status"]),
        (&json!("True"), &json!("True"))
    );
    assert!(api.0.find("example.com", "v1", "slippers").is_some());
}

#[tokio::test]
async fn rule_30_objects_are_pruned_filled_and_validated() {
    let api = shoes().await;
    let object = json!({"metadata": {"name": "a"}, "spec": {"size": 40, "laces": 2}, "status": {"replicas": 1}});
    let written = create(&api, "v1", object).await.unwrap();
    assert_eq!(written.warnings, [r#"unknown field "spec.laces""#]);
    let made = written.object.value();
    assert_eq!(made["spec"], json!({"size": 40, "colour": "red"}));
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("Shoe"), &json!("example.com/v1"))
    );
    // Its own status subresource: the status sent along is dropped.
    assert_eq!(
        (made.get("status"), &made["metadata"]["generation"]),
        (None, &json!(1))
    );
    let (code, _, message) = status(
        create(
            &api,
            "v1",
            json!({"metadata": {"name": "b"}, "spec": {"size": "x"}}),
        )
        .await,
    );
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"Shoe.example.com "b" is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#
    );
    let strict = Create {
        kind: shoe_kind(&api, "v1"),
        namespace: Some("default".into()),
        object: json!({"metadata": {"name": "c"}, "spec": {"size": 40, "laces": 2}}),
        options: WriteOptions {
            field_validation: FieldValidation::Strict,
            ..WriteOptions::default()
        },
    };
    let (code, _, message) = status(api.0.create(strict).await);
    assert_eq!(code, 400);
    assert!(message.contains(r#"strict decoding error: unknown field "spec.laces""#));
}

#[tokio::test]
async fn rule_8_an_update_of_a_custom_object_needs_its_version() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let (code, _, message) = status(put(&api, "a", Subresource::None, shoe("a")).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"shoes.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#
    );
    let (code, ..) = status(
        patch(
            &api,
            "v1",
            Subresource::None,
            PatchKind::Strategic,
            json!({"spec": {"size": 2}}),
        )
        .await,
    );
    assert_eq!(code, 415);
}

#[tokio::test]
async fn rule_10_and_15_status_and_generation_of_custom_objects() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let merge = |part, body| patch(&api, "v1", part, PatchKind::Merge, body);
    let both = json!({"spec": {"size": 41}, "status": {"replicas": 2}});
    let main = merge(Subresource::None, both.clone())
        .await
        .unwrap()
        .value();
    assert_eq!(
        (main.get("status"), &main["metadata"]["generation"]),
        (None, &json!(2))
    );
    let both = json!({"spec": {"size": 42}, "status": {"replicas": 2}});
    let part = merge(Subresource::Status, both).await.unwrap().value();
    assert_eq!(
        (&part["spec"]["size"], &part["status"]["replicas"]),
        (&json!(41), &json!(2))
    );
    assert_eq!(part["metadata"]["generation"], 2);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = merge(Subresource::None, labels).await.unwrap().value();
    assert_eq!(labelled["metadata"]["generation"], 2);
    let (code, _, message) =
        status(merge(Subresource::Status, json!({"status": {"replicas": "x"}})).await);
    assert_eq!(code, 422);
    assert!(
        message.contains("status.replicas in body must be of type integer"),
        "{message}"
    );
}

#[tokio::test]
async fn rule_15_scale_of_custom_objects() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let kind = shoe_kind(&api, "v1");
    let scale = || {
        let found = api
            .0
            .get_scale(&kind, Some("default"), "a", ReadVersion::Latest);
        found.map(|scale| scale.value())
    };
    let (code, _, message) = status(scale());
    assert_eq!(code, 500);
    assert!(message.contains(r#"the spec replicas field ".spec.replicas" does not exist"#));
    let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}});
    let set = put(&api, "a", Subresource::Scale, body)
        .await
        .unwrap()
        .value();
    assert_eq!(
        (&set["kind"], &set["spec"]),
        (&json!("Scale"), &json!({"replicas": 3}))
    );
    let part = json!({"status": {"replicas": 2, "selector": "a=b"}});
    patch(&api, "v1", Subresource::Status, PatchKind::Merge, part)
        .await
        .unwrap();
    assert_eq!(
        scale().unwrap()["status"],
        json!({"replicas": 2, "selector": "a=b"})
    );
    let body = json!({"spec": {"replicas": 5}});
    let set = patch(&api, "v1", Subresource::Scale, PatchKind::Merge, body)
        .await
        .unwrap();
    assert_eq!(set.value()["spec"]["replicas"], 5);
    let now = get(&api, "v1", "a").unwrap();
    assert_eq!(
        (&now["spec"]["replicas"], &now["metadata"]["generation"]),
        (&json!(5), &json!(3))
    );
    let body = json!({"spec": {"replicas": -4}});
    let (code, _, message) =
        status(patch(&api, "v1", Subresource::Scale, PatchKind::Merge, body).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"Shoe.example.com "a" is invalid: .spec.replicas: Invalid value: -4: should be a non-negative integer"#
    );
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}});
    let (code, ..) = status(put(&api, "a", Subresource::Scale, stale).await);
    assert_eq!(code, 409);
}

#[tokio::test]
async fn rule_15_scale_of_a_deployment() {
    let api = api();
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}});
    api.create("deployments", deployment).await.unwrap();
    let target = Api::target("deployments", "d");
    let patch = |replicas: i64| Patch {
        target: target.clone(),
        subresource: Subresource::Scale,
        kind: PatchKind::Merge,
        body: json!({"spec": {"replicas": replicas}}),
        options: WriteOptions::default(),
    };
    let scale = api.0.patch(patch(4)).await.unwrap().object.value();
    assert_eq!(scale["spec"]["replicas"], 4);
    assert_eq!(scale["status"]["selector"], "a=b");
    assert_eq!(
        api.get("deployments", "d").unwrap().value()["spec"]["replicas"],
        4
    );
    let (code, _, message) = status(api.0.patch(patch(-1)).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        r#"Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#
    );
}

#[tokio::test]
async fn rule_30_versions_share_their_objects() {
    let api = api();
    let mut old = version("v1beta1", false);
    old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["old"] =
        json!({"type": "string", "default": "yes"});
    let crd = definition(json!([version("v1", true), old]));
    api.create(DEFINITIONS, crd).await.unwrap();
    create(
        &api,
        "v1beta1",
        json!({"metadata": {"name": "a"}, "spec": {"size": 40, "old": "no"}}),
    )
    .await
    .unwrap();
    let new = get(&api, "v1", "a").unwrap();
    assert_eq!(
        (&new["apiVersion"], new["spec"].get("old")),
        (&json!("example.com/v1"), None)
    );
    let old = get(&api, "v1beta1", "a").unwrap();
    assert_eq!(
        (&old["apiVersion"], &old["spec"]["old"]),
        (&json!("example.com/v1beta1"), &json!("no"))
    );
    create(&api, "v1", shoe("b")).await.unwrap();
    // A default is filled in on reading, too.
    assert_eq!(get(&api, "v1beta1", "b").unwrap()["spec"]["old"], "yes");
    let kind = shoe_kind(&api, "v1beta1");
    let page = api.0.list(&ListRequest::of(kind.clone())).unwrap();
    assert!(
        page.items
            .iter()
            .all(|o| o.value()["apiVersion"] == "example.com/v1beta1")
    );
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind, WatchStart::Latest))
        .unwrap();
    patch(
        &api,
        "v1",
        Subresource::None,
        PatchKind::Merge,
        json!({"spec": {"size": 1}}),
    )
    .await
    .unwrap();
    assert_eq!(told(&mut watch), ["ADDED a", "ADDED b", "MODIFIED a"]);
}

#[tokio::test]
async fn rule_19_selectable_fields() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    create(
        &api,
        "v1",
        json!({"metadata": {"name": "b"}, "spec": {"size": 41}}),
    )
    .await
    .unwrap();
    let mut request = ListRequest::of(shoe_kind(&api, "v1"));
    request.fields = "spec.size=41".parse().unwrap();
    let page = api.0.list(&request).unwrap();
    assert_eq!(
        page.items.iter().map(|o| o.name()).collect::<Vec<_>>(),
        ["b"]
    );
    request.fields = "spec.colour=red".parse().unwrap();
    assert_eq!(status(api.0.list(&request)).0, 400);
}

#[tokio::test]
async fn rule_30_a_definition_takes_its_objects_along_and_watches_end() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let held =
        json!({"metadata": {"name": "b", "finalizers": ["example.com/hold"]}, "spec": {"size": 1}});
    create(&api, "v1", held).await.unwrap();
    let kind = shoe_kind(&api, "v1");
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind, WatchStart::Latest))
        .unwrap();
    let gone = api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    let marked = gone.object().value();
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(
        told(&mut watch),
        ["ADDED a", "ADDED b", "DELETED a", "MODIFIED b"]
    );
    let crd = api.get(DEFINITIONS, "shoes.example.com").unwrap().value();
    assert_eq!(
        crd["status"]["conditions"][2]["reason"],
        "InstanceDeletionInProgress"
    );
    let (code, _, message) = status(create(&api, "v1", shoe("c")).await);
    assert_eq!(
        (code, message.as_str()),
        (
            405,
            "create not allowed while custom resource definition is terminating"
        )
    );
    let body = json!({"metadata": {"finalizers": null}});
    let mut release = target(&api, "v1", "b");
    release.name = "b".into();
    let release = Patch {
        target: release,
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body,
        options: WriteOptions::default(),
    };
    api.0.patch(release).await.unwrap();
    assert!(matches!(
        api.get(DEFINITIONS, "shoes.example.com"),
        Err(Error::NotFound(_))
    ));
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
    // The last event is still told, then the watch ends.
    let last = watch.try_next().unwrap().unwrap();
    assert!(matches!(last, longshore_engine::WatchEvent::Deleted(_)));
    assert!(matches!(watch.try_next(), Err(Error::KindGone(_))));
    // The same kind again begins empty.
    let crd = definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, crd).await.unwrap();
    assert!(matches!(get(&api, "v1", "a"), Err(Error::NotFound(_))));
    assert!(matches!(watch.try_next(), Err(Error::KindGone(_))));
}

#[tokio::test]
async fn rule_13_a_dry_run_makes_no_kind() {
    let api = api();
    let options = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let crd = definition(json!([version("v1", true)]));
    api.create_with(DEFINITIONS, crd, options).await.unwrap();
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
}

#[tokio::test]
async fn rule_30_updates_of_a_definition_take_effect() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let epoch = api.0.kinds_epoch();
    let kind = shoe_kind(&api, "v1");
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind, WatchStart::Latest))
        .unwrap();
    assert_eq!(told(&mut watch), ["ADDED a"]);
    let body = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/width",
        "value": {"type": "string", "default": "wide"}}]);
    let grow = Patch {
        target: Api::target(DEFINITIONS, "shoes.example.com"),
        subresource: Subresource::None,
        kind: PatchKind::Json,
        body,
        options: WriteOptions::default(),
    };
    let crd = api.0.patch(grow).await.unwrap().object.value();
    assert_eq!(crd["metadata"]["generation"], 2);
    assert!(api.0.kinds_epoch() > epoch);
    assert_eq!(get(&api, "v1", "a").unwrap()["spec"]["width"], "wide");
    create(&api, "v1", shoe("b")).await.unwrap();
    assert_eq!(told(&mut watch), ["ADDED b"]);
    let (code, _, message) = status(
        api.merge(
            DEFINITIONS,
            "shoes.example.com",
            json!({"spec": {"scope": "Cluster"}}),
        )
        .await,
    );
    assert_eq!(code, 422);
    assert!(
        message.contains(r#"spec.scope: Invalid value: "Cluster": field is immutable"#),
        "{message}"
    );
}

#[tokio::test]
async fn rule_30_a_webhook_is_never_called() {
    let api = api();
    let mut crd = definition(json!([version("v1", true), version("v2", false)]));
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://127.0.0.1/convert"}, "conversionReviewVersions": ["v1"]}});
    api.create(DEFINITIONS, crd).await.unwrap();
    create(&api, "v1", shoe("a")).await.unwrap();
    assert!(get(&api, "v1", "a").is_ok());
    let (code, _, message) = status(get(&api, "v2", "a"));
    assert_eq!(code, 500);
    assert!(
        message.contains("this server calls no conversion webhooks"),
        "{message}"
    );
}

fn open(path: &Path) -> Api {
    Api(Engine::open(options(Storage::File(path.to_owned()))).unwrap())
}

#[tokio::test]
async fn rule_30_kinds_and_their_objects_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let first = open(&path);
    let crd = definition(json!([version("v1", true)]));
    first.create(DEFINITIONS, crd).await.unwrap();
    create(&first, "v1", shoe("a")).await.unwrap();
    create(&first, "v1", shoe("b")).await.unwrap();
    delete(&first, "b").await;
    let before = get(&first, "v1", "a").unwrap();
    drop(first);
    let second = open(&path);
    assert_eq!(get(&second, "v1", "a").unwrap(), before);
    assert!(matches!(get(&second, "v1", "b"), Err(Error::NotFound(_))));
    second
        .delete(DEFINITIONS, "shoes.example.com")
        .await
        .unwrap();
    drop(second);
    let third = open(&path);
    assert!(third.0.find("example.com", "v1", "shoes").is_none());
}
