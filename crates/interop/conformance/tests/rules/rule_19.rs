//! Rule 19: field selectors.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::json;

use crate::common::{config_map, items, pod, with};

/// Asserts which objects each selector matches.
async fn find(test: &ApiTest, path: &str, table: &[(&str, &[&str])]) {
    for (selector, expected) in table {
        let encoded = selector.replace('=', "%3D").replace(',', "%2C");
        let list = test
            .get(&format!("{path}?fieldSelector={encoded}"))
            .await
            .ok();
        assert_eq!(items(&list), *expected, "{path} {selector}");
    }
}

#[tokio::test]
async fn rule_19_every_kind_supports_name_and_namespace() {
    let test = ApiTest::start().await;
    let here = test.namespace();
    let own_namespace = format!("metadata.namespace={here}");
    let both = format!("metadata.name!=a,{own_namespace}");
    for (group_version, plural) in [
        ("v1", "configmaps"),
        ("v1", "secrets"),
        ("v1", "services"),
        ("coordination.k8s.io/v1", "leases"),
    ] {
        let path = test.path(group_version, plural);
        for name in ["a", "b"] {
            let ports = json!({"ports": [{"port": 80}]});
            let mut object = json!({"metadata": {"name": name}});
            if plural == "services" {
                object["spec"] = ports;
            }
            test.create(&path, &object).await;
        }
        find(
            &test,
            &path,
            &[
                ("metadata.name=a", &["a"]),
                ("metadata.name==a", &["a"]),
                ("metadata.name!=a", &["b"]),
                ("metadata.name=none", &[]),
                ("metadata.name=", &[]),
                (&own_namespace, &["a", "b"]),
                ("metadata.namespace=default", &[]),
                (&both, &["b"]),
                ("", &["a", "b"]),
            ],
        )
        .await;
    }
    let namespaces = test.cluster_path("v1", "namespaces");
    let own = format!("metadata.name={here}");
    find(&test, &namespaces, &[(&own, &[here])]).await;
}

#[tokio::test]
async fn rule_19_pods_support_many_fields() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let other = with(
        pod("b"),
        &[
            ("/spec/nodeName", json!("node")),
            ("/spec/restartPolicy", json!("Never")),
            ("/spec/schedulerName", json!("mine")),
            ("/spec/serviceAccountName", json!("robot")),
        ],
    );
    let accounts = test.path("v1", "serviceaccounts");
    test.create(&accounts, &json!({"metadata": {"name": "robot"}}))
        .await;
    test.create(&pods, &pod("a")).await;
    test.create(&pods, &other).await;
    let status = json!({"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}});
    let one = format!("{pods}/b/status");
    test.patch(&one, PatchType::Merge, &status).await.ok();
    // Only a pod without a node may be nominated.
    let status = json!({"status": {"nominatedNodeName": "next"}});
    let one = format!("{pods}/a/status");
    test.patch(&one, PatchType::Merge, &status).await.ok();
    find(
        &test,
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
    if test.is_newer("status.podIPs and spec.hostNetwork are selectable since 1.21 and 1.29") {
        find(
            &test,
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
async fn rule_19_events_are_selected_by_the_involved_object() {
    let test = ApiTest::start().await;
    let events = test.path("v1", "events");
    let event = |name: &str, kind: &str| {
        json!({
            "metadata": {"name": name},
            "involvedObject": {
                "kind": kind, "namespace": test.namespace(), "name": "x", "uid": "u-1",
                "apiVersion": "v1", "resourceVersion": "5", "fieldPath": "spec.x",
            },
            "reason": format!("{kind}Reason"), "type": "Normal",
            "source": {"component": "test"}, "reportingComponent": format!("{kind}-reporter"),
            "reportingInstance": "i", "action": "Act",
            "message": "m",
        })
    };
    for (name, kind) in [("a", "Pod"), ("b", "Node")] {
        test.create(&events, &event(name, kind)).await;
    }
    find(
        &test,
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
            ("source=test", &["a", "b"]),
        ],
    )
    .await;
    let here = format!("involvedObject.namespace={}", test.namespace());
    find(&test, &events, &[(&here, &["a", "b"])]).await;
    if test.is_newer("reportingComponent is selectable since 1.22") {
        find(
            &test,
            &events,
            &[("reportingComponent=Pod-reporter", &["a"])],
        )
        .await;
    }
}

#[tokio::test]
async fn rule_19_other_kinds_have_their_own_fields() {
    let test = ApiTest::start().await;
    let secrets = test.path("v1", "secrets");
    test.create(&secrets, &json!({"metadata": {"name": "a"}}))
        .await;
    test.create(
        &secrets,
        &json!({"metadata": {"name": "b"}, "type": "example.com/x"}),
    )
    .await;
    find(
        &test,
        &secrets,
        &[("type=Opaque", &["a"]), ("type=example.com/x", &["b"])],
    )
    .await;

    let namespaces = test.cluster_path("v1", "namespaces");
    let own = format!("metadata.name={},status.phase=Active", test.namespace());
    let here = test.namespace();
    find(&test, &namespaces, &[(&own, &[here])]).await;
    find(
        &test,
        &namespaces,
        &[(&own.replace("Active", "Terminating"), &[])],
    )
    .await;

    let nodes = test.cluster_path("v1", "nodes");
    let (up, down) = (format!("{here}-up"), format!("{here}-down"));
    test.create(&nodes, &json!({"metadata": {"name": up}}))
        .await;
    let unschedulable = json!({"metadata": {"name": down}, "spec": {"unschedulable": true}});
    test.create(&nodes, &unschedulable).await;
    for (name, value) in [(&up, "false"), (&down, "true")] {
        let selector = format!("metadata.name={name},spec.unschedulable={value}");
        find(&test, &nodes, &[(&selector, &[name])]).await;
        let selector = format!("metadata.name={name},spec.unschedulable!={value}");
        find(&test, &nodes, &[(&selector, &[])]).await;
    }
}

#[tokio::test]
async fn rule_19_jobs_are_selected_by_successes() {
    let test = ApiTest::start().await;
    let jobs = test.path("batch/v1", "jobs");
    let template = with(
        json!({"spec": pod("a")["spec"]}),
        &[("/spec/restartPolicy", json!("Never"))],
    );
    for name in ["a", "b"] {
        let job = json!({"metadata": {"name": name}, "spec": {"template": template}});
        test.create(&jobs, &job).await;
    }
    let status = json!({"status": {"succeeded": 1, "startTime": "2026-01-02T03:04:05Z"}});
    test.patch(&format!("{jobs}/b/status"), PatchType::Merge, &status)
        .await
        .ok();
    find(
        &test,
        &jobs,
        &[
            ("status.successful=0", &["a"]),
            ("status.successful=1", &["b"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn rule_19_replication_controllers_are_selected_by_replicas() {
    let test = ApiTest::start().await;
    let template = crate::common::deployment("a")["spec"]["template"].clone();
    let path = test.path("v1", "replicationcontrollers");
    for name in ["a", "b"] {
        let object = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": "a"}, "template": template},
        });
        test.create(&path, &object).await;
    }
    let status = json!({"status": {"replicas": 3}});
    let one = format!("{path}/b/status");
    test.patch(&one, PatchType::Merge, &status).await.ok();
    find(
        &test,
        &path,
        &[("status.replicas=0", &["a"]), ("status.replicas=3", &["b"])],
    )
    .await;
    // The replicas of ReplicaSets are not selectable.
    let sets = test.path("apps/v1", "replicasets");
    let by_replicas = format!("{sets}?fieldSelector=status.replicas%3D0");
    let response = test.get(&by_replicas).await;
    response.refused(400, "BadRequest");
}

#[tokio::test]
async fn rule_19_an_unknown_field_is_a_bad_request() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    for selector in [
        "spec.colour%3Dblue",
        "data.key%3Dvalue",
        "metadata.labels%3Dx",
        "name%3Da",
    ] {
        let query = format!("{maps}?fieldSelector={selector}");
        test.get(&query).await.refused(400, "BadRequest");
        test.get(&format!("{query}&watch=1"))
            .await
            .refused(400, "BadRequest");
        test.delete(&query).await.refused(400, "BadRequest");
    }
    let message = async |plural: &str| {
        let query = format!("{}?fieldSelector=spec.x%3Dy", test.path("v1", plural));
        let status = test.get(&query).await.refused(400, "BadRequest");
        status["message"].as_str().unwrap().to_owned()
    };
    let unsupported = "field label not supported: spec.x";
    assert_eq!(message("pods").await, unsupported);
    let known = "only \"metadata.name\", \"metadata.namespace\"";
    let expected = format!("\"spec.x\" is not a known field selector: {known}");
    assert_eq!(message("configmaps").await, expected);
    test.get(&format!("{maps}/a")).await.ok();
}

#[tokio::test]
async fn rule_19_bad_syntax_is_a_bad_request() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for selector in ["metadata.name", "metadata.name%3Da%5Cx"] {
        let response = test.get(&format!("{maps}?fieldSelector={selector}")).await;
        response.refused(400, "BadRequest");
    }
    // Escaped characters are part of the value.
    let list = test
        .get(&format!("{maps}?fieldSelector=metadata.name%3Da%5C%2Cb"))
        .await;
    assert_eq!(list.ok()["items"], json!([]));
}

#[tokio::test]
async fn rule_19_deletes_and_watches_support_field_selectors() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b", "c"] {
        test.create(&maps, &config_map(name)).await;
    }
    test.delete(&format!("{maps}?fieldSelector=metadata.name!%3Db"))
        .await
        .ok();
    let (left, _) = test.list(&maps).await;
    assert_eq!(crate::common::names(&left), ["b"]);
    let mut watch = test
        .watch(&format!("{maps}?watch=1&fieldSelector=metadata.name%3Dd"))
        .await;
    test.create(&maps, &config_map("d")).await;
    watch.event_of("ADDED", "d").await;
}
