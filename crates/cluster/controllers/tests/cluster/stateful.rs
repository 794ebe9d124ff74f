//! StatefulSets.

use longshore_client::{DeleteOptions, Patch, Propagation, kinds::StatefulSet};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

fn template(value: &str) -> Value {
    let mut container = crate::fixture::container();
    container["env"] = json!([{"name": "V", "value": value}]);
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}})
}

async fn create(fixture: &Fixture, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    spec["serviceName"] = "web".into();
    spec["template"] = template("1");
    let web = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec,
    });
    fixture.cluster.create(&web, None).await.unwrap();
}

fn sets(fixture: &Fixture) -> longshore_client::View<StatefulSet> {
    let sets = fixture.cluster.statefulsets();
    sets.in_namespace("default").unwrap()
}

async fn change(fixture: &Fixture, spec: Value) {
    let patch = Patch::merge(json!({"spec": spec}));
    sets(fixture).patch("web", &patch).await.unwrap();
}

async fn web(fixture: &Fixture) -> Value {
    sets(fixture).fetch("web").await.unwrap().raw().unwrap()
}

/// Returns true if `kubectl rollout status` would report success.
fn is_done(web: &Value) -> bool {
    let (spec, status) = (&web["spec"], &web["status"]);
    status["observedGeneration"] == web["metadata"]["generation"]
        && status["readyReplicas"] == spec["replicas"]
        && status["replicas"] == spec["replicas"]
        && status["updateRevision"] == status["currentRevision"]
}

async fn done(fixture: &Fixture) -> Value {
    until("the rollout", async || {
        fixture.end_pods(|_| None).await;
        fixture.make_pods_ready().await;
        let web = web(fixture).await;
        is_done(&web).then_some(web)
    })
    .await
}

/// The names of the pods and the values of their environment.
async fn pods(fixture: &Fixture) -> Vec<(String, String)> {
    let pods = fixture.pods().await;
    let pods = pods.iter().map(|pod| {
        let value = &pod.raw().unwrap()["spec"]["containers"][0]["env"][0]["value"];
        (pod.name().to_owned(), value.as_str().unwrap().to_owned())
    });
    pods.collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The revisions by number.
async fn revisions(fixture: &Fixture) -> Vec<Value> {
    let view = fixture.cluster.controllerrevisions();
    let items = view.in_namespace("default").unwrap().list().await.unwrap();
    let mut all: Vec<Value> = items.items.iter().map(|item| item.raw().unwrap()).collect();
    all.sort_by_key(|revision| revision["revision"].as_i64());
    all
}

fn numbers(revisions: &[Value]) -> Vec<i64> {
    let numbers = revisions.iter();
    numbers
        .map(|revision| revision["revision"].as_i64().unwrap())
        .collect()
}

#[tokio::test]
async fn pods_start_in_order_and_a_rollback_reuses_the_revision() {
    let fixture = Fixture::with_node().await;
    create(&fixture, json!({"replicas": 2})).await;
    until("the first pod", async || {
        let pods = fixture.pods().await;
        (pods.len() == 1 && pods[0].name() == "web-0").then_some(())
    })
    .await;
    let first = done(&fixture).await;
    let status = &first["status"];
    assert_eq!(
        (&status["availableReplicas"], &status["currentReplicas"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        (&status["updatedReplicas"], &status["collisionCount"]),
        (&json!(2), &json!(0))
    );
    let pod = fixture.pods().await[1].raw().unwrap();
    assert_eq!(pod["spec"]["hostname"], "web-1");
    assert_eq!(pod["spec"]["subdomain"], "web");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({
            "app": "web", "apps.kubernetes.io/pod-index": "1",
            "controller-revision-hash": status["updateRevision"],
            "statefulset.kubernetes.io/pod-name": "web-1",
        })
    );
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("StatefulSet"), &json!(true))
    );

    change(&fixture, json!({"template": template("2")})).await;
    let second = done(&fixture).await;
    assert_eq!(
        pods(&fixture).await,
        pairs(&[("web-0", "2"), ("web-1", "2")])
    );
    let history = revisions(&fixture).await;
    assert_eq!(numbers(&history), [1, 2]);
    assert_eq!(
        history[1]["metadata"]["name"],
        second["status"]["currentRevision"]
    );

    // Like `kubectl rollout undo`: applies the data of the old revision.
    let patch = Patch::strategic(history[0]["data"].clone());
    sets(&fixture).patch("web", &patch).await.unwrap();
    let third = done(&fixture).await;
    assert_eq!(
        pods(&fixture).await,
        pairs(&[("web-0", "1"), ("web-1", "1")])
    );
    assert_eq!(
        third["status"]["currentRevision"],
        status["currentRevision"]
    );
    let history = revisions(&fixture).await;
    assert_eq!(numbers(&history), [2, 3]);
    assert_eq!(history[1]["metadata"]["name"], status["currentRevision"]);

    let expected = "Create Pod web-0 in StatefulSet web successful";
    until("events", async || {
        let created = fixture.events("web", "SuccessfulCreate").await;
        let deleted = fixture.events("web", "SuccessfulDelete").await;
        (created.iter().any(|text| text == expected) && !deleted.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn partitions_history_limits_and_a_restart_in_the_middle() {
    let mut fixture = Fixture::with_node().await;
    create(&fixture, json!({"replicas": 3, "revisionHistoryLimit": 0})).await;
    done(&fixture).await;
    let strategy = |partition: u32| json!({"rollingUpdate": {"partition": partition}});
    change(
        &fixture,
        json!({"updateStrategy": strategy(2), "template": template("2")}),
    )
    .await;
    until("the partition", async || {
        fixture.end_pods(|_| None).await;
        fixture.make_pods_ready().await;
        let status = web(&fixture).await["status"].clone();
        let done = status["updatedReplicas"] == 1 && status["readyReplicas"] == 3;
        done.then_some(())
    })
    .await;
    assert_eq!(
        pods(&fixture).await,
        pairs(&[("web-0", "1"), ("web-1", "1"), ("web-2", "2")])
    );
    fixture.stop_controllers().await;
    change(
        &fixture,
        json!({"updateStrategy": strategy(0), "replicas": 2}),
    )
    .await;
    fixture.start_controllers().await;
    done(&fixture).await;
    assert_eq!(
        pods(&fixture).await,
        pairs(&[("web-0", "2"), ("web-1", "2")])
    );
    until("one revision", async || {
        (numbers(&revisions(&fixture).await) == [2]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn failed_pods_are_replaced() {
    let fixture = Fixture::with_node().await;
    create(&fixture, json!({"replicas": 1})).await;
    done(&fixture).await;
    let uid = fixture.pods().await[0].uid().to_owned();
    fixture.end_pods(|_| Some(1)).await;
    until("another pod", async || {
        fixture.end_pods(|_| None).await;
        let pods = fixture.pods().await;
        let pod = pods.first()?;
        (pod.uid() != uid && pod.name() == "web-0").then_some(())
    })
    .await;
    done(&fixture).await;
}

#[tokio::test]
async fn claims_are_created_with_the_pods_and_deleted_by_the_policy() {
    let fixture = Fixture::with_node().await;
    let claim = json!({
        "metadata": {"name": "data", "labels": {"tier": "db"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let spec = json!({
        "replicas": 2, "podManagementPolicy": "Parallel", "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
    });
    create(&fixture, spec).await;
    let view = fixture.cluster.persistentvolumeclaims();
    let view = view.in_namespace("default").unwrap();
    let uid = web(&fixture).await["metadata"]["uid"].clone();
    let owned = async |uid: &Value| -> Vec<String> {
        let items = view.list().await.unwrap().items;
        let mine = items.iter().filter(|item| {
            let owners = &item.meta().owner_references;
            owners.iter().any(|owner| owner.uid == *uid)
        });
        mine.map(|item| item.name().to_owned()).collect()
    };
    until("owned claims", async || {
        (owned(&uid).await == ["data-web-0", "data-web-1"]).then_some(())
    })
    .await;
    let first = view.fetch("data-web-0").await.unwrap();
    assert_eq!(
        first.meta().labels,
        [
            ("app".to_owned(), "web".to_owned()),
            ("tier".to_owned(), "db".to_owned())
        ]
        .into()
    );
    let pod = fixture.pods().await[1].raw().unwrap();
    assert_eq!(
        pod["spec"]["volumes"][0],
        json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}})
    );
    let message = "Create Claim data-web-0 Pod web-0 in StatefulSet web success";
    until("the event", async || {
        let events = fixture.events("web", "SuccessfulCreate").await;
        events.iter().any(|text| text == message).then_some(())
    })
    .await;
    let left = async |names: &[&str]| {
        until("the claims that are left", async || {
            fixture.end_pods(|_| None).await;
            let items = view.list().await.unwrap().items;
            let found: Vec<&str> = items.iter().map(|item| item.name()).collect();
            // The finalizer of claims in use, which another controller removes.
            for item in items
                .iter()
                .filter(|item| item.meta().deletion_timestamp.is_some())
            {
                let patch = Patch::merge(json!({"metadata": {"finalizers": null}}));
                let _ = item.patch(&patch).await;
            }
            (found == names).then_some(())
        })
        .await;
    };
    change(&fixture, json!({"replicas": 1})).await;
    left(&["data-web-0"]).await;
    let options = DeleteOptions::background();
    sets(&fixture).delete("web", &options).await.unwrap();
    left(&[]).await;
}

#[tokio::test]
async fn orphaned_pods_and_revisions_are_adopted() {
    let fixture = Fixture::with_node().await;
    create(&fixture, json!({"replicas": 2})).await;
    let first = done(&fixture).await;
    let uids = async || -> Vec<String> {
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
    create(&fixture, json!({"replicas": 2})).await;
    let second = done(&fixture).await;
    assert_eq!(uids().await, before);
    assert_eq!(
        first["status"]["currentRevision"],
        second["status"]["currentRevision"]
    );
    let owner = &revisions(&fixture).await[0]["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], second["metadata"]["uid"]);
    // Foreground deletion removes everything.
    let options = DeleteOptions {
        propagation: Some(Propagation::Foreground),
        ..DeleteOptions::default()
    };
    sets(&fixture).delete("web", &options).await.unwrap();
    until("nothing", async || {
        fixture.end_pods(|_| None).await;
        let empty = fixture.pods().await.is_empty() && revisions(&fixture).await.is_empty();
        empty.then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_revision_of_another_owner_is_a_hash_collision() {
    let fixture = Fixture::with_node().await;
    create(&fixture, json!({"replicas": 1})).await;
    done(&fixture).await;
    let mut other = revisions(&fixture).await.remove(0);
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
    let name = other["metadata"]["name"].clone();
    other["metadata"] = json!({"name": name, "namespace": "default", "labels": {"a": "b"}});
    other["data"] = json!({"spec": {}});
    fixture.cluster.create(&other, None).await.unwrap();
    create(&fixture, json!({"replicas": 1})).await;
    let web = done(&fixture).await;
    assert_eq!(web["status"]["collisionCount"], 1);
    assert_ne!(web["status"]["currentRevision"], name);
    assert_eq!(revisions(&fixture).await.len(), 2);
}
