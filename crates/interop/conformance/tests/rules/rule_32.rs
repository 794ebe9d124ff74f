//! Rule 32: defaults, required and immutable fields of the built-in kinds.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{deployment, pod, with};

/// A container with the defaults that the server sets.
fn container_defaults() -> Value {
    json!({
        "name": "main", "image": "image", "imagePullPolicy": "Always", "resources": {},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    })
}

/// The pod spec of a template with the defaults that the server sets.
fn template_defaults(restart_policy: &str) -> Value {
    json!({
        "containers": [container_defaults()],
        "dnsPolicy": "ClusterFirst", "restartPolicy": restart_policy,
        "schedulerName": "default-scheduler", "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    })
}

#[tokio::test]
async fn rule_32_a_pods_defaults() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    // An admission plugin adds the volume of the service account, which is not a default.
    let new = with(
        pod("a"),
        &[("/spec/automountServiceAccountToken", false.into())],
    );
    let made = test.create(&pods, &new).await;
    let expected = template_defaults("Always");
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(made["spec"][field], *value, "{field}");
    }
    assert_eq!(made["spec"]["enableServiceLinks"], true);
    assert_eq!(made["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(
        made["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"})
    );
    let tolerated: Vec<_> = made["spec"]["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["key"].as_str().unwrap(),
                one["tolerationSeconds"].as_i64(),
            )
        })
        .collect();
    let keys = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    assert_eq!(tolerated, keys.map(|key| (key, Some(300))));
}

#[tokio::test]
async fn rule_32_a_new_node_is_tainted_as_not_ready() {
    let test = ApiTest::start().await;
    let nodes = test.cluster_path("v1", "nodes");
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let other = json!({"key": "other", "value": "yes", "effect": "NoExecute"});
    for (name, sent, expected) in [
        ("plain", json!(null), json!([not_ready])),
        ("other", json!([other]), json!([other, not_ready])),
        ("same", json!([not_ready]), json!([not_ready])),
    ] {
        let name = format!("{}-{name}", test.namespace());
        let node = json!({"metadata": {"name": name}, "spec": {"taints": sent}});
        test.create(&nodes, &node).await;
        let path = format!("{nodes}/{name}");
        assert_eq!(test.get(&path).await.json()["spec"]["taints"], expected);
        let patch = json!({"spec": {"taints": []}});
        let response = test.patch(&path, PatchType::Merge, &patch).await;
        assert_eq!(response.json()["spec"]["taints"], json!(null));
        test.delete(&path).await;
    }
}

#[tokio::test]
async fn rule_32_a_containers_defaults() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let container = json!({
        "name": "main", "image": "image:1.2",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "resources": {"limits": {"cpu": "1"}},
    });
    let object = with(
        pod("a"),
        &[
            ("/spec/containers", json!([container])),
            (
                "/spec/volumes",
                json!([
                    {"name": "m", "configMap": {"name": "m"}},
                    {"name": "s", "secret": {"secretName": "s"}},
                    {"name": "h", "hostPath": {"path": "/x"}},
                    {"name": "e"},
                ]),
            ),
        ],
    );
    let made = test.create(&pods, &object).await;
    let main = &made["spec"]["containers"][0];
    assert_eq!(
        main["imagePullPolicy"], "IfNotPresent",
        "the image has a tag"
    );
    assert_eq!(
        main["ports"],
        json!([{"containerPort": 80, "protocol": "TCP"}])
    );
    assert_eq!(main["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    let probe = json!({
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    });
    assert_eq!(main["livenessProbe"], probe);
    let get = json!({"port": 80, "path": "/", "scheme": "HTTP"});
    assert_eq!(main["lifecycle"]["preStop"]["httpGet"], get);
    let resources = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
    assert_eq!(main["resources"], resources);
    let volumes = made["spec"]["volumes"].as_array().unwrap();
    assert_eq!(volumes[0]["configMap"]["defaultMode"], 420);
    assert_eq!(volumes[1]["secret"]["defaultMode"], 420);
    assert_eq!(volumes[2]["hostPath"]["type"], "");
    assert_eq!(volumes[3]["emptyDir"], json!({}));
    assert_eq!(made["status"]["qosClass"], "Burstable");
}

#[tokio::test]
async fn rule_32_a_jobs_defaults() {
    let test = ApiTest::start().await;
    let jobs = test.path("batch/v1", "jobs");
    let spec =
        json!({"containers": [{"name": "main", "image": "image"}], "restartPolicy": "Never"});
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}});
    let made = test.create(&jobs, &job).await;
    let uid = &made["metadata"]["uid"];
    assert_eq!(made["spec"]["parallelism"], 1);
    assert_eq!(made["spec"]["completions"], 1);
    assert_eq!(made["spec"]["backoffLimit"], 6);
    assert_eq!(made["spec"]["template"]["spec"], template_defaults("Never"));
    let labels = &made["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        (&labels["controller-uid"], &labels["job-name"]),
        (uid, &json!("a"))
    );
    if test.is_newer("the label prefix batch.kubernetes.io requires Kubernetes 1.27, completionMode and suspend require 1.21 to 1.24") {
        assert_eq!(labels["batch.kubernetes.io/controller-uid"], *uid);
        assert_eq!(labels["batch.kubernetes.io/job-name"], "a");
        let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
        assert_eq!(made["spec"]["selector"], selector);
        assert_eq!(made["spec"]["completionMode"], "NonIndexed");
        assert_eq!(made["spec"]["suspend"], false);
    }
}

#[tokio::test]
async fn rule_32_a_deployments_defaults() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let made = test.create(&path, &deployment("a")).await;
    let mut expected = json!({
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "selector": {"matchLabels": {"app": "a"}},
    });
    expected["template"] = json!({
        "metadata": {"labels": {"app": "a"}, "creationTimestamp": null},
        "spec": template_defaults("Always"),
    });
    let mut spec = made["spec"].clone();
    // Some servers include the empty timestamp of the template.
    spec["template"]["metadata"]["creationTimestamp"] = json!(null);
    assert_eq!(spec, expected);
}

#[tokio::test]
async fn rule_32_a_services_defaults() {
    let test = ApiTest::start().await;
    let services = test.path("v1", "services");
    let service = json!({
        "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "a"}},
    });
    let made = test.create(&services, &service).await;
    let spec = &made["spec"];
    assert_eq!(spec["type"], "ClusterIP");
    assert_eq!(spec["sessionAffinity"], "None");
    assert_eq!(
        spec["ports"],
        json!([{"port": 80, "protocol": "TCP", "targetPort": 80}])
    );
    let address = spec["clusterIP"].as_str().unwrap();
    assert!(address.parse::<std::net::IpAddr>().is_ok(), "{made}");
    assert_eq!(made["status"], json!({"loadBalancer": {}}));
    let headless = json!({
        "metadata": {"name": "b"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    });
    assert_eq!(
        test.create(&services, &headless).await["spec"]["clusterIP"],
        "None"
    );
}

#[tokio::test]
async fn rule_32_defaults_of_other_kinds() {
    let test = ApiTest::start().await;
    let secrets = test.path("v1", "secrets");
    let secret = json!({"metadata": {"name": "a"}, "stringData": {"k": "v"}});
    let made = test.create(&secrets, &secret).await;
    assert_eq!(
        (&made["type"], &made["data"]),
        (&json!("Opaque"), &json!({"k": "dg=="}))
    );
    assert_eq!(made.get("stringData"), None);
    let name = format!("{}-x", test.namespace());
    let namespaces = test.cluster_path("v1", "namespaces");
    let made = test
        .create(&namespaces, &json!({"metadata": {"name": name}}))
        .await;
    assert_eq!(made["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(made["status"], json!({"phase": "Active"}));
    if test.is_newer("namespaces are labelled with their name since 1.21") {
        assert_eq!(
            made["metadata"]["labels"]["kubernetes.io/metadata.name"],
            name
        );
    }
    let claims = test.path("v1", "persistentvolumeclaims");
    let claim = json!({"metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    let made = test.create(&claims, &claim).await;
    assert_eq!(made["spec"]["volumeMode"], "Filesystem");
    assert_eq!(made["status"], json!({"phase": "Pending"}));
}

#[tokio::test]
async fn rule_32_missing_required_fields_are_reported_by_path() {
    let test = ApiTest::start().await;
    let required = |field| ("FieldValueRequired", field);
    let pods = test.path("v1", "pods");
    let bare = json!({"metadata": {"name": "a"}, "spec": {"containers": [{}]}});
    let response = test.post(&pods, &bare).await;
    let status = response.refused(422, "Invalid");
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert!(fields.contains(&"spec.containers[0].name"), "{status}");
    assert!(fields.contains(&"spec.containers[0].image"), "{status}");
    let none = json!({"metadata": {"name": "a"}, "spec": {}});
    test.post(&pods, &none)
        .await
        .refused_for(422, "Invalid", &[required("spec.containers")]);
    let services = test.path("v1", "services");
    let response = test
        .post(&services, &json!({"metadata": {"name": "a"}, "spec": {}}))
        .await;
    response.refused_for(422, "Invalid", &[required("spec.ports")]);
    let deployments = test.path("apps/v1", "deployments");
    let unselected = with(deployment("a"), &[("/spec/selector", json!(null))]);
    let status = test
        .post(&deployments, &unselected)
        .await
        .refused(422, "Invalid");
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("spec.selector: Required value"),
        "{status}"
    );
    let other = with(
        deployment("a"),
        &[("/spec/selector/matchLabels", json!({"app": "b"}))],
    );
    let response = test.post(&deployments, &other).await;
    response.refused_for(
        422,
        "Invalid",
        &[("FieldValueInvalid", "spec.template.metadata.labels")],
    );
    let jobs = test.path("batch/v1", "jobs");
    let always =
        json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": pod("a")["spec"]}}});
    let status = test.post(&jobs, &always).await.refused(422, "Invalid");
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.template.spec.restartPolicy");
}

#[tokio::test]
async fn rule_32_most_pod_fields_are_immutable() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a");
    for patch in [
        json!({"spec": {"restartPolicy": "Never"}}),
        json!({"spec": {"nodeName": "other"}}),
        json!({"spec": {"containers": [{"name": "main", "command": ["x"]}]}}),
        json!({"spec": {"volumes": [{"name": "new", "emptyDir": {}}]}}),
    ] {
        let response = test.patch(&one, PatchType::Strategic, &patch).await;
        let status = response.refused(422, "Invalid");
        let cause = &status["details"]["causes"][0];
        assert_eq!(
            (&cause["reason"], &cause["field"]),
            (&json!("FieldValueForbidden"), &json!("spec")),
            "{patch}"
        );
    }
    let more = json!({"spec": {"containers": [{"name": "new", "image": "x"}]}});
    let response = test.patch(&one, PatchType::Strategic, &more).await;
    let causes = [("FieldValueForbidden", "spec.containers")];
    response.refused_for(422, "Invalid", &causes);
    // The image is mutable.
    let image = json!({"spec": {"containers": [{"name": "main", "image": "other"}]}});
    test.patch(&one, PatchType::Strategic, &image).await.ok();
    let more = json!({"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}});
    let response = test.patch(&one, PatchType::Merge, &more).await;
    assert!([200, 422].contains(&response.code));
}

#[tokio::test]
async fn rule_32_immutable_fields_cannot_be_changed() {
    let test = ApiTest::start().await;
    let spec =
        json!({"containers": [{"name": "main", "image": "image"}], "restartPolicy": "Never"});
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}});
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    let immutable = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"a": "Yg=="}});
    let labels = json!({"app": "b"});
    let template = json!({"metadata": {"labels": labels}});
    for (group_version, plural, object, patch, reason, field) in [
        (
            "apps/v1",
            "deployments",
            deployment("a"),
            json!({"spec": {"selector": {"matchLabels": labels}, "template": template}}),
            "FieldValueInvalid",
            "spec.selector",
        ),
        (
            "batch/v1",
            "jobs",
            job,
            json!({"spec": {"completions": 5}}),
            "FieldValueInvalid",
            "spec.completions",
        ),
        (
            "v1",
            "services",
            service,
            json!({"spec": {"clusterIP": "10.0.0.77"}}),
            "FieldValueInvalid",
            "spec.clusterIP",
        ),
        (
            "v1",
            "secrets",
            json!({"metadata": {"name": "a"}}),
            json!({"type": "other/type"}),
            "FieldValueInvalid",
            "type",
        ),
        (
            "v1",
            "configmaps",
            immutable,
            json!({"data": {"a": "changed"}}),
            "FieldValueForbidden",
            "data",
        ),
    ] {
        let path = test.path(group_version, plural);
        test.create(&path, &object).await;
        let response = test
            .patch(&format!("{path}/a"), PatchType::Merge, &patch)
            .await;
        let status = response.refused(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        let wanted = |cause: &Value| {
            cause["reason"] == reason && cause["field"].as_str().unwrap().starts_with(field)
        };
        assert!(causes.iter().any(wanted), "{plural}: {status}");
    }
}
