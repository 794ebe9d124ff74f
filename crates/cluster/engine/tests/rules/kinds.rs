//! Validation of each kind, and its messages.

use crate::support::{api, job, pod, status};
use serde_json::{Value, json};

async fn rejection(plural: &str, object: Value) -> String {
    let (code, reason, message) = status(api().create(plural, object).await);
    assert_eq!((code, &*reason), (422, "Invalid"), "{message}");
    message
}

#[tokio::test]
async fn a_pod_without_containers_is_invalid() {
    let message = rejection("pods", json!({"metadata": {"name": "x"}, "spec": {}})).await;
    assert_eq!(
        message,
        r#"Pod "x" is invalid: spec.containers: Required value"#
    );
    let api = api();
    let sent = json!({"metadata": {"name": "x"}, "spec": {}});
    let details = api
        .create("pods", sent)
        .await
        .unwrap_err()
        .status()
        .details
        .unwrap();
    assert_eq!((&*details.kind, &*details.name), ("Pod", "x"));
    let cause = &details.causes[0];
    assert_eq!(
        (&*cause.reason, &*cause.field, &*cause.message),
        ("FieldValueRequired", "spec.containers", "Required value")
    );
}

#[tokio::test]
async fn several_causes_are_joined_in_brackets() {
    let containers = json!([{"name": "a"}, {"name": "a", "image": "i"}]);
    let message = rejection(
        "pods",
        json!({"metadata": {"name": "x"}, "spec": {"containers": containers}}),
    )
    .await;
    assert_eq!(
        message,
        r#"Pod "x" is invalid: [spec.containers[0].image: Required value, spec.containers[1].name: Duplicate value: "a"]"#
    );
}

#[tokio::test]
async fn names_are_checked_by_kind() {
    for (plural, name, ok) in [
        ("pods", "a.b", true),
        ("pods", "A", false),
        ("namespaces", "a.b", false),
        ("services", "1a", true),
        ("services", "1.a", false),
        ("configmaps", "1a", true),
    ] {
        let object = match plural {
            "pods" => pod(name),
            "services" => json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}}),
            _ => json!({"metadata": {"name": name}}),
        };
        assert_eq!(
            api().create(plural, object).await.is_ok(),
            ok,
            "{plural} {name}"
        );
    }
    let message = rejection("pods", pod("A")).await;
    assert!(message.starts_with(r#"Pod "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must"#), "{message}");
}

#[tokio::test]
async fn updates_of_pods_may_change_images_and_little_else() {
    let api = api();
    api.create("pods", pod("a")).await.unwrap();
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    let changed = api.merge("pods", "a", image).await.unwrap().value();
    assert_eq!(changed["spec"]["containers"][0]["image"], "i:2");
    let host = json!({"spec": {"hostname": "other"}});
    let (code, _, message) = status(api.merge("pods", "a", host).await);
    assert_eq!(code, 422);
    assert!(
        message.starts_with(
            r#"Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than"#
        ),
        "{message}"
    );
    let more =
        json!({"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}});
    let (_, _, message) = status(api.merge("pods", "a", more).await);
    assert_eq!(
        message,
        r#"Pod "a" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers"#
    );
}

#[tokio::test]
async fn a_job_must_not_restart_always() {
    let mut always = job("j");
    always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(
        rejection("jobs", always).await,
        r#"Job.batch "j" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#
    );
}

#[tokio::test]
async fn an_indexed_job_needs_completions() {
    let mut indexed = job("j");
    indexed["spec"]["completionMode"] = json!("Indexed");
    indexed["spec"]["parallelism"] = json!(2);
    assert_eq!(
        rejection("jobs", indexed).await,
        r#"Job.batch "j" is invalid: spec.completions: Required value: when completion mode is Indexed"#
    );
}

#[tokio::test]
async fn a_jobs_selector_and_template_are_immutable() {
    let api = api();
    let made = api.create("jobs", job("j")).await.unwrap();
    let uid = made.uid();
    let value = made.value();
    let labels = &value["spec"]["template"]["metadata"]["labels"];
    for (key, expected) in [
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", "j"),
        ("controller-uid", uid),
        ("job-name", "j"),
    ] {
        assert_eq!(labels[key], expected);
    }
    // The original manifest lacks the selector that the server generated.
    let (code, _, message) = status(api.update("jobs", "j", job("j")).await);
    assert_eq!(code, 422);
    assert!(
        message.contains("spec.selector: Required value"),
        "{message}"
    );
    for change in [
        json!({"spec": {"completions": 5}}),
        json!({"spec": {"completionMode": "Indexed"}}),
        json!({"spec": {"template": {"spec": {"hostname": "h"}}}}),
    ] {
        let (code, _, message) = status(api.merge("jobs", "j", change).await);
        assert_eq!(code, 422);
        assert!(message.contains("field is immutable"), "{message}");
    }
    assert!(
        api.merge("jobs", "j", json!({"spec": {"suspend": true}}))
            .await
            .is_ok()
    );
    let mut mine = job("k");
    mine["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    assert_eq!(status(api.create("jobs", mine).await).0, 422);
}

#[tokio::test]
async fn each_service_gets_its_own_address() {
    let api = api();
    let service =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let mut seen = std::collections::HashSet::new();
    for name in ["a", "b", "c"] {
        let value = api.create("services", service(name)).await.unwrap().value();
        let address: std::net::Ipv4Addr = value["spec"]["clusterIP"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            address.octets()[0] == 127 && (8..16).contains(&address.octets()[1]),
            "{address}"
        );
        assert_eq!(value["spec"]["clusterIPs"], json!([address.to_string()]));
        assert!(seen.insert(address));
    }
    let taken = seen.iter().next().unwrap().to_string();
    let mut wants = service("d");
    wants["spec"]["clusterIP"] = json!(taken);
    let (code, _, message) = status(api.create("services", wants).await);
    assert_eq!(code, 422);
    assert!(
        message.contains("provided IP is already allocated"),
        "{message}"
    );
    let moved = json!({"spec": {"clusterIP": "127.9.9.9", "clusterIPs": ["127.9.9.9"]}});
    let (_, _, message) = status(api.merge("services", "a", moved).await);
    assert!(message.contains("may not change once set"), "{message}");
    // An update without the address keeps it.
    let before = api.get("services", "a").unwrap();
    let same = api.update("services", "a", service("a")).await.unwrap();
    assert_eq!(same.revision(), before.revision());
}

#[tokio::test]
async fn a_service_that_becomes_external_loses_its_addresses() {
    let api = api();
    let service = json!({"metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}], "selector": {"a": "b"}}});
    api.create("services", service).await.unwrap();
    let external = json!({"spec": {"type": "ExternalName", "externalName": "a.example"}});
    let spec = api.merge("services", "s", external).await.unwrap().value()["spec"].clone();
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(spec[field], json!(null), "{field}");
    }
    assert_eq!(spec["ports"][0]["nodePort"], json!(null));
    let back = json!({"spec": {"type": "ClusterIP", "externalName": null}});
    let spec = api.merge("services", "s", back).await.unwrap().value()["spec"].clone();
    assert!(spec["clusterIP"].is_string());
}

#[tokio::test]
async fn a_headless_service_has_no_address_and_node_ports_differ() {
    let api = api();
    let headless =
        json!({"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}});
    let value = api.create("services", headless).await.unwrap().value();
    assert_eq!(value["spec"]["clusterIPs"], json!(["None"]));
    let mut ports = Vec::new();
    for name in ["a", "b"] {
        let service = json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
        let value = api.create("services", service).await.unwrap().value();
        ports.push(value["spec"]["ports"][0]["nodePort"].as_i64().unwrap());
    }
    assert!(
        ports[0] != ports[1] && ports.iter().all(|port| (30_000..=32_767).contains(port)),
        "{ports:?}"
    );
}

#[tokio::test]
async fn secrets_accept_string_data_and_data_must_be_base64() {
    let api = api();
    let sent = json!({"metadata": {"name": "s"}, "stringData": {"a": "x"}, "data": {"b": "eQ=="}});
    let value = api.create("secrets", sent).await.unwrap().value();
    assert_eq!(value["data"], json!({"a": "eA==", "b": "eQ=="}));
    assert_eq!(value["type"], "Opaque");
    assert!(value.get("stringData").is_none());
    let broken = json!({"metadata": {"name": "t"}, "data": {"a": "not base64!"}});
    assert_eq!(status(api.create("secrets", broken).await).0, 400);
    let other = json!({"type": "kubernetes.io/tls"});
    assert!(
        status(api.merge("secrets", "s", other).await)
            .2
            .contains("type: Invalid value: \"kubernetes.io/tls\": field is immutable")
    );
}

#[tokio::test]
async fn configmap_data_is_limited_and_can_be_immutable() {
    let large = json!({"metadata": {"name": "c"}, "data": {"a": "x".repeat((1 << 20) + 1)}});
    assert!(
        rejection("configmaps", large)
            .await
            .contains("Too long: may not be more than 1048576 bytes")
    );
    let keys = json!({"metadata": {"name": "c"}, "data": {"a/b": "x"}});
    assert!(
        rejection("configmaps", keys)
            .await
            .contains("data[a/b]: Invalid value: \"a/b\": a valid config key must")
    );
    let api = api();
    let fixed = json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": true});
    api.create("configmaps", fixed).await.unwrap();
    let (_, _, message) = status(
        api.merge("configmaps", "c", json!({"data": {"a": "2"}}))
            .await,
    );
    assert_eq!(
        message,
        r#"ConfigMap "c" is invalid: data: Forbidden: field is immutable when `immutable` is set"#
    );
    assert!(
        api.merge(
            "configmaps",
            "c",
            json!({"metadata": {"labels": {"a": "b"}}})
        )
        .await
        .is_ok()
    );
}

#[tokio::test]
async fn a_node_is_created_with_its_status() {
    let api = api();
    let node = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}});
    let value = api.create("nodes", node).await.unwrap().value();
    assert_eq!(value["status"]["allocatable"], json!({"cpu": "2"}));
}

#[tokio::test]
async fn labels_and_finalizers_are_checked() {
    let labels = json!({"metadata": {"name": "c", "labels": {"a b": "x", "c": "x y"}}});
    let message = rejection("configmaps", labels).await;
    assert!(
        message.contains("metadata.labels: Invalid value: \"a b\"") && message.contains("\"x y\""),
        "{message}"
    );
    let finalizers = json!({"metadata": {"name": "c", "finalizers": ["plain"]}});
    assert!(
        rejection("configmaps", finalizers)
            .await
            .contains("nor is it fully qualified")
    );
}

#[tokio::test]
async fn rule_32_pods_get_the_priority_of_their_class() {
    let api = api();
    let class = |name: &str, value: i64, default: bool| json!({"metadata": {"name": name}, "value": value, "globalDefault": default});
    let of = async |name: &str, fields: Value| {
        let mut pod = pod(name);
        let spec = pod["spec"].as_object_mut().unwrap();
        spec.extend(fields.as_object().unwrap().clone());
        let written = api.create("pods", pod).await;
        written.map(|written| {
            let spec = &written.value()["spec"];
            json!([
                spec["priority"],
                spec["priorityClassName"],
                spec["preemptionPolicy"]
            ])
        })
    };
    let preempts = "PreemptLowerPriority";
    assert_eq!(
        of("a", json!({})).await.unwrap(),
        json!([0, null, preempts])
    );
    let critical = json!({"priorityClassName": "system-node-critical"});
    assert_eq!(
        of("b", critical).await.unwrap(),
        json!([2_000_001_000, "system-node-critical", preempts])
    );
    let (code, reason, message) = status(of("c", json!({"priorityClassName": "none"})).await);
    assert_eq!((code, &*reason), (403, "Forbidden"));
    assert_eq!(
        message,
        r#"pods "c" is forbidden: no PriorityClass with name none was found"#
    );
    let (code, ..) = status(of("c", json!({"priority": 3})).await);
    assert_eq!(code, 403);
    let (code, ..) = status(of("c", json!({"preemptionPolicy": "Never"})).await);
    assert_eq!(code, 403);

    api.create("priorityclasses", class("usual", 7, true))
        .await
        .unwrap();
    assert_eq!(
        of("d", json!({})).await.unwrap(),
        json!([7, "usual", preempts])
    );
    let (code, _, message) = status(api.create("priorityclasses", class("more", 8, true)).await);
    assert_eq!(code, 403);
    assert!(
        message.contains("PriorityClass usual is already marked as default"),
        "{message}"
    );
}

#[tokio::test]
async fn pods_need_their_service_account() {
    let api = api();
    let pod = |name: &str, account: Option<&str>| {
        let mut pod = pod(name);
        pod["spec"]["serviceAccountName"] = json!(account);
        pod
    };
    let (code, reason, message) = status(api.create("pods", pod("a", Some("robot"))).await);
    assert_eq!((code, &*reason), (403, "Forbidden"));
    assert_eq!(
        message,
        r#"pods "a" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found"#
    );
    let account =
        json!({"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "registry"}]});
    api.create("serviceaccounts", account).await.unwrap();
    let spec = async |pod: Value| api.create("pods", pod).await.unwrap().value()["spec"].clone();
    let made = spec(pod("a", Some("robot"))).await;
    assert_eq!(made["imagePullSecrets"], json!([{"name": "registry"}]));
    let mut own = pod("b", Some("robot"));
    own["spec"]["imagePullSecrets"] = json!([{"name": "mine"}]);
    assert_eq!(
        spec(own).await["imagePullSecrets"],
        json!([{"name": "mine"}])
    );
    let made = spec(pod("c", None)).await;
    assert_eq!(
        (&made["serviceAccountName"], &made["imagePullSecrets"]),
        (&json!("default"), &json!(null))
    );
}

#[tokio::test]
async fn mirror_pods_use_no_accounts_and_no_secrets() {
    let api = api();
    let mirror = |name: &str, annotation: &str, spec: &Value| {
        let mut pod = pod(name);
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": annotation});
        pod["spec"]["nodeName"] = "n".into();
        let fields = spec.as_object().unwrap().clone();
        pod["spec"].as_object_mut().unwrap().extend(fields);
        pod
    };
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = "v".into();
        json!({"volumes": [volume]})
    };
    let variable = |reference: Value| {
        let env = json!([{"name": "E", "valueFrom": reference}]);
        json!({"initContainers": [{"name": "b", "image": "i", "env": env}]})
    };
    let accounts = "a mirror pod may not reference service accounts";
    let secrets = "a mirror pod may not reference secrets";
    let tokens = "a mirror pod may not use ServiceAccountToken volume projections";
    let token = json!({"serviceAccountToken": {"path": "t"}});
    for (annotation, spec, reason) in [
        ("x", json!({"serviceAccountName": "default"}), accounts),
        ("", json!({"serviceAccountName": "default"}), accounts),
        ("x", json!({"serviceAccount": "default"}), accounts),
        // The account is checked before all other fields of the pod.
        ("x", json!({"serviceAccountName": "Not OK"}), accounts),
        (
            "x",
            json!({"serviceAccountName": "none", "restartPolicy": "Sometimes"}),
            accounts,
        ),
        (
            "x",
            json!({"serviceAccountName": "none", "priorityClassName": "none"}),
            accounts,
        ),
        (
            "x",
            json!({"serviceAccountName": "none", "imagePullSecrets": [{"name": "s"}]}),
            accounts,
        ),
        ("x", json!({"imagePullSecrets": [{"name": "s"}]}), secrets),
        (
            "x",
            variable(json!({"secretKeyRef": {"name": "s", "key": "k", "optional": true}})),
            secrets,
        ),
        ("x", volume(json!({"secret": {"secretName": "s"}})), secrets),
        (
            "x",
            volume(json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}})),
            secrets,
        ),
        (
            "x",
            volume(json!({"projected": {"sources": [token, {"secret": {"name": "s"}}]}})),
            secrets,
        ),
        (
            "x",
            volume(json!({"projected": {"sources": [token]}})),
            tokens,
        ),
    ] {
        let (code, found, message) =
            status(api.create("pods", mirror("m", annotation, &spec)).await);
        assert_eq!((code, &*found), (403, "Forbidden"), "{spec}");
        assert_eq!(
            message,
            format!("pods \"m\" is forbidden: {reason}"),
            "{spec}"
        );
    }
    for (name, spec) in [
        ("a", json!({"serviceAccountName": ""})),
        ("b", json!({"imagePullSecrets": [{}]})),
        ("c", volume(json!({"configMap": {"name": "c"}}))),
        (
            "d",
            volume(json!({"persistentVolumeClaim": {"claimName": "c"}})),
        ),
        (
            "e",
            variable(json!({"configMapKeyRef": {"name": "c", "key": "k"}})),
        ),
        ("f", json!({"automountServiceAccountToken": true})),
        ("g", volume(json!({"csi": {"driver": "d"}}))),
    ] {
        let made = api.create("pods", mirror(name, "x", &spec)).await.unwrap();
        assert_eq!(
            made.value()["spec"]["serviceAccountName"],
            json!(null),
            "{spec}"
        );
    }
}

#[tokio::test]
async fn new_pods_have_the_volume_of_their_service_account_unless_it_is_unwanted() {
    const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let api = api();
    for (name, automount) in [("mounts", true), ("opts-out", false)] {
        let account =
            json!({"metadata": {"name": name}, "automountServiceAccountToken": automount});
        api.create("serviceaccounts", account).await.unwrap();
    }
    let (yes, no, unset) = (json!(true), json!(false), json!(null));
    for (at, (account, own, has_volume)) in [
        ("default", &unset, true),
        ("mounts", &unset, true),
        ("opts-out", &unset, false),
        ("default", &yes, true),
        ("opts-out", &yes, true),
        ("default", &no, false),
        ("mounts", &no, false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut new = pod(&format!("p{at}"));
        new["spec"]["serviceAccountName"] = account.into();
        new["spec"]["automountServiceAccountToken"] = own.clone();
        let made = api.create("pods", new).await.unwrap().value();
        let spec = &made["spec"];
        let mount = &spec["containers"][0]["volumeMounts"][0];
        assert_eq!(
            mount["mountPath"] == PATH,
            has_volume,
            "{account} {own}: {spec}"
        );
        let volume = &spec["volumes"][0];
        assert_eq!(volume["name"], mount["name"]);
        let owned = made["metadata"]["managedFields"].to_string();
        assert!(!owned.contains("kube-api-access"), "{owned}");
        if has_volume {
            let name = volume["name"].as_str().unwrap();
            let suffix = name.strip_prefix("kube-api-access-").unwrap();
            assert_eq!(suffix.len(), 5);
            assert_eq!(volume["projected"]["defaultMode"], 420);
        }
    }
    let mut mirror = pod("mirror");
    mirror["spec"]["automountServiceAccountToken"] = unset;
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let made = api.create("pods", mirror).await.unwrap().value();
    assert!(made["spec"]["volumes"].is_null(), "{made}");
}

#[tokio::test]
async fn an_update_of_tolerations_keeps_those_of_node_problems() {
    let api = api();
    api.create("pods", pod("p")).await.unwrap();
    let own = json!({"key": "mine", "operator": "Exists", "effect": "NoSchedule"});
    let patch = json!({"spec": {"tolerations": [own]}});
    let changed = api.merge("pods", "p", patch).await.unwrap().value();
    let tolerations = changed["spec"]["tolerations"].as_array().unwrap();
    let keys: Vec<&str> = tolerations
        .iter()
        .map(|toleration| toleration["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "mine",
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable"
        ]
    );
}

#[tokio::test]
async fn a_stateful_set_may_keep_all_revisions_but_has_no_negative_counts() {
    let set = |field: &str| {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]});
        let selector = json!({"matchLabels": {"a": "b"}});
        let mut set = json!({"metadata": {"name": "s"},
            "spec": {"serviceName": "s", "selector": selector, "template": template}});
        set["spec"][field] = json!(-1);
        set
    };
    let api = api();
    let kept = api.create("statefulsets", set("revisionHistoryLimit"));
    assert_eq!(
        kept.await.unwrap().value()["spec"]["revisionHistoryLimit"],
        -1
    );
    for field in ["replicas", "minReadySeconds"] {
        assert_eq!(
            rejection("statefulsets", set(field)).await,
            format!(
                r#"StatefulSet.apps "s" is invalid: spec.{field}: Invalid value: -1: must be greater than or equal to 0"#
            )
        );
    }
}
