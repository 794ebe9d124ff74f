//! Publishes the address of the API server as the endpoints of the Service
//! `kubernetes`.

use std::net::SocketAddr;

use longshore_client::{Cluster, Error, Patch};
use serde_json::{Value, json};

/// The name of the Service, its Endpoints and its EndpointSlice.
const NAME: &str = "kubernetes";
/// The value of their managed-by label, as in Kubernetes.
const MANAGER: &str = "kube-apiserver";

/// Writes the address of the API server into the Endpoints and the EndpointSlice.
pub(crate) async fn publish(cluster: &Cluster, address: SocketAddr) -> Result<(), Error> {
    for (word, object) in [
        ("endpoints", endpoints(address)),
        ("endpointslices.discovery.k8s.io", slice(address)),
    ] {
        let view = cluster.kind(word).await?.in_namespace("default")?;
        view.patch(NAME, &Patch::apply(object, MANAGER, true))
            .await?;
    }
    Ok(())
}

fn port(address: SocketAddr) -> Value {
    json!({"name": "https", "port": address.port(), "protocol": "TCP"})
}

fn endpoints(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": NAME,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": address.ip().to_string()}],
            "ports": [port(address)],
        }],
    })
}

fn slice(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": NAME,
            "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{
            "addresses": [address.ip().to_string()],
            "conditions": {"ready": true},
        }],
        "ports": [port(address)],
    })
}
