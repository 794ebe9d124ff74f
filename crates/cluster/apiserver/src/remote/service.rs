//! The sockets behind a Service: the ready pods that it selects, or the addresses of its
//! EndpointSlices and Endpoints if it has no selector.

use std::net::{IpAddr, SocketAddr};

use longshore_engine::{Engine, ListRequest, Object, ReadVersion};
use longshore_model::{LabelSelector, kind::builtin};
use serde_json::Value;
use std::sync::Arc;

/// The endpoints that a Service leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Endpoints {
    /// Any of these sockets.
    Sockets(Vec<SocketAddr>),
    /// The host of an `ExternalName`.
    Name(String),
}

/// Resolves a port of a Service.
///
/// # Errors
/// The problem, in the words of Kubernetes.
pub(crate) fn resolve(
    engine: &Engine,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<Endpoints, String> {
    let get = |group: &str, kind: &str| {
        let info = builtin(group, kind)?;
        let found = engine.get(info, Some(namespace), name, ReadVersion::Latest);
        found.ok().map(|object| object.value())
    };
    let service = get("", "Service").ok_or_else(|| format!("service {name:?} not found"))?;
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    if text("type") == "ExternalName" {
        return Ok(Endpoints::Name(text("externalName").to_owned()));
    }
    let mut ports = spec["ports"].as_array().into_iter().flatten();
    let service_port = ports.find(|one| one["port"].as_u64() == Some(u64::from(port)));
    let service_port =
        service_port.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let list = |group: &str, kind: &str, labels: Vec<(String, String)>| -> Vec<Arc<Object>> {
        let (Some(info), Ok(labels)) = (builtin(group, kind), LabelSelector::exactly(labels))
        else {
            return Vec::new();
        };
        let request = ListRequest {
            namespace: Some(namespace.to_owned()),
            labels,
            ..ListRequest::of(Arc::new(info.clone()))
        };
        let page = engine.list(&request).map(|page| page.items);
        page.unwrap_or_default()
    };
    let selector = spec["selector"].as_object();
    let sockets = match selector.filter(|selector| !selector.is_empty()) {
        Some(selector) => {
            let labels = selector
                .iter()
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
            let pods = list("", "Pod", labels.collect());
            let pods = pods.iter().map(|pod| pod.value());
            pods.filter_map(|pod| of_pod(&pod, service_port)).collect()
        }
        None => {
            let label = ("kubernetes.io/service-name".to_owned(), name.to_owned());
            let slices = list("discovery.k8s.io", "EndpointSlice", vec![label]);
            let slices = slices.iter().map(|slice| slice.value());
            let mut sockets: Vec<_> = slices
                .flat_map(|slice| of_slice(&slice, service_port))
                .collect();
            if let (true, Some(endpoints)) = (sockets.is_empty(), get("", "Endpoints")) {
                sockets = of_endpoints(&endpoints, service_port);
            }
            sockets
        }
    };
    if sockets.is_empty() {
        return Err(format!("no endpoints available for service {name:?}"));
    }
    Ok(Endpoints::Sockets(sockets))
}

fn port_number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| u16::try_from(port).ok())
}

fn socket(address: &Value, port: u16) -> Option<SocketAddr> {
    let address: IpAddr = address.as_str()?.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

/// The socket of a ready pod.
fn of_pod(pod: &Value, service_port: &Value) -> Option<SocketAddr> {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .any(|condition| condition["status"] == "True");
    if !is_ready || !pod["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let port = match &service_port["targetPort"] {
        Value::String(named) => {
            let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
            let ports = containers.filter_map(|container| container["ports"].as_array());
            let port = ports.flatten().find(|port| port["name"] == **named)?;
            port_number(&port["containerPort"])
        }
        Value::Null => port_number(&service_port["port"]),
        port => port_number(port),
    };
    socket(&pod["status"]["podIP"], port?)
}

/// Returns true if the ports of endpoints and of the Service have the same name.
fn is_port(port: &Value, service_port: &Value) -> bool {
    let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
    name(port) == name(service_port)
}

fn of_slice(slice: &Value, service_port: &Value) -> Vec<SocketAddr> {
    let items = |field: &str| slice[field].as_array().into_iter().flatten();
    let port = items("ports").find(|port| is_port(port, service_port));
    let Some(port) = port.and_then(|port| port_number(&port["port"])) else {
        return Vec::new();
    };
    let ready = items("endpoints").filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let addresses = ready.filter_map(|endpoint| endpoint["addresses"].as_array()?.first());
    addresses
        .filter_map(|address| socket(address, port))
        .collect()
}

fn of_endpoints(endpoints: &Value, service_port: &Value) -> Vec<SocketAddr> {
    let subsets = endpoints["subsets"].as_array().into_iter().flatten();
    let of_subset = |subset: &Value| -> Vec<SocketAddr> {
        let items = |field: &str| subset[field].as_array().into_iter().flatten();
        let port = items("ports").find(|port| is_port(port, service_port));
        let Some(port) = port.and_then(|port| port_number(&port["port"])) else {
            return Vec::new();
        };
        items("addresses")
            .filter_map(|address| socket(&address["ip"], port))
            .collect()
    };
    subsets.flat_map(of_subset).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(ready: &str) -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"ports": [{"name": "hook", "containerPort": 8443}]}]},
            "status": {
                "podIP": "127.0.0.7",
                "conditions": [{"type": "Ready", "status": ready}],
            },
        })
    }

    #[test]
    fn pods_are_used_while_they_are_ready() {
        let port = json!({"port": 443, "targetPort": "hook"});
        let expected = "127.0.0.7:8443".parse().ok();
        assert_eq!(of_pod(&pod("True"), &port), expected);
        assert_eq!(of_pod(&pod("False"), &port), None);
        let mut deleted = pod("True");
        deleted["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
        assert_eq!(of_pod(&deleted, &port), None);
        let port = json!({"port": 443, "targetPort": 9443});
        assert_eq!(of_pod(&pod("True"), &port), "127.0.0.7:9443".parse().ok());
        let port = json!({"port": 443, "targetPort": "other"});
        assert_eq!(of_pod(&pod("True"), &port), None);
    }

    #[test]
    fn endpoints_are_found_by_the_name_of_the_port() {
        let slice = json!({
            "ports": [{"name": "other", "port": 1}, {"name": "https", "port": 8443}],
            "endpoints": [
                {"addresses": ["127.0.0.8"]},
                {"addresses": ["127.0.0.9"], "conditions": {"ready": false}},
            ],
        });
        let port = json!({"name": "https", "port": 443});
        let expected: Vec<SocketAddr> = "127.0.0.8:8443".parse().into_iter().collect();
        assert_eq!(of_slice(&slice, &port), expected);
        let endpoints = json!({"subsets": [{
            "addresses": [{"ip": "127.0.0.8"}], "ports": [{"name": "https", "port": 8443}],
        }]});
        assert_eq!(of_endpoints(&endpoints, &port), expected);
        assert!(of_endpoints(&endpoints, &json!({"port": 443})).is_empty());
    }
}
