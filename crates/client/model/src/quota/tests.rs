//! Writes against quotas.
#![allow(clippy::unwrap_used)]

use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::quantity::Amount;

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn quota(spec: Value, used: Value) -> Quota {
    let hard = spec["hard"].clone();
    let quota =
        json!({"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used}});
    Quota::of(&object(quota)).unwrap()
}

fn pod(requests: Value, limits: Value) -> Map<String, Value> {
    object(json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "main", "resources": {"requests": requests, "limits": limits}},
    ]}}))
}

fn new<'a>(evaluator: &'a Evaluator, object: &'a Map<String, Value>) -> Request<'a> {
    Request {
        evaluator,
        object,
        before: None,
        may_exceed: false,
        now: now(),
    }
}

/// The usage after a write, or the reason why it is not allowed.
fn used(quota: &Quota, request: Request<'_>) -> Result<Value, String> {
    let charges = charge(std::slice::from_ref(quota), request)?;
    Ok(charges.first().map_or(json!({}), |one| json!(one.used)))
}

#[test]
fn a_pod_is_charged_until_the_limit() {
    let quota = quota(
        json!({"hard": {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi", "requests.x.com/gpu": "1"}}),
        json!({"pods": "1", "requests.cpu": "500m", "limits.memory": "512Mi", "requests.x.com/gpu": "0"}),
    );
    let resources = |cpu: &str, gpu: &str| {
        pod(
            json!({"cpu": cpu, "x.com/gpu": gpu}),
            json!({"memory": "512Mi"}),
        )
    };
    let fits = resources("500m", "1");
    assert_eq!(
        used(&quota, new(&Evaluator::Pods, &fits)),
        Ok(
            json!({"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi", "requests.x.com/gpu": "1"})
        )
    );
    let large = resources("501m", "2");
    assert_eq!(
        used(&quota, new(&Evaluator::Pods, &large)),
        Err("exceeded quota: q, requested: requests.cpu=501m,requests.x.com/gpu=2, used: requests.cpu=500m,requests.x.com/gpu=0, limited: requests.cpu=1,requests.x.com/gpu=1".to_owned())
    );
}

#[test]
fn containers_must_specify_limited_resources() {
    let hard = json!({"cpu": "1", "limits.memory": "1Gi", "limits.ephemeral-storage": "1Gi"});
    let quota = quota(
        json!({"hard": hard}),
        json!({"cpu": "0", "limits.memory": "0", "limits.ephemeral-storage": "0"}),
    );
    let mut without = pod(json!({}), json!({}));
    without["spec"]["initContainers"] =
        json!([{"name": "init", "resources": {"requests": {"cpu": "1"}}}]);
    assert_eq!(
        used(&quota, new(&Evaluator::Pods, &without)),
        Err("failed quota: q: must specify cpu for: main; limits.memory for: init,main".to_owned())
    );
}

#[test]
fn a_quota_without_usage_allows_nothing() {
    let quota = quota(
        json!({"hard": {"pods": "9", "services": "1"}}),
        json!({"services": "0"}),
    );
    let pod = pod(json!({}), json!({}));
    assert_eq!(
        used(&quota, new(&Evaluator::Pods, &pod)),
        Err("status unknown for quota: q, resources: pods".to_owned())
    );
    // Other kinds are not affected.
    let count = Evaluator::of("", "configmaps").unwrap();
    assert_eq!(used(&quota, new(&count, &Map::new())), Ok(json!({})));
}

#[test]
fn ended_pods_and_those_past_their_grace_period_count_as_objects_only() {
    let usage = |pod: &Map<String, Value>| {
        let usage = Evaluator::Pods.usage(pod, now());
        usage.keys().cloned().collect::<Vec<_>>()
    };
    let mut pod = pod(json!({"cpu": "1"}), json!({}));
    assert_eq!(usage(&pod), ["count/pods", "cpu", "pods", "requests.cpu"]);
    pod["metadata"] =
        json!({"deletionTimestamp": now() - 9.seconds(), "deletionGracePeriodSeconds": 9});
    assert_eq!(usage(&pod).len(), 4);
    pod["metadata"] =
        json!({"deletionTimestamp": now() - 10.seconds(), "deletionGracePeriodSeconds": 9});
    assert_eq!(usage(&pod), ["count/pods"]);
    pod["metadata"] = json!({});
    pod.insert("status".to_owned(), json!({"phase": "Succeeded"}));
    assert_eq!(usage(&pod), ["count/pods"]);
}

#[test]
fn scopes_select_pods() {
    let hard = json!({"pods": "1"});
    let scoped = |name: &str| {
        quota(
            json!({"hard": hard, "scopes": [name]}),
            json!({"pods": "0"}),
        )
    };
    let selected = |operator: &str, values: Value| {
        let expression =
            json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        let spec = json!({"hard": hard, "scopeSelector": {"matchExpressions": [expression]}});
        quota(spec, json!({"pods": "0"}))
    };
    let small = pod(json!({}), json!({}));
    let mut large = pod(json!({"cpu": "1"}), json!({}));
    large["spec"]["activeDeadlineSeconds"] = json!(3);
    large["spec"]["priorityClassName"] = json!("high");
    large["spec"]["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "x", "namespaceSelector": {}}}]}});
    for (quota, has_small, has_large) in [
        (scoped("BestEffort"), true, false),
        (scoped("NotBestEffort"), false, true),
        (scoped("Terminating"), false, true),
        (scoped("NotTerminating"), true, false),
        (scoped("PriorityClass"), false, true),
        (scoped("CrossNamespacePodAffinity"), false, true),
        (selected("In", json!(["high", "low"])), false, true),
        (selected("In", json!(["low"])), false, false),
        (selected("NotIn", json!(["high"])), true, false),
        (selected("DoesNotExist", json!(null)), true, false),
    ] {
        let found = [&small, &large].map(|pod| Evaluator::Pods.is_in_scope(&quota, pod));
        assert_eq!(found, [has_small, has_large], "{:?}", quota.scopes);
    }
    let services = Evaluator::of("", "services").unwrap();
    assert!(!services.is_in_scope(&scoped("NotTerminating"), &Map::new()));
}

#[test]
fn services_and_claims() {
    let service = |spec: Value| {
        let usage = Evaluator::Services.usage(&object(json!({"spec": spec})), now());
        ["services", "services.nodeports", "services.loadbalancers"]
            .map(|name| usage[name].to_string())
    };
    let ports = json!([{"port": 1}, {"port": 2, "nodePort": 30001}]);
    assert_eq!(
        service(json!({"type": "ClusterIP", "ports": ports})),
        ["1", "0", "0"]
    );
    assert_eq!(
        service(json!({"type": "NodePort", "ports": ports})),
        ["1", "2", "0"]
    );
    assert_eq!(
        service(json!({"type": "LoadBalancer", "ports": ports})),
        ["1", "2", "1"]
    );
    let none =
        json!({"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false});
    assert_eq!(service(none), ["1", "1", "1"]);

    let claim = object(
        json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}}}),
    );
    let usage = json!(Evaluator::Claims.usage(&claim, now()));
    assert_eq!(
        usage,
        json!({
            "count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "2",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "gold.storageclass.storage.k8s.io/requests.storage": "2",
        })
    );
    assert!(
        usage
            .as_object()
            .unwrap()
            .keys()
            .all(|name| Evaluator::Claims.counts(name))
    );
    assert!(!Evaluator::Claims.counts("gold.storageclass.storage.k8s.io/pods"));
}

#[test]
fn an_update_is_charged_for_the_difference() {
    let quota = quota(
        json!({"hard": {"services.nodeports": "2", "services": "1"}}),
        json!({"services.nodeports": "1", "services": "1"}),
    );
    let service = |ports: usize| {
        let ports: Vec<_> = (0..ports).map(|port| json!({"port": port})).collect();
        object(json!({"spec": {"type": "NodePort", "ports": ports}}))
    };
    let (one, two, three) = (service(1), service(2), service(3));
    let update = |after| Request {
        before: Some(&one),
        ..new(&Evaluator::Services, after)
    };
    assert_eq!(used(&quota, update(&one)), Ok(json!({})));
    assert_eq!(
        used(&quota, update(&two)),
        Ok(json!({"services": "1", "services.nodeports": "2"}))
    );
    assert!(
        used(&quota, update(&three))
            .unwrap_err()
            .starts_with("exceeded quota: q, requested: services.nodeports=2")
    );
    let exceeding = Request {
        may_exceed: true,
        ..update(&three)
    };
    assert_eq!(
        used(&quota, exceeding),
        Ok(json!({"services": "1", "services.nodeports": "3"}))
    );
    let fewer = Request {
        before: Some(&three),
        ..new(&Evaluator::Services, &one)
    };
    assert_eq!(used(&quota, fewer), Ok(json!({})));
}

proptest! {
    /// In any order of pods, the usage is the sum of the allowed pods, and never exceeds the limit.
    /// A rejected pod would have exceeded it.
    #[test]
    fn limits_hold(pods in prop::collection::vec(1_u32..400, 0..40)) {
        let mut quota = quota(json!({"hard": {"requests.cpu": "2", "pods": "15"}}), json!({"requests.cpu": "0", "pods": "0"}));
        let (mut sum, mut count) = (0, 0);
        for milli in pods {
            let pod = pod(json!({"cpu": format!("{milli}m")}), json!({}));
            let result = charge(std::slice::from_ref(&quota), new(&Evaluator::Pods, &pod));
            let fits = sum + milli <= 2000 && count < 15;
            prop_assert_eq!(result.is_ok(), fits);
            if let Ok(mut charges) = result {
                quota.used = charges.remove(0).used;
                (sum, count) = (sum + milli, count + 1);
            }
            prop_assert_eq!(quota.used["requests.cpu"], format!("{sum}m").parse::<Amount>().unwrap());
            prop_assert_eq!(quota.used["pods"], Amount::of(count));
        }
    }
}
