//! Finds the pod and the port of a proxied request.

use std::sync::Arc;

use longshore_engine::{Error, ListRequest, Object, ReadVersion};
use longshore_model::StatusReason;
use longshore_node_api::ContainerRef;
use serde_json::Value;

use super::location::Location;
use crate::{call::Call, status_error::StatusError};

/// Label of an EndpointSlice that names its Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// A port of a pod.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) pod: ContainerRef,
    address: String,
    pub(super) port: u16,
}

impl Destination {
    /// Address and port.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// The pod, for limits and messages.
    pub(super) fn described(&self) -> String {
        let ContainerRef { namespace, pod, .. } = &self.pod;
        format!("the pod {namespace}/{pod}")
    }

    fn new(pod: &Object, port: u16) -> Option<Self> {
        let value = pod.value();
        let address = value["status"]["podIP"].as_str().unwrap_or_default();
        (!address.is_empty()).then(|| Self {
            pod: ContainerRef {
                namespace: pod.namespace().unwrap_or_default().to_owned(),
                pod: pod.name().to_owned(),
                uid: pod.uid().to_owned(),
                container: String::new(),
            },
            address: address.to_owned(),
            port,
        })
    }
}

fn get(
    call: &Call,
    (group, version, plural): (&str, &str, &str),
    namespace: &str,
    name: &str,
) -> Result<Arc<Object>, StatusError> {
    let engine = &call.shared.engine;
    let kind = engine.find(group, version, plural);
    let kind = kind.ok_or_else(StatusError::unknown_path)?;
    Ok(engine.get(&kind, Some(namespace), name, ReadVersion::Latest)?)
}

/// The port of a pod. Without a number, it is the pod's first port, or the port of the scheme.
pub(super) fn of_pod(
    call: &Call,
    namespace: &str,
    location: &Location,
) -> Result<Destination, StatusError> {
    let pod = get(call, ("", "v1", "pods"), namespace, &location.name)?;
    let port = match location.port.as_str() {
        "" => first_port(&pod.value()).unwrap_or(if location.is_tls { 443 } else { 80 }),
        port => port.parse().map_err(|_| {
            StatusError::bad_request(format!("port {port:?} of a pod is not a port number"))
        })?,
    };
    Destination::new(&pod, port).ok_or_else(|| StatusError::bad_request("address not allowed"))
}

fn first_port(pod: &Value) -> Option<u16> {
    let mut containers = pod["spec"]["containers"].as_array()?.iter();
    let port = containers.find_map(|one| one["ports"][0]["containerPort"].as_u64())?;
    u16::try_from(port).ok()
}

/// A ready pod of a Service.
pub(super) fn of_service(
    call: &Call,
    namespace: &str,
    location: &Location,
) -> Result<Destination, StatusError> {
    let name = &location.name;
    let unavailable = |text: String| StatusError::new(StatusReason::ServiceUnavailable, text);
    let service = get(call, ("", "v1", "services"), namespace, name)?.value();
    let port_name = match location.port.parse::<u16>() {
        Ok(number) => {
            let ports = service["spec"]["ports"].as_array();
            let mut ports = ports.into_iter().flatten();
            let port = ports.find(|port| port["port"].as_u64() == Some(number.into()));
            let port = port.ok_or_else(|| {
                unavailable(format!(
                    "no service port {number} found for service {name:?}"
                ))
            })?;
            port["name"].as_str().unwrap_or_default().to_owned()
        }
        Err(_) => location.port.clone(),
    };
    let mut candidates = Vec::new();
    for slice in slices(call, namespace, name)? {
        let slice = slice.value();
        let ports = slice["ports"].as_array().into_iter().flatten();
        let mut ports = ports.filter(|port| port["name"].as_str().unwrap_or_default() == port_name);
        let port = ports.next().and_then(|port| port["port"].as_u64());
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else {
            continue;
        };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            candidates.extend(destination(call, namespace, endpoint, port));
        }
    }
    let none = || unavailable(format!("no endpoints available for service {name:?}"));
    let count = candidates.len();
    if count == 0 {
        return Err(none());
    }
    let chosen = rand::random_range(0..count);
    candidates.into_iter().nth(chosen).ok_or_else(none)
}

/// The destination of a ready endpoint. As in Kubernetes, requests are forwarded only to addresses
/// of pods, so that an EndpointSlice cannot name other addresses.
fn destination(call: &Call, namespace: &str, endpoint: &Value, port: u16) -> Option<Destination> {
    let target = &endpoint["targetRef"];
    if endpoint["conditions"]["ready"] == false || target["kind"] != "Pod" {
        return None;
    }
    let pod = get(
        call,
        ("", "v1", "pods"),
        namespace,
        target["name"].as_str()?,
    )
    .ok()?;
    let found = Destination::new(&pod, port)?;
    let addresses = endpoint["addresses"].as_array()?;
    addresses
        .iter()
        .any(|address| *address == found.address.as_str())
        .then_some(found)
}

/// The EndpointSlices of a Service.
fn slices(call: &Call, namespace: &str, service: &str) -> Result<Vec<Arc<Object>>, Error> {
    let engine = &call.shared.engine;
    let Some(kind) = engine.find("discovery.k8s.io", "v1", "endpointslices") else {
        return Ok(Vec::new());
    };
    let mut request = ListRequest::of(kind);
    request.namespace = Some(namespace.to_owned());
    let selector = format!("{SERVICE_LABEL}={service}").parse();
    let Ok(labels) = selector else {
        return Ok(Vec::new());
    };
    request.labels = labels;
    Ok(engine.list(&request)?.items)
}
