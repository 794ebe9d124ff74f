//! Points 44 to 49: features that the Python library `kube` does not have.

use std::time::Duration;

use longshore::{
    client::{
        DeleteOptions, Item, Patch,
        kinds::{ConfigMap, Deployment, Job, Pod, ReplicaSet},
        until,
    },
    embedded::FaultRule,
};
use serde_json::{Value, json};

use crate::common::{Fixture, TIMEOUT, workload};

#[tokio::test]
async fn point_44_apply_reports_conflicts() {
    let fixture = Fixture::start().await;
    let maps = fixture.view::<ConfigMap>();
    let wanted = |colour: &str| json!({"data": {"colour": colour}});
    let applied = maps
        .patch("a", &Patch::apply(wanted("red"), "painter", false))
        .await
        .unwrap();
    assert_eq!(applied.data().unwrap()["colour"], "red");
    let refused = maps
        .patch("a", &Patch::apply(wanted("blue"), "other", false))
        .await;
    let error = refused.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let conflicts = error.conflicts();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(
        (conflicts[0].field.as_str(), conflicts[0].manager.as_str()),
        (".data.colour", "painter")
    );
    let forced = maps
        .patch("a", &Patch::apply(wanted("blue"), "other", true))
        .await
        .unwrap();
    assert_eq!(forced.data().unwrap()["colour"], "blue");
    let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: '1'}}";
    let namespace = Some(fixture.namespace());
    let all = fixture
        .cluster
        .apply_manifest(text, namespace, "painter", false)
        .await
        .unwrap();
    assert_eq!(all[0].name(), "b");
    // A second apply changes nothing.
    let again = fixture
        .cluster
        .apply_manifest(text, namespace, "painter", false)
        .await
        .unwrap();
    assert_eq!(again[0].version(), all[0].version());
}

#[tokio::test]
async fn point_44_updates_are_retried_after_a_conflict() {
    let fixture = Fixture::start().await;
    fixture.config_map("a").await;
    let add = async || {
        let maps = fixture.view::<ConfigMap>();
        maps.update("a", |map| {
            let data = map.data.get_or_insert_default();
            let count = data.entry("count".to_owned()).or_default();
            *count = (count.parse().unwrap_or(0) + 1).to_string();
            Ok(())
        })
        .await
        .unwrap()
    };
    futures::join!(add(), add(), add(), add());
    let map = fixture.view::<ConfigMap>().fetch("a").await.unwrap();
    assert_eq!(map.data().unwrap()["count"], "4");
    let stale = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    let refused = fixture
        .view::<ConfigMap>()
        .replace("a", &stale)
        .await
        .unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
}

#[tokio::test]
async fn point_44_patches_of_each_type_and_dry_runs() {
    let fixture = Fixture::start().await;
    let deployments = fixture.view::<Deployment>();
    let data = json!({"metadata": {"name": "a"}, "spec": workload(1)});
    deployments.create(&data).await.unwrap();
    let containers = json!([{"name": "side", "image": "image"}]);
    let spec = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let count = async |patch: Patch| {
        let item = deployments.patch("a", &patch).await.unwrap();
        item.field::<Vec<Value>>(&["spec", "template", "spec", "containers"])
            .unwrap()
            .unwrap()
            .len()
    };
    // Only the strategic merge patch merges lists by name.
    assert_eq!(count(Patch::strategic(spec.clone())).await, 2);
    assert_eq!(count(Patch::merge(spec)).await, 1);
    let add = json!([{
        "op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "z", "image": "i"},
    }]);
    assert_eq!(count(Patch::json(add)).await, 2);
    let dry = deployments.clone().dry_run();
    let tried = dry
        .patch("a", &Patch::merge(json!({"spec": {"replicas": 7}})))
        .await
        .unwrap();
    assert_eq!(tried.spec().unwrap()["replicas"], 7);
    dry.delete("a", &DeleteOptions::default()).await.unwrap();
    assert_eq!(
        deployments.fetch("a").await.unwrap().spec().unwrap()["replicas"],
        1
    );
}

#[tokio::test]
async fn point_44_unknown_fields_are_rejected_in_strict_mode() {
    let fixture = Fixture::start().await;
    let maps = fixture.view::<ConfigMap>();
    let data = json!({"metadata": {"name": "a"}, "dtaa": {}});
    maps.clone().dry_run().create(&data).await.unwrap();
    let strict = maps.strict().create(&data).await;
    if fixture
        .test
        .is_newer("field validation requires Kubernetes 1.25")
    {
        let text = strict.unwrap_err().to_string();
        assert!(text.contains("unknown field \"dtaa\""), "{text}");
    }
}

#[tokio::test]
async fn point_44_field_managers_are_recorded() {
    let fixture = Fixture::start().await;
    let maps = fixture.view::<ConfigMap>().field_manager("keeper");
    let map = maps
        .create(&json!({"metadata": {"name": "a"}, "data": {"x": "1"}}))
        .await
        .unwrap();
    let managers: Vec<Value> = map.field(&["metadata", "managedFields"]).unwrap().unwrap();
    assert_eq!(managers[0]["manager"], "keeper");
}

#[tokio::test]
async fn point_44_status_and_scale_are_separate() {
    let fixture = Fixture::start().await;
    let data = json!({"metadata": {"name": "a"}, "spec": workload(2)});
    let deployment = fixture.view::<Deployment>().create(&data).await.unwrap();
    let scale = deployment.scale().await.unwrap();
    assert_eq!(
        (scale.wanted, scale.observed, scale.selector.as_str()),
        (2, 0, "app=x")
    );
    assert_eq!(deployment.set_scale(5).await.unwrap().wanted, 5);
    let both = json!({"spec": {"replicas": 9}, "status": {"replicas": 3}});
    let item = deployment.patch_status(&Patch::merge(both)).await.unwrap();
    assert_eq!(item.spec().unwrap()["replicas"], 5);
    assert_eq!(deployment.scale().await.unwrap().observed, 3);
    let none = fixture.view::<ConfigMap>().scale("a").await.unwrap_err();
    assert!(none.is_not_found(), "{none}");
}

#[tokio::test]
async fn point_46_a_wait_ends_when_its_condition_holds() {
    let fixture = Fixture::start().await;
    let jobs = fixture.view::<Job>();
    let mut spec = json!({"template": workload(1)["template"]});
    spec["template"]["spec"]["restartPolicy"] = "Never".into();
    let waiting = jobs.wait("a", until::finished, TIMEOUT);
    let working = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        jobs.create(&json!({"metadata": {"name": "a"}, "spec": spec}))
            .await
            .unwrap();
        let patch = |kind: &str| {
            Patch::merge(
                json!({"status": {"startTime": "2026-01-02T03:04:05Z", "conditions": [
                    {"type": kind, "status": "True", "reason": "Own", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"},
                ]}}),
            )
        };
        jobs.patch_status("a", &patch("Suspended")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        let mut both = patch("Failed");
        if fixture
            .test
            .is_newer("FailureTarget precedes Failed since 1.31")
        {
            jobs.patch_status("a", &patch("FailureTarget"))
                .await
                .unwrap();
            both = Patch::json(
                json!([{"op": "add", "path": "/status/conditions/-", "value": {
                    "type": "Failed", "status": "True", "reason": "Own", "message": "",
                    "lastTransitionTime": "2026-01-02T03:04:05Z", "lastProbeTime": "2026-01-02T03:04:05Z",
                }}]),
            );
        }
        jobs.patch_status("a", &both).await.unwrap()
    };
    let (waited, ended) = tokio::join!(waiting, working);
    let waited = waited.unwrap();
    assert_eq!(waited.version(), ended.version());
    assert!(waited.holds("Failed").unwrap());
    let gone = tokio::join!(waited.wait_gone(TIMEOUT), async {
        waited.delete(&DeleteOptions::background()).await.unwrap();
    });
    gone.0.unwrap();
}

#[tokio::test]
async fn point_46_a_timeout_reports_the_last_state() {
    let fixture = Fixture::start().await;
    let short = Duration::from_millis(200);
    let maps = fixture.view::<ConfigMap>();
    let error = maps.wait("a", |_| true, short).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "timed out after 200ms waiting for configmap a; last seen: it is not there"
    );
    let map = fixture.config_map("b").await;
    let error = map.wait_gone(short).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "timed out after 200ms waiting for configmap b to be gone; last seen: it is there"
    );
    let data = json!({"metadata": {"name": "c"}, "spec": workload(3)});
    let deployment = fixture.view::<Deployment>().create(&data).await.unwrap();
    let error = deployment.wait(until::ready, short).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("0 of 3 replicas are ready"), "{text}");
}

#[tokio::test]
async fn point_47_a_cache_follows_changes() {
    let fixture = Fixture::start().await;
    fixture.config_map("a").await;
    let cache = fixture
        .view::<ConfigMap>()
        .filter("called")
        .unwrap()
        .cache()
        .await
        .unwrap();
    assert_eq!(
        cache.get(Some(fixture.namespace()), "a").unwrap().name(),
        "a"
    );
    let mut changes = cache.subscribe();
    fixture.config_map("b").await;
    loop {
        let change = tokio::time::timeout(TIMEOUT, changes.next())
            .await
            .unwrap()
            .unwrap();
        if change.item().name() == "b" {
            break;
        }
    }
    let item = cache.get(Some(fixture.namespace()), "b").unwrap();
    assert!(
        !std::str::from_utf8(item.bytes())
            .unwrap()
            .contains("managedFields")
    );
}

#[tokio::test]
async fn point_48_owners_and_children() {
    let fixture = Fixture::start().await;
    let data = json!({"metadata": {"name": "web"}, "spec": workload(1)});
    let deployment = fixture.view::<Deployment>().create(&data).await.unwrap();
    let owned_by = |kind: &str, name: &str, uid: &str| {
        let version = if kind == "Deployment" || kind == "ReplicaSet" {
            "apps/v1"
        } else {
            "v1"
        };
        json!([{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}])
    };
    let labels = json!({"app": "x"});
    let set = fixture
        .view::<ReplicaSet>()
        .create(&json!({"metadata": {
            "name": "web-1", "labels": labels,
            "ownerReferences": owned_by("Deployment", "web", deployment.uid()),
        }, "spec": workload(1)}))
        .await
        .unwrap();
    fixture
        .test
        .create(
            &fixture.test.path("v1", "serviceaccounts"),
            &json!({"metadata": {"name": "quiet"}}),
        )
        .await;
    let pods = fixture.view::<Pod>();
    let mut of_pod = workload(1)["template"]["spec"].clone();
    of_pod["serviceAccountName"] = "quiet".into();
    of_pod["automountServiceAccountToken"] = false.into();
    let owners = owned_by("ReplicaSet", "web-1", set.uid());
    for (name, owners) in [("mine", owners), ("other", json!([]))] {
        let meta = json!({"name": name, "labels": labels, "ownerReferences": owners});
        pods.create(&json!({"metadata": meta, "spec": of_pod}))
            .await
            .unwrap();
    }
    let names = |items: Vec<Item<Pod>>| -> Vec<String> {
        items.iter().map(|item| item.name().to_owned()).collect()
    };
    assert_eq!(names(set.pods().await.unwrap()), ["mine"]);
    assert_eq!(names(deployment.pods().await.unwrap()), ["mine"]);
    assert_eq!(
        deployment.children::<ReplicaSet>().await.unwrap(),
        std::slice::from_ref(&set)
    );
    let mine = pods.fetch("mine").await.unwrap();
    let owner = mine.owner().await.unwrap().unwrap();
    assert_eq!(
        (owner.kind().gvk.kind.as_ref(), owner.uid()),
        ("ReplicaSet", set.uid())
    );
    assert!(deployment.owner().await.unwrap().is_none());
    assert!(
        pods.fetch("other")
            .await
            .unwrap()
            .owner()
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn point_48_events_of_an_item() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let events = fixture
        .cluster
        .events()
        .in_namespace(fixture.namespace())
        .unwrap();
    for (name, reason, uid) in [
        ("x", "First", map.uid()),
        ("y", "Second", map.uid()),
        ("z", "Other", "u"),
    ] {
        let second = if name == "x" { 5 } else { 6 };
        let time = format!("2026-01-02T03:04:0{second}Z");
        events
            .create(&json!({
                "metadata": {"name": name}, "reason": reason, "message": "it was so", "type": "Warning",
                "involvedObject": {"kind": "ConfigMap", "namespace": fixture.namespace(), "name": "a", "uid": uid},
                "firstTimestamp": time, "lastTimestamp": time, "count": 2,
            }))
            .await
            .unwrap();
    }
    let own = map.events().await.unwrap();
    let reasons: Vec<String> = own.iter().map(|event| event.reason().unwrap()).collect();
    assert_eq!(reasons, ["First", "Second"]);
    assert_eq!(own[0].message().unwrap(), "it was so");
    assert_eq!(
        (
            own[0].count().unwrap(),
            own[0].event_type().unwrap().as_str()
        ),
        (2, "Warning")
    );
    assert_eq!(own[0].regarding().unwrap().uid, map.uid());
}

#[tokio::test]
async fn point_49_requests_to_a_busy_server_are_retried() {
    let fixture = Fixture::start().await;
    if fixture.test.skip_on_real("fault injection") {
        return;
    }
    let server = longshore::embedded::start_server().await.unwrap();
    let maps = server
        .cluster()
        .configmaps()
        .in_namespace("default")
        .unwrap();
    let busy = || FaultRule::answer(429).retry_after(1).times(1);
    server.faults().add(busy()).unwrap();
    maps.list().await.unwrap();
    // A write is retried if the response says that the server has not processed it.
    server.faults().add(busy()).unwrap();
    maps.create(&json!({"metadata": {"name": "a"}}))
        .await
        .unwrap();
    // Other failed writes are not retried.
    server
        .faults()
        .add(FaultRule::answer(500).times(1))
        .unwrap();
    let refused = maps
        .create(&json!({"metadata": {"name": "b"}}))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Some(500));
    assert!(maps.find("b").await.unwrap().is_none());
    server.stop().await;
}
