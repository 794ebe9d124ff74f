//! The typed API: pagination, patches, subresources, deletions, errors.

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Node, Pod},
};
use kube_client::{
    Api, Error,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use kube_core::ResourceExt;
use longshore_conformance::Server;
use serde_json::json;

use super::{api, client, config_map};

/// The status code of an error.
fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> u16 {
    match result {
        Err(Error::Api(status)) => status.code,
        other => panic!("expected an API error: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_3_pages_have_one_resource_version() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    for number in 0..10 {
        let map = config_map(&format!("n{number}"), "1");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let mut params = ListParams::default().limit(3);
    let mut names = Vec::new();
    let mut versions = Vec::new();
    loop {
        let page = maps.list(&params).await.unwrap();
        names.extend(page.items.iter().map(ResourceExt::name_any));
        versions.push(page.metadata.resource_version.clone());
        // The list does not contain later objects.
        let late = config_map(&format!("z{}", names.len()), "1");
        maps.create(&PostParams::default(), &late).await.unwrap();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    let expected: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    assert_eq!(names, expected);
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
    let chosen = ListParams::default()
        .fields("metadata.name=n3")
        .labels("of");
    assert_eq!(maps.list(&chosen).await.unwrap().items.len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_16_every_patch_type() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    let params = PatchParams::default();
    maps.create(&PostParams::default(), &config_map("one", "1"))
        .await
        .unwrap();
    let merge = Patch::Merge(json!({"data": {"value": null, "a": "1"}}));
    let strategic = Patch::Strategic(json!({"data": {"b": "2"}}));
    let json: Patch<()> = Patch::Json(
        serde_json::from_value(json!([{"op": "move", "from": "/data/b", "path": "/data/c"}]))
            .unwrap(),
    );
    maps.patch("one", &params, &merge).await.unwrap();
    maps.patch("one", &params, &strategic).await.unwrap();
    let map = maps.patch("one", &params, &json).await.unwrap();
    assert_eq!(json!(map.data), json!({"a": "1", "c": "2"}));
    assert_eq!(code(maps.patch("one", &params, &json).await), 422);
    let metadata = maps.patch_metadata("one", &params, &merge).await.unwrap();
    assert_eq!(metadata.name_any(), "one");
    let mut dry = params.clone();
    dry.dry_run = true;
    let map = maps
        .patch("one", &dry, &Patch::Merge(json!({"data": null})))
        .await
        .unwrap();
    assert_eq!(map.data, None);
    assert!(maps.get("one").await.unwrap().data.is_some());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_15_status_is_separate_from_spec() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "one"},
        "spec": {"unschedulable": true},
        "status": {"phase": "Running"},
    }))
    .unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let status = Patch::Merge(json!({
        "spec": {"unschedulable": false}, "status": {"capacity": {"cpu": "4"}}}));
    let params = PatchParams::default();
    let mut node = nodes.patch_status("one", &params, &status).await.unwrap();
    assert_eq!(node.spec.as_ref().unwrap().unschedulable, Some(true));
    let capacity = |node: &Node| {
        node.status
            .clone()
            .unwrap_or_default()
            .capacity
            .unwrap_or_default()
    };
    assert_eq!(capacity(&node)["cpu"].0, "4");
    node.status = None;
    node.labels_mut().insert("a".into(), "b".into());
    let node = nodes
        .replace("one", &PostParams::default(), &node)
        .await
        .unwrap();
    assert_eq!(capacity(&node)["cpu"].0, "4");
    assert_eq!(nodes.get_status("one").await.unwrap().labels()["a"], "b");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_11_deletions() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let maps: Api<ConfigMap> = api(&client);
    let made = maps
        .create(&PostParams::default(), &config_map("one", "1"))
        .await
        .unwrap();
    assert_eq!(
        code(
            maps.create(&PostParams::default(), &config_map("one", "1"))
                .await
        ),
        409
    );
    let mut params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some("other".into()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    assert_eq!(code(maps.delete("one", &params).await), 409);
    params.preconditions = Some(Preconditions {
        uid: made.uid(),
        resource_version: made.resource_version(),
    });
    let gone = maps.delete("one", &params).await.unwrap().right().unwrap();
    assert!(gone.is_success());
    assert_eq!(code(maps.get("one").await), 404);
    assert_eq!(maps.get_opt("one").await.unwrap(), None);

    let jobs: Api<Job> = api(&client);
    let job: Job = serde_json::from_value(json!({
        "metadata": {"name": "held"},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}},
    }))
    .unwrap();
    jobs.create(&PostParams::default(), &job).await.unwrap();
    let held = jobs
        .delete("held", &DeleteParams::foreground())
        .await
        .unwrap();
    let held = held.left().unwrap();
    assert_eq!(held.finalizers(), ["foregroundDeletion"]);
    assert!(held.metadata.deletion_timestamp.is_some());

    for number in 0..4 {
        let map = config_map(&format!("n{number}"), "1");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let some = ListParams::default()
        .fields("metadata.name!=n3")
        .labels("of");
    maps.delete_collection(&DeleteParams::default(), &some)
        .await
        .unwrap();
    let left = maps
        .list(&ListParams::default().labels("of"))
        .await
        .unwrap();
    assert_eq!(left.items.len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_29_errors_are_statuses() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let pods: Api<Pod> = api(&client);
    let bad: Pod = serde_json::from_value(json!({
        "metadata": {"name": "bad"}, "spec": {"restartPolicy": "Sometimes", "containers": []}}))
    .unwrap();
    let Err(Error::Api(status)) = pods.create(&PostParams::default(), &bad).await else {
        panic!("an invalid pod was created")
    };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = status.details.unwrap().causes;
    let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
    assert!(fields.contains(&"spec.containers"), "{fields:?}");
    assert!(fields.contains(&"spec.restartPolicy"), "{fields:?}");
    let elsewhere: Api<ConfigMap> = Api::namespaced(client.clone(), "elsewhere");
    let made = elsewhere
        .create(&PostParams::default(), &config_map("one", "1"))
        .await;
    assert_eq!(code(made), 404);
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    server.stop().await;
}
