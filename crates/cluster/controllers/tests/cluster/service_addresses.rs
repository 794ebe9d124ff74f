//! IPAddresses of Services, and the default ServiceCIDR.

use longshore_client::{DeleteOptions, View, kinds::Any};
use serde_json::{Value, json};

use crate::fixture::{Fixture, has_condition, until};

async fn create_service(fixture: &Fixture, name: &str, address: &str) {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
    fixture.cluster.create(&service, None).await.unwrap();
}

/// Waits until the address belongs to the Service.
async fn belongs_to(view: &View<Any>, address: &str, service: &str) -> Value {
    until("the address", async || {
        let object = view.find(address).await.unwrap()?.raw().unwrap();
        (object["spec"]["parentRef"]["name"] == service).then_some(object)
    })
    .await
}

#[tokio::test]
async fn addresses_follow_their_services() {
    let fixture = Fixture::start().await;
    let addresses = fixture.cluster.kind("ipaddresses").await.unwrap();
    let services = fixture.cluster.services().in_namespace("default").unwrap();
    let kubernetes = services.fetch("kubernetes").await.unwrap().raw().unwrap();
    let own = kubernetes["spec"]["clusterIP"].as_str().unwrap();
    belongs_to(&addresses, own, "kubernetes").await;
    create_service(&fixture, "web", "127.9.7.7").await;
    create_service(&fixture, "headless", "None").await;
    let address = belongs_to(&addresses, "127.9.7.7", "web").await;
    let labels = json!({"ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    assert_eq!(address["metadata"]["labels"], labels);
    let parent = json!({"resource": "services", "namespace": "default",
        "name": "web"});
    assert_eq!(address["spec"]["parentRef"], parent);
    assert_eq!(addresses.list().await.unwrap().items.len(), 2);

    // A deleted address of a Service is created again.
    let options = DeleteOptions::default();
    addresses.delete("127.9.7.7", &options).await.unwrap();
    belongs_to(&addresses, "127.9.7.7", "web").await;
    let services = fixture.cluster.kind("services").await.unwrap();
    let services = services.in_namespace("default").unwrap();
    services.delete("web", &options).await.unwrap();
    until("the deletion", async || {
        addresses
            .find("127.9.7.7")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    create_service(&fixture, "next", "127.9.7.7").await;
    belongs_to(&addresses, "127.9.7.7", "next").await;
}

#[tokio::test]
async fn the_default_range_is_ready() {
    let fixture = Fixture::start().await;
    let ranges = fixture.cluster.kind("servicecidrs").await.unwrap();
    let is_ready = async || {
        until("the condition", async || {
            let range = ranges.find("kubernetes").await.unwrap()?.raw().unwrap();
            has_condition(&range["status"], "Ready").then_some(range)
        })
        .await
    };
    let range = is_ready().await;
    assert_eq!(range["spec"]["cidrs"], json!(["127.8.0.0/13"]));
    let message = "Kubernetes default Service CIDR is ready";
    assert_eq!(range["status"]["conditions"][0]["message"], message);
    ranges
        .delete("kubernetes", &DeleteOptions::default())
        .await
        .unwrap();
    is_ready().await;
}
