//! Points 11 to 17: views.

use std::collections::HashSet;

use futures::StreamExt;
use longshore::client::{
    FieldSelector, Kind, LabelSelector,
    kinds::{ConfigMap, CronJob, Deployment, Node, Pod},
};
use serde_json::json;

use crate::common::{Fixture, invalid, misplaced};

#[tokio::test]
async fn point_11_creating_a_view_sends_no_request() {
    // No server listens on this port.
    let cluster = longshore::Cluster::from_url("http://127.0.0.1:1/").unwrap();
    let view = cluster
        .pods()
        .in_namespace("a")
        .unwrap()
        .filter("x=y")
        .unwrap();
    assert!(view.list().await.unwrap_err().is_unreachable());
}

#[tokio::test]
async fn point_11_nodes_are_cluster_scoped() {
    let fixture = Fixture::start().await;
    assert_eq!(
        misplaced(fixture.cluster.nodes().in_namespace("a")),
        "nodes are in no namespace, so not in \"a\""
    );
    assert_eq!(
        misplaced(fixture.cluster.namespaces().in_namespace("a")),
        "namespaces are in no namespace, so not in \"a\""
    );
    misplaced(fixture.cluster.pods().in_namespace("A b"));
}

#[tokio::test]
async fn point_12_a_view_knows_its_cluster_namespace_and_kind() {
    let fixture = Fixture::start().await;
    let global = fixture.cluster.view::<Deployment>();
    assert_eq!(
        (global.namespace(), global.cluster().url()),
        (None, fixture.cluster.url())
    );
    let view = fixture.view::<Deployment>();
    assert_eq!(view.namespace(), Some(fixture.namespace()));
    // The view and the kind have the same properties.
    assert_eq!(view.kind(), &*Deployment::info());
    let info = view.kind();
    assert_eq!(
        (info.gvk.kind.as_ref(), info.plural.as_ref()),
        ("Deployment", "deployments")
    );
    assert_eq!(info.api_path(), "/apis/apps/v1");
    assert_eq!(Pod::info().api_path(), "/api/v1");
}

#[tokio::test]
async fn point_13_the_newest_served_version_is_used() {
    let fixture = Fixture::start().await;
    // A real server 1.20 serves CronJobs only in batch/v1beta1.
    let jobs = fixture.view::<CronJob>();
    let made = jobs
        .create(&json!({"metadata": {"name": "a"}, "spec": {
            "schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "image"}],
            }}}},
        }}))
        .await
        .unwrap();
    let schedule: Option<String> = made.field(&["spec", "schedule"]).unwrap();
    assert_eq!(schedule.as_deref(), Some("0 0 1 1 *"));
    let served = fixture
        .test
        .old_or_new("batch/v1beta1", "batch/v1", "CronJobs were in v1beta1");
    assert_eq!(made.raw().unwrap()["apiVersion"], served);
    assert_eq!(jobs.list().await.unwrap().items.len(), 1);
    assert!(jobs.find("none").await.unwrap().is_none());
}

#[tokio::test]
async fn point_13_an_unserved_kind_is_an_error() {
    let fixture = Fixture::start().await;
    let refused = fixture.cluster.kind("shoes.example.com").await;
    let text = invalid(refused);
    assert!(text.contains("has no kind \"shoes.example.com\""), "{text}");
}

#[tokio::test]
async fn point_14_iteration_returns_every_item_once() {
    let fixture = Fixture::start().await;
    for i in 0..7 {
        fixture.config_map(&format!("m{i}")).await;
    }
    let view = fixture.view::<ConfigMap>().filter("called").unwrap();
    let names = |items: Vec<longshore::client::Item<ConfigMap>>| {
        let names: Vec<String> = items.iter().map(|item| item.name().to_owned()).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 7, "{names:?}");
    };
    names(view.list().await.unwrap().into_iter().collect());
    let streamed: Vec<_> = view.stream().collect().await;
    names(streamed.into_iter().map(Result::unwrap).collect());
}

#[tokio::test]
async fn point_15_fetch_uses_the_views_namespace() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    assert_eq!(fixture.view::<ConfigMap>().fetch("a").await.unwrap(), map);
    let global = fixture.cluster.configmaps();
    assert_eq!(
        misplaced(global.fetch("a").await),
        "configmap \"a\" needs a namespace: take the view with in_namespace()"
    );
    let gone = fixture.view::<ConfigMap>().fetch("b").await.unwrap_err();
    assert!(gone.is_not_found(), "{gone}");
    for name in ["", "a/b", "..", "."] {
        let refused = invalid(fixture.view::<ConfigMap>().fetch(name).await);
        assert_eq!(refused, format!("{name:?} is not the name of a configmap"));
    }
    assert!(
        fixture
            .cluster
            .view::<Node>()
            .find("none")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn point_16_filters_by_labels_and_fields() {
    let fixture = Fixture::start().await;
    for name in ["a", "b", "c"] {
        fixture.config_map(name).await;
    }
    let names = async |view: longshore::client::View<ConfigMap>| {
        let list = view.list().await.unwrap();
        let names: Vec<String> = list
            .items
            .iter()
            .map(|item| item.name().to_owned())
            .collect();
        names.concat()
    };
    let view = fixture.view::<ConfigMap>();
    assert_eq!(names(view.clone().filter("called=a").unwrap()).await, "a");
    assert_eq!(
        names(view.clone().filter("called in (a, c)").unwrap()).await,
        "ac"
    );
    assert_eq!(
        names(view.clone().filter("called,called!=b").unwrap()).await,
        "ac"
    );
    let exact = LabelSelector::exactly([("called", "b")]).unwrap();
    assert_eq!(names(view.clone().labels(exact)).await, "b");
    let by_field = FieldSelector::everything().with("metadata.name", "c");
    assert_eq!(names(view.clone().fields(by_field.clone())).await, "c");
    assert_eq!(
        names(view.clone().filter("called=a").unwrap().fields(by_field)).await,
        ""
    );
    for empty in ["", "  "] {
        assert_eq!(
            invalid(view.clone().filter(empty)),
            "an empty label selector selects everything: leave the filter out"
        );
    }
    let unreadable = invalid(view.filter("called in a"));
    assert!(
        unreadable.starts_with("invalid selector \"called in a\""),
        "{unreadable}"
    );
}
