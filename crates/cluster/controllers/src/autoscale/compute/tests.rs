//! Metrics that require more replicas, and metrics without a result.
#![allow(clippy::unwrap_used)]

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use serde_json::{Value, json};

use super::*;
use crate::autoscale::{
    pod::PodFacts,
    testing::{at, autoscaler, pod},
    usage::PodMetricsList,
};

/// The usage of the pods `p0`, `p1`, …: millicores and kibibytes.
fn usage(pods: &[(i64, i64)]) -> Result<PodMetricsList, String> {
    let pods = pods.iter().enumerate().map(|(index, (cpu, memory))| {
        json!({"metadata": {"name": format!("p{index}")}, "timestamp": at(990).to_string(),
            "window": "1s", "containers": [{"name": "main", "usage": {
                "cpu": format!("{cpu}m"), "memory": format!("{memory}Ki")}}]})
    });
    let pods: Vec<Value> = pods.collect();
    Ok(serde_json::from_value(json!({"items": pods})).unwrap())
}

struct Found {
    desired: Result<(i32, String), String>,
    metrics: Value,
    condition: HorizontalPodAutoscalerCondition,
    events: Vec<(&'static str, String)>,
}

fn computed(
    metrics: Value,
    replicas: i32,
    usage: &Result<PodMetricsList, String>,
    pods: usize,
) -> Found {
    let autoscaler = autoscaler(json!({"metrics": metrics}));
    let mut draft = Draft::new(&autoscaler, at(1000));
    let pods: Vec<PodFacts> = (0..pods).map(|index| pod(&format!("p{index}"))).collect();
    let facts = Facts {
        namespace: "default",
        replicas,
        pods: &pods,
        usage,
        tolerances: autoscaler.tolerances(),
        now: at(1000),
    };
    let found = compute(&autoscaler, &facts, &mut draft);
    let events = draft.events.into_iter();
    Found {
        desired: found.desired,
        metrics: serde_json::to_value(found.metrics).unwrap(),
        condition: draft.status.conditions.unwrap()[0].clone(),
        events: events.map(|event| (event.reason, event.message)).collect(),
    }
}

fn resource(name: &str, target: Value) -> Value {
    json!({"type": "Resource", "resource": {"name": name, "target": target}})
}

fn cpu(percent: i32) -> Value {
    resource(
        "cpu",
        json!({"type": "Utilization", "averageUtilization": percent}),
    )
}

#[test]
fn the_highest_number_applies() {
    let memory = resource(
        "memory",
        json!({"type": "AverageValue", "averageValue": "2Mi"}),
    );
    let usage = usage(&[(300, 6144), (500, 3072), (700, 3072)]);
    let found = computed(json!([cpu(30), memory]), 3, &usage, 3);
    let name = "memory resource".to_owned();
    assert_eq!(found.desired, Ok((6, name)));
    let statuses = json!([
        {"type": "Resource", "resource": {"name": "cpu", "current": {
            "averageUtilization": 50, "averageValue": "500m"}}},
        {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "4Mi"}}},
    ]);
    assert_eq!(found.metrics, statuses);
    assert_eq!(found.condition.reason.as_deref(), Some("ValidMetricFound"));
    let message = "the HPA was able to successfully calculate a replica count from memory resource";
    assert_eq!(found.condition.message.as_deref(), Some(message));
    assert!(found.events.is_empty());
}

#[test]
fn a_metric_of_a_container() {
    let source = |container: &str| {
        json!([{"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": container,
            "target": {"type": "Utilization", "averageUtilization": 50}}}])
    };
    let usage = usage(&[(1000, 1)]);
    let found = computed(source("main"), 1, &usage, 1);
    let name = "cpu container resource utilization (percentage of request)".to_owned();
    assert_eq!(found.desired, Ok((2, name)));
    assert_eq!(found.metrics[0]["containerResource"]["container"], "main");
    let found = computed(source("other"), 1, &usage, 1);
    let reason = found.condition.reason.as_deref();
    assert_eq!(reason, Some("FailedGetContainerResourceMetric"));
    let text = "invalid metrics (1 invalid out of 1), first error is: failed to get other container metric value: failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(found.desired, Err(text.to_owned()));
}

#[test]
fn a_metric_without_result_prevents_decreases_only() {
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "qps"},
        "target": {"type": "AverageValue", "averageValue": "1"}}});
    let metrics = json!([pods, cpu(50)]);
    let problem = "unable to get metric qps: unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";
    let up = computed(metrics.clone(), 1, &usage(&[(1000, 1)]), 1);
    assert_eq!(up.desired.map(|(replicas, _)| replicas), Ok(2));
    assert_eq!(up.condition.status, "True");
    assert_eq!(up.events, [("FailedGetPodsMetric", problem.to_owned())]);
    assert_eq!(up.metrics[0], json!({"type": ""}));

    let down = computed(metrics, 2, &usage(&[(100, 1), (100, 1)]), 2);
    let error = format!(
        "invalid metrics (1 invalid out of 2), first error is: failed to get pods metric value: {problem}"
    );
    assert_eq!(down.desired, Err(error));
    assert_eq!(down.condition.status, "False");
    let message = format!("the HPA was unable to compute the replica count: {problem}");
    assert_eq!(down.condition.message, Some(message));
}

#[test]
fn metrics_of_adapters_are_not_available() {
    let object = |target: Value| {
        json!([{"type": "Object", "object": {"metric": {"name": "qps"}, "target": target,
            "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"}}}])
    };
    let external = |target: Value| {
        json!([{"type": "External", "external": {"target": target, "metric": {
            "name": "qps", "selector": {"matchLabels": {"queue": "a"}}}}}])
    };
    let value = json!({"type": "Value", "value": "1"});
    let average = json!({"type": "AverageValue", "averageValue": "1"});
    let none = "no custom metrics API (custom.metrics.k8s.io) registered";
    let of_object = format!(
        "unable to get metric qps on Service default/web: unable to fetch metrics from custom metrics API: {none}"
    );
    let of_external = "unable to get external metric default/qps/&LabelSelector{MatchLabels:map[string]string{queue: a,},MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch metrics from external metrics API: the server could not find the requested resource (get qps.external.metrics.k8s.io)";
    for (metrics, reason, problem, context) in [
        (
            object(value.clone()),
            "FailedGetObjectMetric",
            &*of_object,
            "failed to get object metric value: ",
        ),
        (
            object(average.clone()),
            "FailedGetObjectMetric",
            &*of_object,
            "failed to get object metric value: failed to get qps object metric: ",
        ),
        (
            external(value),
            "FailedGetExternalMetric",
            of_external,
            "failed to get qps external metric value: failed to get external metric qps: ",
        ),
        (
            external(average),
            "FailedGetExternalMetric",
            of_external,
            "failed to get qps external metric value: failed to get qps external metric: ",
        ),
    ] {
        let found = computed(metrics, 1, &usage(&[(1, 1)]), 1);
        let error =
            format!("invalid metrics (1 invalid out of 1), first error is: {context}{problem}");
        assert_eq!(found.desired, Err(error));
        assert_eq!(found.events, [(reason, problem.to_owned())]);
    }
}

#[test]
fn without_a_node_that_measures_there_is_no_usage() {
    let usage = Err("unable to fetch metrics from resource metrics API: gone".to_owned());
    let found = computed(json!([cpu(50)]), 1, &usage, 1);
    let problem = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: gone";
    assert_eq!(
        found.events,
        [("FailedGetResourceMetric", problem.to_owned())]
    );
}
