//! LimitRanges and ResourceQuotas.

use std::sync::Arc;

use longshore_engine::{Error, Object, WriteOptions};
use serde_json::{Value, json};

use crate::support::{Api, api, config, status};

async fn limit_range(api: &Api, name: &str, limits: Value) {
    let range = json!({"metadata": {"name": name}, "spec": {"limits": limits}});
    api.create("limitranges", range).await.unwrap();
}

async fn pod(api: &Api, name: &str, resources: Value) -> Result<Arc<Object>, Error> {
    let container = json!({"name": "c", "image": "i", "resources": resources});
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
    api.create("pods", pod).await
}

/// The message of a refused pod, without its beginning.
async fn refusal(api: &Api, resources: Value) -> String {
    let (code, reason, message) = status(pod(api, "p", resources).await);
    assert_eq!((code, &*reason), (403, "Forbidden"));
    let start = "pods \"p\" is forbidden: ";
    message.strip_prefix(start).unwrap().to_owned()
}

#[tokio::test]
async fn containers_get_the_default_requests_and_limits() {
    let api = api();
    limit_range(
        &api,
        "a",
        json!([{"type": "Container",
        "default": {"cpu": "500m", "memory": "64Mi"}, "defaultRequest": {"cpu": "100m"}}]),
    )
    .await;
    let made = api.create("pods", json!({"metadata": {"name": "a"}, "spec": {
        "containers": [
            {"name": "c", "image": "i"},
            {"name": "d", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
        ],
        "initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1m"}}}],
    }}));
    let made = made.await.unwrap().value();
    let resources = |list: &str, at: usize| made["spec"][list][at]["resources"].clone();
    assert_eq!(
        resources("containers", 0),
        json!({
        "limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}})
    );
    assert_eq!(
        resources("containers", 1),
        json!({
        "limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}})
    );
    assert_eq!(
        resources("initContainers", 0),
        json!({
        "limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "1m", "memory": "64Mi"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container c; \
         cpu, memory limit for container c; memory request for init container i; \
         cpu, memory limit for init container i"
    );
    assert_eq!(made["status"]["qosClass"], "Burstable");
}

#[tokio::test]
async fn pods_and_claims_outside_the_limits_are_refused() {
    let api = api();
    limit_range(&api, "a", json!([
        {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"},
         "maxLimitRequestRatio": {"cpu": "3"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
    ]))
    .await;
    let resources = |request: &str, limit: &str| {
        json!({
        "requests": {"cpu": request, "memory": "1Mi"}, "limits": {"cpu": limit, "memory": "1Mi"}})
    };
    assert_eq!(
        refusal(&api, resources("50m", "60m")).await,
        "minimum cpu usage per Container is 100m, but request is 50m"
    );
    assert_eq!(
        refusal(&api, resources("1", "2500m")).await,
        "maximum cpu usage per Container is 2, but limit is 2500m"
    );
    assert_eq!(
        refusal(&api, resources("500m", "2")).await,
        "cpu max limit to request ratio per Container is 3, but provided ratio is 4.000000"
    );
    assert_eq!(
        refusal(&api, json!({})).await,
        "maximum memory usage per Pod is 1Gi.  No limit is specified"
    );
    assert_eq!(
        refusal(
            &api,
            json!({"requests": {"cpu": "1m"}, "limits": {"cpu": "3", "memory": "2Gi"}})
        )
        .await,
        "[minimum cpu usage per Container is 100m, but request is 1m, \
         maximum cpu usage per Container is 2, but limit is 3, \
         cpu max limit to request ratio per Container is 3, but provided ratio is 3000.000000, \
         maximum memory usage per Pod is 1Gi, but limit is 2Gi]"
    );
    pod(&api, "p", resources("1", "2")).await.unwrap();
    let claim = |storage: &str| {
        json!({"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}})
    };
    let (code, _, message) = status(api.create("persistentvolumeclaims", claim("3Gi")).await);
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    );
    let (_, _, message) = status(api.create("persistentvolumeclaims", claim("1M")).await);
    assert!(
        message
            .ends_with("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1M"),
        "{message}"
    );
    // An invalid object is reported as invalid, not as outside the limits.
    let (code, ..) = status(pod(&api, "P", resources("50m", "60m")).await);
    assert_eq!(code, 422);
    // Other namespaces are not affected.
    api.create("namespaces", json!({"metadata": {"name": "other"}}))
        .await
        .unwrap();
    let free =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.create_in("other", "pods", free).await.unwrap();
}

async fn quota(api: &Api, hard: Value, used: Value) {
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    api.create("resourcequotas", quota).await.unwrap();
    let counted = json!({"status": {"hard": hard, "used": used}});
    api.merge_status("resourcequotas", "q", counted)
        .await
        .unwrap();
}

fn used(api: &Api) -> Value {
    api.get("resourcequotas", "q").unwrap().value()["status"]["used"].clone()
}

#[tokio::test]
async fn writes_are_charged_to_the_quotas_of_their_namespace() {
    let api = api();
    let hard =
        json!({"pods": "2", "requests.cpu": "1", "configmaps": "1", "count/jobs.batch": "0"});
    quota(
        &api,
        hard,
        json!({"pods": "0", "requests.cpu": "0", "configmaps": "0", "count/jobs.batch": "0"}),
    )
    .await;
    assert_eq!(
        refusal(&api, json!({})).await,
        "failed quota: q: must specify requests.cpu for: c"
    );
    let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
    pod(&api, "a", cpu("400m")).await.unwrap();
    assert_eq!(
        used(&api),
        json!({"pods": "1", "requests.cpu": "400m", "configmaps": "0", "count/jobs.batch": "0"})
    );
    assert_eq!(
        refusal(&api, cpu("700m")).await,
        "exceeded quota: q, requested: requests.cpu=700m, used: requests.cpu=400m, limited: requests.cpu=1"
    );
    // A dry run is checked, but not charged.
    let dry = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let dry_pod = json!({"metadata": {"name": "d"}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": cpu("100m")}]}});
    api.create_with("pods", dry_pod, dry).await.unwrap();
    pod(&api, "b", cpu("100m")).await.unwrap();
    assert_eq!(
        refusal(&api, cpu("600m")).await,
        "exceeded quota: q, requested: pods=1,requests.cpu=600m, used: pods=2,requests.cpu=500m, limited: pods=2,requests.cpu=1"
    );
    api.create("configmaps", config("a")).await.unwrap();
    let (code, _, message) = status(api.create("configmaps", config("b")).await);
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "configmaps \"b\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
    );
    let (_, _, message) = status(api.create("jobs", crate::support::job("j")).await);
    assert_eq!(
        message,
        "jobs.batch \"j\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=0, limited: count/jobs.batch=0"
    );
    // Kinds without a limit are not affected.
    api.create("secrets", json!({"metadata": {"name": "s"}}))
        .await
        .unwrap();
    // A refused write leaves no usage behind.
    assert_eq!(
        used(&api),
        json!({"pods": "2", "requests.cpu": "500m", "configmaps": "1", "count/jobs.batch": "0"})
    );
}

#[tokio::test]
async fn updates_are_charged_for_what_they_add() {
    let api = api();
    let hard = json!({"services.nodeports": "1"});
    quota(&api, hard.clone(), json!({"services.nodeports": "0"})).await;
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    api.create("services", service).await.unwrap();
    assert_eq!(used(&api), json!({"services.nodeports": "1"}));
    let more = json!({"spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
    let (code, _, message) = status(api.merge("services", "s", more).await);
    assert_eq!(code, 403);
    assert!(message.ends_with("exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1"), "{message}");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.merge("services", "s", label).await.unwrap();
}

/// The usage is exact even while other writes run.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_do_not_exceed_a_quota() {
    let api = api();
    quota(&api, json!({"pods": "7"}), json!({"pods": "0"})).await;
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let api = api.clone();
            tokio::spawn(async move { pod(&api, &format!("p{number}"), json!({})).await.is_ok() })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap());
    }
    assert_eq!((made, used(&api)), (7, json!({"pods": "7"})));
    assert_eq!(api.list("pods").items.len(), 7);
}

/// A large object is prepared outside the writer, and charged once.
#[tokio::test]
async fn large_objects_are_charged_once() {
    let api = api();
    quota(
        &api,
        json!({"count/configmaps": "1"}),
        json!({"count/configmaps": "0"}),
    )
    .await;
    let large =
        |name: &str| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(700_000)}});
    let (one, two) = tokio::join!(
        api.create("configmaps", large("a")),
        api.create("configmaps", large("b"))
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    assert_eq!(used(&api), json!({"count/configmaps": "1"}));
}

#[tokio::test]
async fn pods_must_meet_the_standard_of_their_namespace() {
    let api = api();
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "v1.30"}}});
    api.merge("namespaces", "default", labels).await.unwrap();
    let spec = |privileged: bool| {
        json!({"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i",
            "securityContext": {"privileged": privileged}}]})
    };
    let named = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
    let (code, _, message) = status(api.create("pods", named(spec(true))).await);
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \"c\" must not set securityContext.privileged=true)"
    );
    let create = async |plural: &str, object: Value| {
        let written = api
            .create_with(plural, object, WriteOptions::default())
            .await;
        written.unwrap().warnings
    };
    let warnings = create("pods", named(spec(false))).await;
    assert!(
        warnings[0].starts_with("would violate PodSecurity \"restricted:v1.30\": allowPrivilegeEscalation != false (container \"c\" must set"),
        "{warnings:?}"
    );
    // Workloads are not refused.
    let mut job = crate::support::job("j");
    job["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    let warnings = create("jobs", job).await;
    assert!(
        warnings[0].contains("host namespaces (hostNetwork=true)"),
        "{warnings:?}"
    );
    assert!(create("configmaps", config("m")).await.is_empty());
    // Other changes of a pod are not checked again; a new image is.
    let strict =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    api.merge("namespaces", "default", strict).await.unwrap();
    api.merge("pods", "p", json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .unwrap();
    let image = json!({"spec": {"containers": [{"name": "c", "image": "j",
        "securityContext": {"privileged": false}}]}});
    let (code, ..) = status(api.merge("pods", "p", image).await);
    assert_eq!(code, 403);
}

#[tokio::test]
async fn labels_of_the_pod_security_standards_are_checked() {
    let api = api();
    let namespace = |level: &str| {
        json!({"metadata": {"name": "n", "labels": {
        "pod-security.kubernetes.io/enforce": level}}})
    };
    let (code, _, message) = status(api.create("namespaces", namespace("strict")).await);
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "Namespace \"n\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted"
    );
    api.create("namespaces", namespace("restricted"))
        .await
        .unwrap();
}
