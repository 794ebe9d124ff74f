//! The Service of the DNS server. Programs look it up by its name in every cluster.

use std::net::Ipv4Addr;

use longshore_client::{Cluster, Error};
use longshore_model::network::{FIRST_CLUSTER_IP, LAST_CLUSTER_IP};
use serde_json::{Value, json};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-dns";

/// Returns the address of the Service, which is created if it does not exist. Returns `None` if the
/// Service has no address of this cluster.
pub(super) async fn address(cluster: &Cluster) -> Result<Option<Ipv4Addr>, Error> {
    let services = cluster.services().in_namespace(NAMESPACE)?;
    let service: Value = match services.create(&object()).await {
        Ok(created) => created.raw()?,
        Err(error) if error.is_already_exists() => services.fetch(NAME).await?.raw()?,
        Err(error) => return Err(error),
    };
    Ok(cluster_ip(&service))
}

fn cluster_ip(service: &Value) -> Option<Ipv4Addr> {
    let address: Ipv4Addr = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
    (FIRST_CLUSTER_IP..=LAST_CLUSTER_IP)
        .contains(&address)
        .then_some(address)
}

/// The node itself listens at the Service's address, so the Service needs no endpoints.
fn object() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {
                "k8s-app": "kube-dns",
                "kubernetes.io/cluster-service": "true",
                "kubernetes.io/name": "CoreDNS",
            },
        },
        "spec": {
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_cluster_are_used() {
        let of = |address: Value| cluster_ip(&json!({"spec": {"clusterIP": address}}));
        let own = Ipv4Addr::new(127, 8, 0, 10);
        assert_eq!(of(json!("127.8.0.10")), Some(own));
        assert_eq!(of(json!("None")), None);
        assert_eq!(of(json!("10.96.0.10")), None);
        assert_eq!(of(Value::Null), None);
    }
}
