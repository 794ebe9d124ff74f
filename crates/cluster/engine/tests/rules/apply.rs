//! Rule 18: server-side apply.

use std::sync::Arc;

use longshore_engine::{Error, Object, Patch, Subresource, WriteOptions, Written};
use longshore_model::PatchKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    managed::{by, managers},
    support::{Api, api, config, status},
};

struct Apply<'a> {
    api: &'a Api,
    plural: &'a str,
    part: Subresource,
}

impl Apply<'_> {
    async fn with(&self, body: Value, options: WriteOptions) -> Result<Written, Error> {
        let patch = Patch {
            target: Api::target(self.plural, "a"),
            subresource: self.part,
            kind: PatchKind::Apply,
            body,
            options,
        };
        self.api.0.patch(patch).await
    }

    async fn by(&self, manager: &str, body: Value) -> Result<Arc<Object>, Error> {
        Ok(self.with(body, by(manager)).await?.object)
    }

    async fn forced(&self, manager: &str, body: Value) -> Arc<Object> {
        let options = WriteOptions {
            force: true,
            ..by(manager)
        };
        self.with(body, options).await.unwrap().object
    }
}

fn configs(api: &Api) -> Apply<'_> {
    Apply {
        api,
        plural: "configmaps",
        part: Subresource::None,
    }
}

fn data(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[tokio::test]
async fn rule_18_the_first_apply_creates_the_object() {
    let api = api();
    let written = configs(&api).with(data(json!({"x": "1"})), by("m1")).await;
    let written = written.unwrap();
    assert!(written.created);
    assert_eq!(
        managers(&written.object),
        [r#"m1 Apply - {"f:data":{"f:x":{}}}"#]
    );
    let dry = WriteOptions {
        dry_run: true,
        ..by("m2")
    };
    let version = written.object.revision();
    let dry = configs(&api).with(data(json!({"y": "1"})), dry).await;
    // Rule 13: a dry run does not produce a resource version.
    assert_eq!(dry.unwrap().object.revision(), version);
    let kept = api.get("configmaps", "a").unwrap();
    assert_eq!(kept.value()["data"], json!({"x": "1"}));
}

#[tokio::test]
async fn rule_1_an_apply_that_changes_nothing_writes_nothing() {
    let api = api();
    let first = configs(&api)
        .by("m1", data(json!({"x": "1"})))
        .await
        .unwrap();
    let again = configs(&api)
        .by("m1", data(json!({"x": "1"})))
        .await
        .unwrap();
    assert_eq!(
        (again.bytes(), api.0.revision()),
        (first.bytes(), first.revision())
    );
}

#[tokio::test]
async fn rule_18_equal_values_are_shared_and_different_ones_conflict() {
    let api = api();
    let configs = configs(&api);
    configs.by("m1", data(json!({"x": "1"}))).await.unwrap();
    let object = configs.by("m2", data(json!({"x": "1"}))).await.unwrap();
    assert_eq!(
        managers(&object),
        [
            r#"m1 Apply - {"f:data":{"f:x":{}}}"#,
            r#"m2 Apply - {"f:data":{"f:x":{}}}"#
        ]
    );
    let error = configs.by("m2", data(json!({"x": "2"}))).await.unwrap_err();
    assert_eq!(
        serde_json::to_value(error.status()).unwrap(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Apply failed with 1 conflict: conflict with \"m1\": .data.x",
            "reason": "Conflict", "code": 409,
            "details": {"causes": [{"reason": "FieldManagerConflict",
                "message": "conflict with \"m1\"", "field": ".data.x"}]}})
    );
    let error = configs.by("m3", data(json!({"x": "2"}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.x\nconflicts with \"m2\":\n- .data.x"
    );
    let object = configs.forced("m3", data(json!({"x": "2"}))).await;
    assert_eq!(managers(&object), [r#"m3 Apply - {"f:data":{"f:x":{}}}"#]);
}

#[tokio::test]
async fn rule_18_updates_have_managers() {
    let api = api();
    api.create_with("configmaps", config("a"), by("kubectl-client-side-apply"))
        .await
        .unwrap();
    let error = configs(&api).by("m1", data(json!({"a": "2"}))).await;
    assert_eq!(
        status(error).2,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.a"
    );
}

#[tokio::test]
async fn rule_18_an_omitted_field_is_removed_unless_another_manager_owns_it() {
    let api = api();
    let configs = configs(&api);
    configs
        .by("m1", data(json!({"x": "1", "y": "1", "z": "1"})))
        .await
        .unwrap();
    configs.by("m2", data(json!({"y": "1"}))).await.unwrap();
    api.merge("configmaps", "a", json!({"data": {"q": "1"}}))
        .await
        .unwrap();
    let object = configs.by("m1", data(json!({"z": "1"}))).await.unwrap();
    assert_eq!(
        object.value()["data"],
        json!({"y": "1", "z": "1", "q": "1"})
    );
    let mut nothing = data(json!({}));
    nothing.as_object_mut().unwrap().remove("data");
    let object = configs.by("m1", nothing.clone()).await.unwrap();
    assert_eq!(object.value()["data"], json!({"y": "1", "q": "1"}));
    let object = configs.by("m2", nothing).await.unwrap();
    assert_eq!(object.value()["data"], json!({"q": "1"}));
    assert_eq!(
        managers(&object),
        [r#"unknown Update - {"f:data":{"f:q":{}}}"#]
    );
}

fn pod(spec: Value) -> Value {
    let labels = json!({"app": "x"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": labels},
        "spec": spec})
}

#[tokio::test]
async fn rule_18_list_items_are_identified_by_their_keys() {
    let api = api();
    let services = Apply {
        api: &api,
        plural: "services",
        part: Subresource::None,
    };
    let service = |ports: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "spec": {"ports": ports}})
    };
    let dns = json!([{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}]);
    services.by("m1", service(dns)).await.unwrap();
    let web = json!([{"name": "web", "port": 80}]);
    let object = services.by("m2", service(web.clone())).await.unwrap();
    let ports = |object: &Object| {
        let value = object.value();
        let ports = value["spec"]["ports"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let word = |port: &Value| {
            format!("{} {} {}", port["name"], port["port"], port["protocol"]).replace('"', "")
        };
        ports.iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!(ports(&object), ["tcp 53 TCP", "udp 53 UDP", "web 80 TCP"]);
    assert_eq!(
        managers(&object)[1],
        r#"m2 Apply - {"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}"#
    );
    let udp = json!([{"name": "udp", "port": 53, "protocol": "UDP"}]);
    let object = services.by("m1", service(udp)).await.unwrap();
    assert_eq!(ports(&object), ["udp 53 UDP", "web 80 TCP"]);
}

#[tokio::test]
async fn rule_18_status_has_its_own_managers() {
    let api = api();
    let container = json!([{"name": "c", "image": "i"}]);
    let pods = |part| Apply {
        api: &api,
        plural: "pods",
        part,
    };
    let status_of = |message: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "status": {"message": message}, "spec": {"nodeName": "no"}})
    };
    let missing = pods(Subresource::Status).by("k", status_of("x")).await;
    assert_eq!(status(missing).0, 404);
    pods(Subresource::None)
        .by("m1", pod(json!({"containers": container})))
        .await
        .unwrap();
    let object = pods(Subresource::Status)
        .by("k", status_of("x"))
        .await
        .unwrap();
    assert_eq!(object.value()["status"]["message"], "x");
    assert_eq!(object.value()["spec"]["nodeName"], json!(null));
    assert_eq!(
        managers(&object).last().unwrap(),
        r#"m1 Apply - {"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}}"#
    );
    assert!(managers(&object).contains(&r#"k Apply status {"f:status":{"f:message":{}}}"#.into()));
    let conflict = pods(Subresource::Status).by("q", status_of("y")).await;
    assert_eq!(
        status(conflict).2,
        "Apply failed with 1 conflict: conflict with \"k\" with subresource \"status\": .status.message"
    );
}

#[tokio::test]
async fn rule_18_untracked_fields_get_a_manager() {
    let api = api();
    api.create("configmaps", config("a")).await.unwrap();
    api.merge(
        "configmaps",
        "a",
        json!({"metadata": {"managedFields": [{}]}}),
    )
    .await
    .unwrap();
    let error = configs(&api).by("m1", data(json!({"a": "2"}))).await;
    assert_eq!(
        status(error).2,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
    let object = configs(&api).forced("m1", data(json!({"a": "2"}))).await;
    assert_eq!(
        managers(&object),
        [
            r#"m1 Apply - {"f:data":{"f:a":{}}}"#,
            r#"before-first-apply Update - {"f:data":{}}"#
        ]
    );
}

#[tokio::test]
async fn rule_18_kubectl_takes_over_its_client_side_applied_fields() {
    let api = api();
    let last = data(json!({"x": "1", "y": "1"})).to_string();
    let mut object = data(json!({"x": "1", "y": "2"}));
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    api.create_with("configmaps", object, by("kubectl-client-side-apply"))
        .await
        .unwrap();
    let configs = configs(&api);
    let other = configs.by("m1", data(json!({"x": "9"}))).await;
    assert_eq!(status(other).0, 409);
    // `y` changed since kubectl wrote it.
    let changed = configs
        .by("kubectl", data(json!({"x": "9", "y": "9"})))
        .await;
    assert_eq!(
        status(changed).2,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.y"
    );
    let object = configs
        .by("kubectl", data(json!({"x": "9"})))
        .await
        .unwrap();
    assert_eq!(object.value()["data"], json!({"x": "9", "y": "2"}));
    let annotations = &object.value()["metadata"]["annotations"];
    let last = annotations["kubectl.kubernetes.io/last-applied-configuration"].clone();
    let last: Value = serde_json::from_str(last.as_str().unwrap()).unwrap();
    assert_eq!(last, data(json!({"x": "9"})));
}

#[tokio::test]
async fn rule_18_invalid_bodies_are_rejected() {
    let api = api();
    configs(&api)
        .by("m1", data(json!({"x": "1"})))
        .await
        .unwrap();
    let with = |path: &str, value: Value| {
        let mut body = data(json!({"x": "1"}));
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let metadata = |extra: Value| {
        let mut metadata = json!({"name": "a"});
        metadata
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        with("/metadata", metadata)
    };
    for (body, code, message) in [
        (json!([]), 400, "cannot unmarshal array"),
        (json!(null), 400, "invalid object type: /, Kind="),
        (
            with("/kind", json!("Secret")),
            400,
            "invalid object type: /v1, Kind=Secret",
        ),
        (
            with("/apiVersion", json!("v2")),
            400,
            "invalid object type: /v2, Kind=ConfigMap",
        ),
        (
            metadata(json!({"name": "b"})),
            400,
            "does not match the name on the URL (a)",
        ),
        (
            metadata(json!({"namespace": "b"})),
            400,
            "the namespace of the object (b) does not match the namespace on the request (default)",
        ),
        (
            metadata(json!({"managedFields": []})),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            metadata(json!({"managedFields": [{}]})),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            metadata(json!({"resourceVersion": "1"})),
            409,
            "the object has been modified",
        ),
        (
            with("/data/x", json!(1)),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.x: expected string",
        ),
        (
            metadata(json!({"shoes": 1})),
            500,
            ".metadata.shoes: field not declared in schema",
        ),
    ] {
        let refused = status(configs(&api).by("m2", body.clone()).await);
        assert_eq!(refused.0, code, "{body} {refused:?}");
        assert!(refused.2.contains(message), "{body} {refused:?}");
    }
    // The name may be omitted when the object exists.
    let unnamed = with("/metadata", json!({"managedFields": null}));
    configs(&api).by("m2", unnamed.clone()).await.unwrap();
    api.delete("configmaps", "a").await.unwrap();
    let refused = status(configs(&api).by("m2", unnamed).await);
    assert!(refused.2.contains("undeterminable: name must be provided"));
    let owned = status(configs(&api).by("m2", metadata(json!({"uid": "u"}))).await);
    assert_eq!(owned.0, 409, "{owned:?}");
}

fn small() -> impl Strategy<Value = Value> {
    let container = (
        "[ab]",
        prop::option::of("[xy]"),
        prop::collection::vec(("[AB]", "[12]"), 0..3),
    )
        .prop_map(|(name, image, env)| {
            let mut seen = Vec::new();
            let env: Vec<_> = env
                .into_iter()
                .filter(|(name, _)| {
                    !seen.contains(name) && {
                        seen.push(name.clone());
                        true
                    }
                })
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect();
            json!({"name": name, "image": image.unwrap_or_else(|| "z".into()), "env": env})
        });
    let labels = prop::collection::btree_map("[lm]", "[12]", 0..3);
    (prop::collection::vec(container, 0..3), labels).prop_map(|(containers, labels)| {
        let mut seen = Vec::new();
        let containers: Vec<_> = containers
            .into_iter()
            .filter(|c| {
                !seen.contains(&c["name"]) && {
                    seen.push(c["name"].clone());
                    true
                }
            })
            .collect();
        json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "a", "labels": labels},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": containers}}}}}})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Applying twice equals applying once; a forced apply sets every field that it
    /// requests; other managers keep the fields that they alone own. The owner of a map
    /// that was empty owns its entries from the next apply on, as in a real server, so
    /// ownership settles with the second apply.
    #[test]
    fn rule_18_laws_of_apply(steps in prop::collection::vec((0..3usize, small()), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let api = api();
            let jobs = Apply { api: &api, plural: "pods", part: Subresource::None };
            for (manager, job) in steps {
                let manager = ["m1", "m2", "m3"][manager];
                let spec = job["spec"]["jobTemplate"]["spec"]["template"]["spec"].clone();
                let pod = json!({"apiVersion": "v1", "kind": "Pod",
                    "metadata": job["metadata"], "spec": {
                        "containers": spec["containers"]}});
                let options = WriteOptions { force: true, ..by(manager) };
                let Ok(first) = jobs.with(pod.clone(), options.clone()).await else {
                    // The containers of a pod cannot be added or removed.
                    continue;
                };
                let value = first.object.value();
                for (name, label) in pod["metadata"]["labels"].as_object().unwrap() {
                    assert_eq!(&value["metadata"]["labels"][name], label);
                }
                let again = jobs.with(pod.clone(), options.clone()).await.unwrap();
                assert_eq!(content(&again.object), content(&first.object));
                let settled = jobs.with(pod.clone(), options).await.unwrap();
                assert_eq!(settled.object.bytes(), again.object.bytes());
                let gentle = jobs.by(manager, pod).await.unwrap();
                assert_eq!(gentle.bytes(), settled.object.bytes());
            }
        });
    }

    #[test]
    fn no_body_causes_a_panic(body in arbitrary()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let api = api();
            let pods = Apply { api: &api, plural: "pods", part: Subresource::None };
            let mut whole = json!({"apiVersion": "v1", "kind": "Pod"});
            whole["metadata"] = body["a"].clone();
            whole["spec"] = body["b"].clone();
            for body in [body, whole] {
                for manager in ["m1", "kubectl"] {
                    let result = pods.by(manager, body.clone()).await;
                    assert!(!matches!(result, Err(Error::Internal(_))), "{body}");
                }
            }
        });
    }
}

/// An object without its resource version and managed fields.
fn content(object: &Object) -> Value {
    let mut value = object.value();
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    metadata.remove("resourceVersion");
    value
}

fn arbitrary() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "[ab]",
        Just("name".to_owned()),
        Just("containers".to_owned()),
        Just("labels".to_owned()),
        Just("finalizers".to_owned()),
        Just("env".to_owned()),
        Just("ports".to_owned()),
    ];
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}
