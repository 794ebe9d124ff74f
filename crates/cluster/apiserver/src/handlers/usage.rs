//! `metrics.k8s.io`: the resource usage of nodes and pods, which the node
//! measures on request.

use http::{Method, StatusCode};
use longshore_engine::{ListRequest, ReadVersion, Target};
use longshore_model::{StatusReason, kind, time};
use longshore_node_api::{NodeUsage, Usage};
use serde_json::{Value, json};

use super::{plain_shape, proxy};
use crate::{
    call::Call,
    params::Selection,
    reply::{self, Reply},
    route::Resource,
    status_error::StatusError,
    usage::{GROUP, VERSION},
};

/// Returns true if this is a path of the group, and a node measures usage.
pub(super) fn is_served(call: &Call, path: &Resource) -> bool {
    path.group == GROUP && path.version == VERSION && call.shared.node_streams.measure().is_some()
}

pub(super) async fn read(call: Call, path: Resource) -> Reply {
    let info = match (&*path.plural, &path.namespace) {
        ("nodes", None) => kind::builtin("", "Node"),
        ("pods", _) => kind::builtin("", "Pod"),
        _ => None,
    };
    let is_item = path.name.is_some();
    let in_namespace = path.plural == "nodes" || path.namespace.is_some();
    let is_other = path.watch || path.subresource.is_some() || is_item && !in_namespace;
    let Some(info) = info.filter(|_| !is_other) else {
        return Err(StatusError::unknown_path());
    };
    if call.method != Method::GET {
        return Err(StatusError::wrong_method(&["GET"]));
    }
    let wanted = plain_shape(&call)?;
    let engine = &call.shared.engine;
    let info = std::sync::Arc::new(info.clone());
    let objects = match &path.name {
        Some(name) => {
            let namespace = path.namespace.as_deref();
            let found = engine.get(&info, namespace, name, ReadVersion::Latest);
            vec![found.map_err(|_| not_found(&path.plural, name))?]
        }
        None => {
            let selection = Selection::parse(&call.query)?;
            let request = ListRequest {
                namespace: path.namespace.clone(),
                labels: selection.labels,
                fields: selection.fields,
                ..ListRequest::of(info)
            };
            engine.list(&request)?.items
        }
    };
    let measured = measure(&call).await?;
    let items = objects.iter().filter_map(|object| {
        let object = object.value();
        match &*path.plural {
            "nodes" => of_node(&object, &measured),
            _ => of_pod(&object, &measured),
        }
    });
    let mut items: Vec<Value> = items.collect();
    let document = match &path.name {
        Some(name) => items.pop().ok_or_else(|| not_found(&path.plural, name))?,
        None => json!({
            "kind": if path.plural == "nodes" { "NodeMetricsList" } else { "PodMetricsList" },
            "apiVersion": api_version(),
            "metadata": {},
            "items": items,
        }),
    };
    reply::document(StatusCode::OK, wanted.encoding, reply::ordered(&document))
}

async fn measure(call: &Call) -> Result<NodeUsage, StatusError> {
    let measured = match call.shared.node_streams.measure() {
        Some(measuring) => measuring.await,
        None => None,
    };
    measured.ok_or_else(|| {
        let text = "the node cannot measure its resource usage now";
        StatusError::new(StatusReason::ServiceUnavailable, text)
    })
}

fn is_measured(node: &str, measured: &NodeUsage) -> bool {
    measured.nodes.iter().any(|name| name == node)
}

/// The summary of the kubelet's API: the usage of a node and its pods.
pub(super) async fn summary(call: Call, name: &str) -> Reply {
    if !matches!(call.method, Method::GET | Method::HEAD) {
        return Err(StatusError::wrong_method(&["GET"]));
    }
    let of = |group, kind| kind::builtin(group, kind).ok_or_else(StatusError::unknown_path);
    let (nodes, pods) = (of("", "Node")?.clone(), of("", "Pod")?.clone());
    let target = Target {
        kind: std::sync::Arc::new(nodes),
        namespace: None,
        name: name.to_owned(),
    };
    let path = Some("/stats/summary".to_owned());
    if proxy::admit(&call, &target, path.clone()).await? != path {
        return Err(StatusError::unknown_path());
    }
    let engine = &call.shared.engine;
    let node = engine.get(&target.kind, None, name, ReadVersion::Latest)?;
    let measured = measure(&call).await?;
    if !is_measured(name, &measured) {
        let text = format!("node {name} is not measured");
        return Err(StatusError::new(StatusReason::ServiceUnavailable, text));
    }
    let pods = engine.list(&ListRequest::of(std::sync::Arc::new(pods)))?;
    let pods = pods.items.iter().map(|pod| pod.value());
    let pods = pods.filter(|pod| pod["spec"]["nodeName"] == name);
    let summary = summarize(&node.value(), pods, &measured);
    Ok(reply::value(StatusCode::OK, &summary))
}

fn summarize(node: &Value, pods: impl Iterator<Item = Value>, measured: &NodeUsage) -> Value {
    let pods = pods.filter_map(|pod| summary_of_pod(&pod, measured));
    let (cpu, memory) = statistics([measured.machine], measured);
    json!({
        "node": {
            "nodeName": node["metadata"]["name"],
            "startTime": node["metadata"]["creationTimestamp"],
            "cpu": cpu,
            "memory": memory,
        },
        "pods": pods.collect::<Vec<Value>>(),
    })
}

fn summary_of_pod(pod: &Value, measured: &NodeUsage) -> Option<Value> {
    let metadata = &pod["metadata"];
    let uid = metadata["uid"].as_str()?;
    let of_pod = || {
        let containers = measured.containers.iter();
        containers.filter(|container| container.pod_uid == uid)
    };
    let started = |name: &str| {
        let lists = [
            "initContainerStatuses",
            "containerStatuses",
            "ephemeralContainerStatuses",
        ];
        let mut statuses = lists
            .iter()
            .flat_map(|list| pod["status"][*list].as_array().into_iter().flatten());
        let status = statuses.find(|status| status["name"] == name)?;
        status.pointer("/state/running/startedAt").cloned()
    };
    let containers = of_pod().map(|container| {
        let (cpu, memory) = statistics([container.usage], measured);
        json!({
            "name": container.name,
            "startTime": started(&container.name),
            "cpu": cpu,
            "memory": memory,
        })
    });
    let containers: Vec<Value> = containers.collect();
    let (cpu, memory) = statistics(of_pod().map(|container| container.usage), measured);
    (!containers.is_empty()).then(|| {
        json!({
            "podRef": {
                "name": metadata["name"], "namespace": metadata["namespace"], "uid": uid,
            },
            "startTime": pod["status"]["startTime"],
            "containers": containers,
            "cpu": cpu,
            "memory": memory,
        })
    })
}

/// Returns the sum of usages in the form of the kubelet: CPU and memory.
fn statistics(usages: impl IntoIterator<Item = Usage>, measured: &NodeUsage) -> (Value, Value) {
    let sum = usages
        .into_iter()
        .fold(Usage::default(), |sum, usage| Usage {
            cpu_nanocores: sum.cpu_nanocores.saturating_add(usage.cpu_nanocores),
            cpu_nanoseconds: sum.cpu_nanoseconds.saturating_add(usage.cpu_nanoseconds),
            memory: sum.memory.saturating_add(usage.memory),
        });
    let time = time::seconds(measured.at);
    let cpu = json!({
        "time": time,
        "usageNanoCores": sum.cpu_nanocores,
        "usageCoreNanoSeconds": sum.cpu_nanoseconds,
    });
    let memory = json!({
        "time": time,
        "usageBytes": sum.memory,
        "workingSetBytes": sum.memory,
        "rssBytes": sum.memory,
    });
    (cpu, memory)
}

fn api_version() -> String {
    format!("{GROUP}/{VERSION}")
}

fn not_found(plural: &str, name: &str) -> StatusError {
    let kind = format!("{plural}.{GROUP}");
    StatusError::new(StatusReason::NotFound, format!("{kind} {name:?} not found"))
}

fn of_node(node: &Value, measured: &NodeUsage) -> Option<Value> {
    let is_it = is_measured(node["metadata"]["name"].as_str()?, measured);
    let mut metrics = frame("NodeMetrics", node, measured);
    metrics["usage"] = quantities(measured.machine);
    is_it.then_some(metrics)
}

/// Returns the usage of a pod's running containers; `None` if no container is running.
fn of_pod(pod: &Value, measured: &NodeUsage) -> Option<Value> {
    let uid = pod["metadata"]["uid"].as_str()?;
    let containers = measured.containers.iter();
    let mut containers: Vec<Value> = containers
        .filter(|container| container.pod_uid == uid)
        .map(|container| json!({"name": container.name, "usage": quantities(container.usage)}))
        .collect();
    containers.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let mut metrics = frame("PodMetrics", pod, measured);
    let is_running = !containers.is_empty();
    metrics["containers"] = containers.into();
    is_running.then_some(metrics)
}

fn frame(kind: &str, object: &Value, measured: &NodeUsage) -> Value {
    let mut metadata = json!({"name": object["metadata"]["name"]});
    for field in ["namespace", "labels"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let now = time::seconds(measured.at);
    metadata["creationTimestamp"] = now.as_str().into();
    json!({
        "kind": kind,
        "apiVersion": api_version(),
        "metadata": metadata,
        "timestamp": now,
        "window": format!("{:.3}s", measured.window.as_secs_f64()),
    })
}

/// Returns quantities in the units of Kubernetes' metrics server.
fn quantities(usage: Usage) -> Value {
    json!({
        "cpu": format!("{}n", usage.cpu_nanocores),
        "memory": format!("{}Ki", usage.memory / 1024),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longshore_node_api::ContainerUsage;

    use super::*;

    #[test]
    fn metrics_of_nodes_and_pods() {
        let usage = |cpu_nanocores, memory| Usage {
            cpu_nanocores,
            cpu_nanoseconds: 30_000_000,
            memory,
        };
        let container = |name: &str, pod_uid: &str| ContainerUsage {
            pod_uid: pod_uid.to_owned(),
            name: name.to_owned(),
            usage: usage(250_000_000, 2048),
        };
        let measured = NodeUsage {
            nodes: vec!["there".to_owned(), "here".to_owned()],
            at: jiff::Timestamp::UNIX_EPOCH,
            window: Duration::from_millis(1500),
            machine: usage(1_500_000_000, 4096),
            containers: vec![
                container("b", "u"),
                container("a", "u"),
                container("a", "v"),
            ],
        };
        let pod = json!({"metadata": {
            "name": "p", "namespace": "n", "uid": "u", "labels": {"app": "x"}}});
        let of_container =
            |name: &str| json!({"name": name, "usage": {"cpu": "250000000n", "memory": "2Ki"}});
        let expected = json!({
            "kind": "PodMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {
                "name": "p", "namespace": "n", "labels": {"app": "x"},
                "creationTimestamp": "1970-01-01T00:00:00Z",
            },
            "timestamp": "1970-01-01T00:00:00Z",
            "window": "1.500s",
            "containers": [of_container("a"), of_container("b")],
        });
        assert_eq!(of_pod(&pod, &measured), Some(expected));
        assert_eq!(of_pod(&json!({"metadata": {"uid": "w"}}), &measured), None);
        let pods = [pod, json!({"metadata": {"name": "q", "uid": "w"}})].into_iter();
        let summary = summarize(&json!({"metadata": {"name": "here"}}), pods, &measured);
        assert_eq!(summary["node"]["nodeName"], "here");
        assert_eq!(summary["node"]["memory"]["workingSetBytes"], 4096);
        let pods = summary["pods"].as_array();
        assert_eq!(pods.map(Vec::len), Some(1));
        let pod = &summary["pods"][0];
        assert_eq!(
            pod["podRef"],
            json!({"name": "p", "namespace": "n", "uid": "u"})
        );
        assert_eq!(pod["cpu"]["usageNanoCores"], 500_000_000);
        assert_eq!(
            pod["containers"][1]["cpu"]["usageCoreNanoSeconds"],
            30_000_000
        );

        let node = of_node(&json!({"metadata": {"name": "here"}}), &measured);
        let usage = node.map(|node| node["usage"].clone());
        assert_eq!(usage, Some(json!({"cpu": "1500000000n", "memory": "4Ki"})));
        assert_eq!(
            of_node(&json!({"metadata": {"name": "other"}}), &measured),
            None
        );
    }
}
