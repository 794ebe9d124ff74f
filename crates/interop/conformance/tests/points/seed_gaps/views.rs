//! Points 16, 34, and 44: empty selectors, namespaces that terminate, and evictions.

use longshore::client::{
    DeleteOptions, FieldSelector, LabelSelector, NamespacePhase, Patch, View,
    kinds::{ConfigMap, Pod, PodDisruptionBudget},
};
use serde_json::json;

use crate::common::{Fixture, invalid};

#[tokio::test]
async fn point_16_empty_selectors_are_refused_before_any_request() {
    // No server listens there.
    let cluster = longshore::Cluster::from_url("http://127.0.0.1:1/").unwrap();
    let maps = cluster.configmaps().in_namespace("default").unwrap();
    let no_labels = LabelSelector::exactly::<String, String>([]).unwrap();
    let views: [(View<ConfigMap>, &str); 3] = [
        (maps.clone().labels(no_labels), "labels()"),
        (maps.clone().labels(LabelSelector::everything()), "labels()"),
        (maps.clone().fields(FieldSelector::everything()), "fields()"),
    ];
    for (view, method) in views {
        let text = format!("{method}: an empty selector selects every object: leave {method} out");
        // Another selector does not change this.
        for view in [view.clone(), view.filter("a=b").unwrap()] {
            let options = DeleteOptions::default();
            assert_eq!(invalid(view.list().await), text);
            assert_eq!(invalid(view.count().await), text);
            assert_eq!(invalid(view.table().await), text);
            assert_eq!(invalid(view.watch().await), text);
            assert_eq!(invalid(view.watch_since("1").await), text);
            assert_eq!(invalid(view.cache().await), text);
            assert_eq!(invalid(view.fetch("a").await), text);
            assert_eq!(invalid(view.create(&json!({})).await), text);
            assert_eq!(invalid(view.delete("a", &options).await), text);
            assert_eq!(invalid(view.delete_all(&options).await), text);
        }
    }
    invalid(maps.filter(""));
}

#[tokio::test]
async fn point_34_a_terminating_namespace_can_be_deleted_again() {
    let fixture = Fixture::start().await;
    let namespaces = fixture.cluster.namespaces();
    let hold = "example.com/hold";
    let data = json!({"metadata": {"generateName": "held-", "finalizers": [hold]}});
    let namespace = namespaces.create(&data).await.unwrap();
    namespace.delete(&DeleteOptions::default()).await.unwrap();
    let going = namespace.fetch().await.unwrap();
    assert_eq!(going.phase().unwrap(), NamespacePhase::Terminating);

    // The server's response to the second request.
    let path = ["api", "v1", "namespaces", namespace.name()];
    let again = fixture.cluster.proxy().delete(path, &[], None).await;
    let code = again.map_or_else(|error| error.code(), |_| Some(200));
    let expected = fixture.test.old_or_new(
        &[Some(200), Some(409)][..],
        &[Some(200)],
        "earlier versions answer 409 while a namespace has contents",
    );
    assert!(expected.contains(&code), "{code:?}");
    // The client does not report this as an error.
    going.delete(&DeleteOptions::default()).await.unwrap();
    let name = namespace.name();
    namespaces
        .delete(name, &DeleteOptions::default())
        .await
        .unwrap();
    // A conflict about another object is an error.
    let other = DeleteOptions {
        uid: Some("7c9e".to_owned()),
        ..DeleteOptions::default()
    };
    assert!(going.delete(&other).await.unwrap_err().is_conflict());

    let release = Patch::merge(json!({"metadata": {"finalizers": null}}));
    going.patch(&release).await.unwrap();
}

#[tokio::test]
async fn point_44_evictions_respect_disruption_budgets() {
    let fixture = Fixture::start().await;
    if fixture
        .test
        .skip_on_old("evictions in policy/v1 require Kubernetes 1.22")
    {
        return;
    }
    let pods = fixture.view::<Pod>();
    let create = async |name: &str| {
        let spec = json!({
            "nodeName": "none", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "image"}],
        });
        let metadata = json!({"name": name, "labels": {"app": name}});
        pods.create(&json!({"metadata": metadata, "spec": spec}))
            .await
            .unwrap();
        let ready = json!({"type": "Ready", "status": "True"});
        let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
        let patch = Patch::merge(status);
        pods.patch_status(name, &patch).await.unwrap()
    };
    let options = DeleteOptions {
        grace_seconds: Some(0),
        ..DeleteOptions::default()
    };
    // Without a PodDisruptionBudget, the eviction is allowed.
    let free = create("free").await;
    free.evict(&options).await.unwrap();
    assert!(pods.find("free").await.unwrap().is_none());
    // The pod was already deleted, so the call does nothing, as with a delete.
    pods.evict("free", &options).await.unwrap();

    let budgets = fixture.view::<PodDisruptionBudget>();
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}});
    let budget = json!({"metadata": {"name": "guard"}, "spec": spec});
    budgets.create(&budget).await.unwrap();
    create("kept").await;
    let allow = async |count: u32| {
        let status = json!({
            "observedGeneration": 1, "disruptionsAllowed": count,
            "currentHealthy": 1 + count, "desiredHealthy": 1, "expectedPods": 2,
        });
        let patch = Patch::merge(json!({"status": status}));
        budgets.patch_status("guard", &patch).await.unwrap();
    };
    allow(0).await;
    let refused = pods.evict("kept", &options).await.unwrap_err();
    assert!(refused.is_too_many_requests(), "{refused}");
    assert!(pods.find("kept").await.unwrap().is_some());
    // A dry run does not use up the budget.
    allow(1).await;
    pods.clone()
        .dry_run()
        .evict("kept", &options)
        .await
        .unwrap();
    assert!(pods.find("kept").await.unwrap().is_some());
    pods.evict("kept", &options).await.unwrap();
    assert!(pods.find("kept").await.unwrap().is_none());
}
