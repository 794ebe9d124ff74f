//! Rule 18: the managed fields after writes other than apply.

use longshore_engine::{Create, Object, Patch, Subresource, Target, Update, WriteOptions};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use crate::support::{Api, api, config, pod};

/// `manager operation subresource fields` of each entry.
pub(crate) fn managers(object: &Object) -> Vec<String> {
    let value = object.value();
    let entries = value["metadata"]["managedFields"].as_array().cloned();
    entries
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            assert_eq!(entry["fieldsType"], "FieldsV1");
            let word = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} {}",
                word("manager"),
                word("operation"),
                word("subresource"),
                entry["fieldsV1"]
            )
        })
        .collect()
}

pub(crate) fn by(manager: &str) -> WriteOptions {
    WriteOptions {
        field_manager: Some(manager.to_owned()),
        ..WriteOptions::default()
    }
}

async fn patch(
    api: &Api,
    plural: &str,
    part: Subresource,
    body: Value,
    manager: &str,
) -> std::sync::Arc<Object> {
    let patch = Patch {
        target: Api::target(plural, "a"),
        subresource: part,
        kind: if body.is_array() {
            PatchKind::Json
        } else {
            PatchKind::Merge
        },
        body,
        options: by(manager),
    };
    api.0.patch(patch).await.unwrap().object
}

async fn merge(api: &Api, body: Value, manager: &str) -> std::sync::Arc<Object> {
    patch(api, "configmaps", Subresource::None, body, manager).await
}

#[tokio::test]
async fn rule_18_the_creator_manages_the_fields_it_sent_and_their_defaults() {
    let api = api();
    // The creator does not manage the volume of the service account.
    let mut pod = pod("a");
    pod["spec"]["automountServiceAccountToken"] = json!(null);
    let object = api.create_with("pods", pod, by("me")).await.unwrap();
    assert_eq!(
        managers(&object.object),
        [
            r#"me Update - {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}"#
        ]
    );
    let entry = &object.object.value()["metadata"]["managedFields"][0];
    assert_eq!(entry["apiVersion"], "v1");
    assert_eq!(entry["time"], "2026-01-02T03:04:05Z");
}

#[tokio::test]
async fn rule_18_the_default_manager_is_the_user_agent_up_to_the_slash() {
    let api = api();
    for (agent, manager) in [
        (Some("kubectl/v1.34 (linux)"), "kubectl"),
        (Some("plain"), "plain"),
        (Some("/x"), "unknown"),
        (None, "unknown"),
    ] {
        let options = WriteOptions {
            user_agent: agent.map(str::to_owned),
            ..WriteOptions::default()
        };
        let mut object = config("");
        object["metadata"] = json!({"generateName": "a"});
        let written = api
            .create_with("configmaps", object, options)
            .await
            .unwrap();
        let first = managers(&written.object).remove(0);
        assert!(first.starts_with(&format!("{manager} Update")), "{first}");
    }
}

#[tokio::test]
async fn rule_18_the_writer_of_a_changed_value_is_its_only_manager() {
    let api = api();
    let object = json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "1"}});
    api.create_with("configmaps", object, by("me"))
        .await
        .unwrap();
    let object = merge(&api, json!({"data": {"a": "2", "c": "1"}}), "you").await;
    assert_eq!(
        managers(&object),
        [
            r#"me Update - {"f:data":{".":{},"f:b":{}}}"#,
            r#"you Update - {"f:data":{"f:a":{},"f:c":{}}}"#
        ]
    );
    // A removed field has no manager, and a manager without fields is removed.
    let object = merge(&api, json!({"data": {"a": null, "c": null}}), "me").await;
    assert_eq!(
        managers(&object),
        [r#"me Update - {"f:data":{".":{},"f:b":{}}}"#]
    );
}

#[tokio::test]
async fn rule_18_a_status_is_managed_under_its_subresource() {
    let api = api();
    api.create_with("pods", pod("a"), by("me")).await.unwrap();
    let body = json!({"status": {"message": "x"}, "metadata": {"labels": {"a": "b"}}});
    let object = patch(&api, "pods", Subresource::Status, body, "kubelet").await;
    assert_eq!(
        managers(&object)[0],
        r#"kubelet Update status {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:status":{"f:message":{}}}"#
    );
    // The main endpoint does not change the status, and its manager does not own the status.
    let body = json!({"status": {"message": "y"}, "metadata": {"labels": {"a": "c"}}});
    let object = patch(&api, "pods", Subresource::None, body, "you").await;
    let you = managers(&object);
    assert_eq!(
        you.iter().find(|entry| entry.starts_with("you")).unwrap(),
        r#"you Update - {"f:metadata":{"f:labels":{"f:a":{}}}}"#
    );
}

#[tokio::test]
async fn rule_1_equivalent_managed_fields_are_not_a_write() {
    let api = api();
    let first = api
        .create_with("configmaps", config("a"), by("me"))
        .await
        .unwrap()
        .object;
    let mut again = first.value();
    again["metadata"]["managedFields"][0]["time"] = json!("2020-01-01T00:00:00Z");
    let same = api.update("configmaps", "a", again).await.unwrap();
    assert_eq!(same.revision(), first.revision());
    assert_eq!(managers(&same), managers(&first));
}

#[tokio::test]
async fn rule_18_an_update_without_managed_fields_keeps_them() {
    let api = api();
    api.create_with("configmaps", config("a"), by("me"))
        .await
        .unwrap();
    let object = json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}});
    let object = api.update("configmaps", "a", object).await.unwrap();
    assert_eq!(
        managers(&object),
        [
            r#"me Update - {"f:data":{".":{},"f:a":{}}}"#,
            r#"unknown Update - {"f:data":{"f:b":{}}}"#
        ]
    );
}

#[tokio::test]
async fn rule_18_managed_fields_can_be_reset_and_set() {
    let api = api();
    for reset in [json!([{}]), json!([])] {
        api.create_with("configmaps", config("a"), by("me"))
            .await
            .unwrap();
        let object = merge(&api, json!({"metadata": {"managedFields": reset}}), "you").await;
        assert!(managers(&object).is_empty(), "{reset}");
        // After a reset, updates are not tracked.
        let object = merge(&api, json!({"data": {"z": "1"}}), "you").await;
        assert!(managers(&object).is_empty());
        api.delete("configmaps", "a").await.unwrap();
    }
    api.create_with("configmaps", config("a"), by("kubectl-client-side-apply"))
        .await
        .unwrap();
    let migrate = json!([
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "kubectl"},
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
    ]);
    let object = patch(&api, "configmaps", Subresource::None, migrate, "x").await;
    assert_eq!(
        managers(&object),
        [r#"kubectl Apply - {"f:data":{".":{},"f:a":{}}}"#]
    );
    // Invalid entries are ignored.
    let wrong = json!({"metadata": {"managedFields": [{"manager": "q", "operation": "No"}]}});
    let object = merge(&api, wrong, "x").await;
    assert!(managers(&object)[0].starts_with("kubectl Apply"));
}

#[tokio::test]
async fn rule_18_more_than_ten_update_managers_are_merged() {
    let api = api();
    api.create_with("configmaps", config("a"), by("me"))
        .await
        .unwrap();
    for number in 0..12 {
        let body = json!({"data": {format!("k{number}"): "1"}});
        merge(&api, body, &format!("m{number:02}")).await;
    }
    let object = api.get("configmaps", "a").unwrap();
    let managers = managers(&object);
    assert_eq!(managers.len(), 10);
    assert!(
        managers
            .iter()
            .any(|entry| entry.starts_with("ancient-changes Update"))
    );
}

#[tokio::test]
async fn rule_18_deletes_and_bindings_do_not_change_managed_fields() {
    let api = api();
    let mut object = pod("a");
    object["metadata"]["finalizers"] = json!(["a.b/c"]);
    let created = api.create_with("pods", object, by("me")).await.unwrap();
    api.bind("a", "n").await.unwrap();
    api.delete("pods", "a").await.unwrap();
    let object = api.get("pods", "a").unwrap();
    assert_eq!(managers(&object), managers(&created.object));
}

#[tokio::test]
async fn rule_18_the_server_manages_the_objects_it_creates() {
    let api = api();
    let namespace = api.get("namespaces", "default").unwrap();
    assert_eq!(
        managers(&namespace),
        [
            r#"kube-apiserver Update - {"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}"#
        ]
    );
}

#[tokio::test]
async fn rule_31_managed_fields_are_dropped_when_they_exceed_the_size_limit() {
    let api = api();
    let data: serde_json::Map<String, Value> = (0..14_000)
        .map(|number| (format!("key-{number:058}"), json!("v")))
        .collect();
    let object = json!({"metadata": {"name": "a"}, "data": data});
    let written = api.create_with("configmaps", object, by("me")).await;
    assert!(managers(&written.unwrap().object).is_empty());
}

#[tokio::test]
async fn rule_18_the_finalizer_of_a_namespace_manages_its_finalizers() {
    let api = api();
    let namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["a/b"]}});
    let made = api.create_with("namespaces", namespace, by("maker")).await;
    let made = made.unwrap().object;
    assert!(managers(&made)[0].contains(r#""f:spec":{"f:finalizers":{}}"#));
    let finalize = Update {
        target: Api::target("namespaces", "n"),
        subresource: Subresource::Finalize,
        object: json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["c/d"]}}),
        options: by("me"),
    };
    let done = api.0.update(finalize).await.unwrap().object;
    let managers = managers(&done);
    assert!(!managers[0].contains("f:spec"), "{managers:?}");
    assert_eq!(
        managers[1],
        r#"me Update finalize {"f:spec":{"f:finalizers":{}}}"#
    );
}

/// Patches an Event in events.k8s.io.
async fn patch_events_v1(api: &Api, body: Value, manager: &str) -> std::sync::Arc<Object> {
    let patch = Patch {
        target: Target {
            kind: api.0.find("events.k8s.io", "v1", "events").unwrap(),
            namespace: Some("default".into()),
            name: "a".into(),
        },
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body,
        options: by(manager),
    };
    api.0.patch(patch).await.unwrap().object
}

#[tokio::test]
async fn rule_28_an_event_field_has_one_manager_in_both_groups() {
    let api = api();
    let event = json!({"metadata": {"name": "a"}, "reason": "Tried", "message": "one", "count": 3,
        "source": {"component": "me"}, "type": "Normal",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}});
    api.create_with("events", event, by("core")).await.unwrap();
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let done = patch_events_v1(&api, labels, "new").await;
    assert_eq!(
        managers(&done),
        [
            r#"core Update - {"f:count":{},"f:involvedObject":{},"f:message":{},"f:reason":{},"f:source":{"f:component":{}},"f:type":{}}"#,
            r#"new Update - {"f:metadata":{"f:labels":{".":{},"f:a":{}}}}"#,
        ]
    );
}

/// The field `note` of events.k8s.io is `message` in the core group.
#[tokio::test]
async fn rule_28_a_change_through_the_other_group_takes_the_field_over() {
    let api = api();
    let create = Create {
        kind: api.0.find("events.k8s.io", "v1", "events").unwrap(),
        namespace: Some("default".into()),
        object: json!({"metadata": {"name": "a"}, "eventTime": "2026-01-02T03:04:05.678901Z",
            "reason": "Tried", "action": "Trying", "note": "one", "type": "Normal",
            "reportingController": "example.com/me", "reportingInstance": "me-1",
            "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}}),
        options: by("new"),
    };
    let made = api.0.create(create).await.unwrap().object;
    assert!(managers(&made)[0].contains(r#""f:note":{}"#));
    let patch = Patch {
        target: Api::target("events", "a"),
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body: json!({"message": "two"}),
        options: by("core"),
    };
    let done = api.0.patch(patch).await.unwrap().object;
    let after = managers(&done);
    assert_eq!(after[0], r#"core Update - {"f:message":{}}"#);
    assert!(!after[1].contains("f:note"), "{after:?}");
    assert!(after[1].contains("f:regarding"), "{after:?}");
}
