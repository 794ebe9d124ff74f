//! Publishes the address of the API server as the endpoints of the Service `kubernetes`, and the
//! data with which aggregated API servers authenticate it and its clients.

use std::{collections::BTreeMap, net::SocketAddr};

use longshore_client::{Cluster, Error, Patch};
use serde_json::{Value, json};

/// The name of the Service, its Endpoints and its EndpointSlice.
const NAME: &str = "kubernetes";
/// The name of the ConfigMap in the namespace `kube-system`.
const AUTHENTICATION: &str = "extension-apiserver-authentication";
/// The value of the managed-by label, as in Kubernetes.
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

/// Writes the ConfigMap `extension-apiserver-authentication`. `client_ca` has the
/// certificates of the authorities of clients, in PEM format.
pub(crate) async fn publish_authentication(
    cluster: &Cluster,
    request_headers: Vec<(&'static str, String)>,
    client_ca: Option<String>,
) -> Result<(), Error> {
    let client_ca = client_ca.map(|pem| ("client-ca-file", pem));
    let data = request_headers.into_iter().chain(client_ca);
    let data: BTreeMap<&str, String> = data.collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": AUTHENTICATION},
        "data": data,
    });
    let maps = cluster.configmaps().in_namespace("kube-system")?;
    let patch = Patch::apply(object, MANAGER, true);
    maps.patch(AUTHENTICATION, &patch).await?;
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
