//! Rule 19: field selectors.

use longshore_conformance::{Judge, PatchType};
use serde_json::json;

use crate::common::{config_map, items, pod, with};

/// Asserts which objects each selector finds.
async fn find(judge: &Judge, path: &str, table: &[(&str, &[&str])]) {
    for (selector, expected) in table {
        let encoded = selector.replace('=', "%3D").replace(',', "%2C");
        let list = judge
            .get(&format!("{path}?fieldSelector={encoded}"))
            .await
            .ok();
        assert_eq!(items(&list), *expected, "{path} {selector}");
    }
}

#[tokio::test]
async fn rule_19_every_kind_has_name_and_namespace() {
    let judge = Judge::start().await;
    let here = judge.namespace();
    let in_here = format!("metadata.namespace={here}");
    let both = format!("metadata.name!=a,{in_here}");
    for (group_version, plural) in [
        ("v1", "configmaps"),
        ("v1", "secrets"),
        ("v1", "services"),
        ("coordination.k8s.io/v1", "leases"),
    ] {
        let path = judge.path(group_version, plural);
        for name in ["a", "b"] {
            let ports = json!({"ports": [{"port": 80}]});
            let mut object = json!({"metadata": {"name": name}});
            if plural == "services" {
                object["spec"] = ports;
            }
            judge.create(&path, &object).await;
        }
        find(
            &judge,
            &path,
            &[
                ("metadata.name=a", &["a"]),
                ("metadata.name==a", &["a"]),
                ("metadata.name!=a", &["b"]),
                ("metadata.name=none", &[]),
                ("metadata.name=", &[]),
                (&in_here, &["a", "b"]),
                ("metadata.namespace=default", &[]),
                (&both, &["b"]),
                ("", &["a", "b"]),
            ],
        )
        .await;
    }
    let namespaces = judge.wide("v1", "namespaces");
    let own = format!("metadata.name={here}");
    find(&judge, &namespaces, &[(&own, &[here])]).await;
}

#[tokio::test]
async fn rule_19_pods_have_many() {
    let judge = Judge::start().await;
    let pods = judge.path("v1", "pods");
    let other = with(
        pod("b"),
        &[
            ("/spec/nodeName", json!("node")),
            ("/spec/restartPolicy", json!("Never")),
            ("/spec/schedulerName", json!("mine")),
            ("/spec/serviceAccountName", json!("robot")),
        ],
    );
    judge.create(&pods, &pod("a")).await;
    judge.create(&pods, &other).await;
    let status = json!({"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}});
    let one = format!("{pods}/b/status");
    judge.patch(&one, PatchType::Merge, &status).await.ok();
    // Not for a pod that has its node.
    let status = json!({"status": {"nominatedNodeName": "next"}});
    let one = format!("{pods}/a/status");
    judge.patch(&one, PatchType::Merge, &status).await.ok();
    find(
        &judge,
        &pods,
        &[
            ("spec.nodeName=", &["a"]),
            ("spec.nodeName=node", &["b"]),
            ("spec.nodeName!=node", &["a"]),
            ("spec.restartPolicy=Always", &["a"]),
            ("spec.restartPolicy=Never", &["b"]),
            ("spec.schedulerName=default-scheduler", &["a"]),
            ("spec.schedulerName=mine", &["b"]),
            ("spec.serviceAccountName=robot", &["b"]),
            ("status.phase=Pending", &["a"]),
            ("status.phase=Running,spec.nodeName=node", &["b"]),
            ("status.podIP=10.1.2.3", &["b"]),
            ("status.podIP=", &["a"]),
            ("status.nominatedNodeName=next", &["a"]),
        ],
    )
    .await;
    if judge.newer("status.podIPs and spec.hostNetwork are selectable since 1.21 and 1.29") {
        find(
            &judge,
            &pods,
            &[
                ("spec.hostNetwork=false", &["a", "b"]),
                ("spec.hostNetwork=true", &[]),
            ],
        )
        .await;
    }
}

#[tokio::test]
async fn rule_19_events_have_what_they_are_about() {
    let judge = Judge::start().await;
    let events = judge.path("v1", "events");
    let event = |name: &str, kind: &str| {
        json!({
            "metadata": {"name": name},
            "involvedObject": {
                "kind": kind, "namespace": judge.namespace(), "name": "x", "uid": "u-1",
                "apiVersion": "v1", "resourceVersion": "5", "fieldPath": "spec.x",
            },
            "reason": format!("{kind}Reason"), "type": "Normal",
            "source": {"component": "judge"}, "reportingComponent": format!("{kind}-reporter"),
            "reportingInstance": "i", "action": "Act",
            "message": "m",
        })
    };
    for (name, kind) in [("a", "Pod"), ("b", "Node")] {
        judge.create(&events, &event(name, kind)).await;
    }
    find(
        &judge,
        &events,
        &[
            ("involvedObject.kind=Pod", &["a"]),
            ("involvedObject.kind!=Pod", &["b"]),
            ("involvedObject.name=x", &["a", "b"]),
            ("involvedObject.uid=u-1", &["a", "b"]),
            ("involvedObject.apiVersion=v1", &["a", "b"]),
            ("involvedObject.resourceVersion=5", &["a", "b"]),
            ("involvedObject.fieldPath=spec.x", &["a", "b"]),
            ("reason=NodeReason", &["b"]),
            ("type=Normal", &["a", "b"]),
            ("type=Warning", &[]),
            ("source=judge", &["a", "b"]),
        ],
    )
    .await;
    let here = format!("involvedObject.namespace={}", judge.namespace());
    find(&judge, &events, &[(&here, &["a", "b"])]).await;
    if judge.newer("reportingComponent is selectable since 1.22") {
        find(
            &judge,
            &events,
            &[("reportingComponent=Pod-reporter", &["a"])],
        )
        .await;
    }
}

#[tokio::test]
async fn rule_19_other_kinds_have_theirs() {
    let judge = Judge::start().await;
    let secrets = judge.path("v1", "secrets");
    judge
        .create(&secrets, &json!({"metadata": {"name": "a"}}))
        .await;
    judge
        .create(
            &secrets,
            &json!({"metadata": {"name": "b"}, "type": "example.com/x"}),
        )
        .await;
    find(
        &judge,
        &secrets,
        &[("type=Opaque", &["a"]), ("type=example.com/x", &["b"])],
    )
    .await;

    let namespaces = judge.wide("v1", "namespaces");
    let own = format!("metadata.name={},status.phase=Active", judge.namespace());
    let here = judge.namespace();
    find(&judge, &namespaces, &[(&own, &[here])]).await;
    find(
        &judge,
        &namespaces,
        &[(&own.replace("Active", "Terminating"), &[])],
    )
    .await;

    let nodes = judge.wide("v1", "nodes");
    let (up, down) = (format!("{here}-up"), format!("{here}-down"));
    judge
        .create(&nodes, &json!({"metadata": {"name": up}}))
        .await;
    let unschedulable = json!({"metadata": {"name": down}, "spec": {"unschedulable": true}});
    judge.create(&nodes, &unschedulable).await;
    for (name, value) in [(&up, "false"), (&down, "true")] {
        let selector = format!("metadata.name={name},spec.unschedulable={value}");
        find(&judge, &nodes, &[(&selector, &[name])]).await;
        let selector = format!("metadata.name={name},spec.unschedulable!={value}");
        find(&judge, &nodes, &[(&selector, &[])]).await;
    }
}

#[tokio::test]
async fn rule_19_jobs_by_their_successes() {
    let judge = Judge::start().await;
    let jobs = judge.path("batch/v1", "jobs");
    let template = with(
        json!({"spec": pod("a")["spec"]}),
        &[("/spec/restartPolicy", json!("Never"))],
    );
    for name in ["a", "b"] {
        let job = json!({"metadata": {"name": name}, "spec": {"template": template}});
        judge.create(&jobs, &job).await;
    }
    let status = json!({"status": {"succeeded": 1, "startTime": "2026-01-02T03:04:05Z"}});
    judge
        .patch(&format!("{jobs}/b/status"), PatchType::Merge, &status)
        .await
        .ok();
    find(
        &judge,
        &jobs,
        &[
            ("status.successful=0", &["a"]),
            ("status.successful=1", &["b"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn rule_19_replication_controllers_by_their_replicas() {
    let judge = Judge::start().await;
    let template = crate::common::deployment("a")["spec"]["template"].clone();
    let path = judge.path("v1", "replicationcontrollers");
    for name in ["a", "b"] {
        let object = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": "a"}, "template": template},
        });
        judge.create(&path, &object).await;
    }
    let status = json!({"status": {"replicas": 3}});
    let one = format!("{path}/b/status");
    judge.patch(&one, PatchType::Merge, &status).await.ok();
    find(
        &judge,
        &path,
        &[("status.replicas=0", &["a"]), ("status.replicas=3", &["b"])],
    )
    .await;
    // Those of ReplicaSets are not selectable.
    let sets = judge.path("apps/v1", "replicasets");
    let by_replicas = format!("{sets}?fieldSelector=status.replicas%3D0");
    let answer = judge.get(&by_replicas).await;
    answer.refused(400, "BadRequest");
}

#[tokio::test]
async fn rule_19_an_unknown_field_is_a_bad_request() {
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    judge.create(&maps, &config_map("a")).await;
    for selector in [
        "spec.colour%3Dblue",
        "data.key%3Dvalue",
        "metadata.labels%3Dx",
        "name%3Da",
    ] {
        let query = format!("{maps}?fieldSelector={selector}");
        judge.get(&query).await.refused(400, "BadRequest");
        judge
            .get(&format!("{query}&watch=1"))
            .await
            .refused(400, "BadRequest");
        judge.delete(&query).await.refused(400, "BadRequest");
    }
    let message = async |plural: &str| {
        let query = format!("{}?fieldSelector=spec.x%3Dy", judge.path("v1", plural));
        let status = judge.get(&query).await.refused(400, "BadRequest");
        status["message"].as_str().unwrap().to_owned()
    };
    let unsupported = "field label not supported: spec.x";
    assert_eq!(message("pods").await, unsupported);
    let known = "only \"metadata.name\", \"metadata.namespace\"";
    let expected = format!("\"spec.x\" is not a known field selector: {known}");
    assert_eq!(message("configmaps").await, expected);
    judge.get(&format!("{maps}/a")).await.ok();
}

#[tokio::test]
async fn rule_19_bad_syntax_is_a_bad_request() {
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    for selector in ["metadata.name", "metadata.name%3Da%5Cx"] {
        let answer = judge.get(&format!("{maps}?fieldSelector={selector}")).await;
        answer.refused(400, "BadRequest");
    }
    // Escaped letters are part of the value.
    let list = judge
        .get(&format!("{maps}?fieldSelector=metadata.name%3Da%5C%2Cb"))
        .await;
    assert_eq!(list.ok()["items"], json!([]));
}

#[tokio::test]
async fn rule_19_deletes_and_watches_select_as_well() {
    let judge = Judge::start().await;
    let maps = judge.path("v1", "configmaps");
    for name in ["a", "b", "c"] {
        judge.create(&maps, &config_map(name)).await;
    }
    judge
        .delete(&format!("{maps}?fieldSelector=metadata.name!%3Db"))
        .await
        .ok();
    let (left, _) = judge.list(&maps).await;
    assert_eq!(crate::common::names(&left), ["b"]);
    let mut watch = judge
        .watch(&format!("{maps}?watch=1&fieldSelector=metadata.name%3Dd"))
        .await;
    judge.create(&maps, &config_map("d")).await;
    watch.event_of("ADDED", "d").await;
}
