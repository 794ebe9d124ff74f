//! DaemonSets.

use std::collections::BTreeSet;

use longshore_client::{DeleteOptions, Patch, Propagation, kinds::DaemonSet};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

fn template(value: &str) -> Value {
    let mut container = crate::fixture::container();
    container["env"] = json!([{"name": "V", "value": value}]);
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}})
}

async fn add_node(fixture: &Fixture, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    fixture.cluster.nodes().create(&node).await.unwrap();
    let patch = Patch::merge(json!({"status": {
        "allocatable": {"cpu": "100", "memory": "1Ti", "pods": "1000"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }}));
    let nodes = fixture.cluster.nodes();
    nodes.patch_status(name, &patch).await.unwrap();
}

async fn patch_node(fixture: &Fixture, name: &str, patch: Value) {
    let patch = Patch::merge(patch);
    fixture.cluster.nodes().patch(name, &patch).await.unwrap();
}

async fn with_nodes(names: &[&str]) -> Fixture {
    let fixture = Fixture::start().await;
    for name in names {
        add_node(&fixture, name).await;
    }
    fixture
}

async fn create(fixture: &Fixture, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    if spec["template"].is_null() {
        spec["template"] = template("1");
    }
    let web = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec,
    });
    fixture.cluster.create(&web, None).await.unwrap();
}

fn sets(fixture: &Fixture) -> longshore_client::View<DaemonSet> {
    let sets = fixture.cluster.daemonsets();
    sets.in_namespace("default").unwrap()
}

async fn change(fixture: &Fixture, spec: Value) {
    let patch = Patch::merge(json!({"spec": spec}));
    sets(fixture).patch("web", &patch).await.unwrap();
}

async fn web(fixture: &Fixture) -> Value {
    sets(fixture).fetch("web").await.unwrap().raw().unwrap()
}

/// Waits until `kubectl rollout status` would report success with this number of nodes.
async fn done(fixture: &Fixture, nodes: usize) -> Value {
    until("the rollout", async || {
        fixture.end_pods(|_| None).await;
        fixture.make_pods_ready().await;
        let web = web(fixture).await;
        let status = &web["status"];
        let mut counts = [
            "desiredNumberScheduled",
            "updatedNumberScheduled",
            "numberAvailable",
        ]
        .iter();
        let done = counts.all(|field| status[field].as_u64() == Some(nodes as u64))
            && status["observedGeneration"] == web["metadata"]["generation"]
            && fixture.pods().await.len() == nodes;
        done.then_some(web)
    })
    .await
}

/// The nodes of the pods, and the values of their environment.
async fn pods(fixture: &Fixture) -> BTreeSet<(String, String)> {
    let pods = fixture.pods().await;
    let pods = pods.iter().map(|pod| {
        let spec = &pod.raw().unwrap()["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&spec["nodeName"]),
            text(&spec["containers"][0]["env"][0]["value"]),
        )
    });
    pods.collect()
}

fn pairs(list: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    list.iter()
        .map(|(node, value)| ((*node).to_owned(), (*value).to_owned()))
        .collect()
}

async fn revisions(fixture: &Fixture) -> Vec<Value> {
    let view = fixture.cluster.controllerrevisions();
    let items = view.in_namespace("default").unwrap().list().await.unwrap();
    let mut all: Vec<Value> = items.items.iter().map(|item| item.raw().unwrap()).collect();
    all.sort_by_key(|revision| revision["revision"].as_i64());
    all
}

#[tokio::test]
async fn each_node_gets_a_pod_and_a_rollback_reuses_the_revision() {
    let fixture = with_nodes(&["m", "n"]).await;
    create(&fixture, json!({})).await;
    let first = done(&fixture, 2).await;
    assert_eq!(pods(&fixture).await, pairs(&[("m", "1"), ("n", "1")]));
    assert_eq!(
        first["status"],
        json!({
            "currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberAvailable": 2,
            "numberMisscheduled": 0, "numberReady": 2, "observedGeneration": 1,
            "updatedNumberScheduled": 2,
        })
    );
    let history = revisions(&fixture).await;
    let pod = fixture.pods().await[0].raw().unwrap();
    assert_eq!(
        pod["metadata"]["labels"],
        json!({
            "app": "web", "pod-template-generation": "1",
            "controller-revision-hash":
                history[0]["metadata"]["labels"]["controller-revision-hash"],
        })
    );
    add_node(&fixture, "o").await;
    done(&fixture, 3).await;

    change(&fixture, json!({"template": template("2")})).await;
    done(&fixture, 3).await;
    assert_eq!(
        pods(&fixture).await,
        pairs(&[("m", "2"), ("n", "2"), ("o", "2")])
    );
    let history = revisions(&fixture).await;
    assert_eq!(
        (&history[0]["revision"], &history[1]["revision"]),
        (&json!(1), &json!(2))
    );
    // Like `kubectl rollout undo`: applies the data of the old revision.
    let patch = Patch::strategic(history[0]["data"].clone());
    sets(&fixture).patch("web", &patch).await.unwrap();
    done(&fixture, 3).await;
    assert_eq!(
        pods(&fixture).await,
        pairs(&[("m", "1"), ("n", "1"), ("o", "1")])
    );
    let after = revisions(&fixture).await;
    assert_eq!(after.len(), 2);
    assert_eq!(after[1]["revision"], 3);
    assert_eq!(after[1]["metadata"]["name"], history[0]["metadata"]["name"]);
    until("events", async || {
        let created = fixture.events("web", "SuccessfulCreate").await;
        let deleted = fixture.events("web", "SuccessfulDelete").await;
        let both = created
            .iter()
            .any(|text| text.starts_with("Created pod: web-"))
            && deleted
                .iter()
                .any(|text| text.starts_with("Deleted pod: web-"));
        both.then_some(())
    })
    .await;
}

#[tokio::test]
async fn selectors_and_taints_decide_where_pods_run() {
    let fixture = with_nodes(&["m", "n", "o"]).await;
    let mut pods_on_ssd = template("1");
    pods_on_ssd["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    let label = json!({"metadata": {"labels": {"disk": "ssd"}}});
    patch_node(&fixture, "m", label.clone()).await;
    create(&fixture, json!({"template": pods_on_ssd})).await;
    done(&fixture, 1).await;
    patch_node(&fixture, "n", label).await;
    done(&fixture, 2).await;
    patch_node(
        &fixture,
        "m",
        json!({"metadata": {"labels": {"disk": null}}}),
    )
    .await;
    done(&fixture, 1).await;
    assert_eq!(pods(&fixture).await, pairs(&[("n", "1")]));
    // Pods run on nodes that are cordoned.
    patch_node(
        &fixture,
        "o",
        json!({
            "metadata": {"labels": {"disk": "ssd"}}, "spec": {"unschedulable": true},
        }),
    )
    .await;
    done(&fixture, 2).await;
    // A taint keeps new pods away, another one also removes those that run.
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "effect": effect}]}});
    patch_node(&fixture, "n", taint("NoSchedule")).await;
    until("misscheduled", async || {
        let status = web(&fixture).await["status"].clone();
        (status["numberMisscheduled"] == 1 && status["desiredNumberScheduled"] == 1).then_some(())
    })
    .await;
    assert_eq!(fixture.pods().await.len(), 2);
    patch_node(&fixture, "n", taint("NoExecute")).await;
    done(&fixture, 1).await;
    assert_eq!(pods(&fixture).await, pairs(&[("o", "1")]));
}

#[tokio::test]
async fn surge_and_a_restart_in_the_middle() {
    let mut fixture = with_nodes(&["m", "n"]).await;
    let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    create(
        &fixture,
        json!({"updateStrategy": strategy, "revisionHistoryLimit": 0}),
    )
    .await;
    done(&fixture, 2).await;
    change(&fixture, json!({"template": template("2")})).await;
    until("a third pod", async || {
        (fixture.pods().await.len() == 3).then_some(())
    })
    .await;
    fixture.stop_controllers().await;
    fixture.start_controllers().await;
    let last = done(&fixture, 2).await;
    assert_eq!(pods(&fixture).await, pairs(&[("m", "2"), ("n", "2")]));
    assert_eq!(last["status"]["numberUnavailable"], Value::Null);
    until("one revision", async || {
        (revisions(&fixture).await.len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn failed_pods_are_replaced() {
    let fixture = with_nodes(&["m"]).await;
    create(&fixture, json!({})).await;
    done(&fixture, 1).await;
    let pod = fixture.pods().await.remove(0);
    fixture.end_pods(|_| Some(1)).await;
    until("another pod", async || {
        fixture.end_pods(|_| None).await;
        let pods = fixture.pods().await;
        pods.first()
            .is_some_and(|other| other.uid() != pod.uid())
            .then_some(())
    })
    .await;
    let message = format!(
        "Found failed daemon pod default/{} on node m, will try to kill it",
        pod.name()
    );
    until("the event", async || {
        let events = fixture.events("web", "FailedDaemonPod").await;
        events.contains(&message).then_some(())
    })
    .await;
    done(&fixture, 1).await;
}

#[tokio::test]
async fn orphaned_pods_are_adopted_and_a_deleted_set_removes_its_pods() {
    let fixture = with_nodes(&["m", "n"]).await;
    create(&fixture, json!({})).await;
    done(&fixture, 2).await;
    let uids = async || -> BTreeSet<String> {
        let pods = fixture.pods().await;
        pods.iter().map(|pod| pod.uid().to_owned()).collect()
    };
    let before = uids().await;
    let options = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        ..DeleteOptions::default()
    };
    sets(&fixture).delete("web", &options).await.unwrap();
    until("gone", async || {
        let gone = sets(&fixture).find("web").await.unwrap();
        gone.is_none().then_some(())
    })
    .await;
    create(&fixture, json!({})).await;
    let second = done(&fixture, 2).await;
    assert_eq!(uids().await, before);
    let owner = &revisions(&fixture).await[0]["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], second["metadata"]["uid"]);
    sets(&fixture)
        .delete("web", &DeleteOptions::background())
        .await
        .unwrap();
    until("nothing", async || {
        fixture.end_pods(|_| None).await;
        let empty = fixture.pods().await.is_empty() && revisions(&fixture).await.is_empty();
        empty.then_some(())
    })
    .await;
}
