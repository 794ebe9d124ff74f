//! Endpoints and EndpointSlices of Services.

use longshore_client::{DeleteOptions, Patch, View, kinds::Any};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

async fn view(fixture: &Fixture, kind: &str) -> View<Any> {
    let view = fixture.cluster.kind(kind).await.unwrap();
    view.in_namespace("default").unwrap()
}

async fn slices(fixture: &Fixture) -> Vec<Value> {
    let view = view(fixture, "endpointslices.discovery.k8s.io").await;
    let items = view.list().await.unwrap().items;
    let raw = items.iter().map(|item| item.raw().unwrap());
    raw.filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web")
        .collect()
}

async fn service(fixture: &Fixture, spec: Value) {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "labels": {"team": "x"}},
        "spec": spec});
    fixture.cluster.create(&service, None).await.unwrap();
}

/// Creates a pod and gives it an address, as the node does.
async fn pod(fixture: &Fixture, name: &str, address: &str, ready: bool) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
    "spec": {"nodeName": "n", "hostname": name, "subdomain": "web", "containers": [{
        "name": "main", "image": "i", "ports": [{"name": "http", "containerPort": 8080}],
    }]}});
    fixture.cluster.create(&pod, None).await.unwrap();
    set_ready(fixture, name, address, ready).await;
}

async fn set_ready(fixture: &Fixture, name: &str, address: &str, ready: bool) {
    let patch = Patch::merge(json!({"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" },
                        "lastTransitionTime": "2026-01-02T03:04:05Z"}],
    }}));
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    pods.patch_status(name, &patch).await.unwrap();
}

/// Waits until the Endpoints have these ready and other addresses.
async fn has_addresses(fixture: &Fixture, ready: &[&str], other: &[&str]) -> Value {
    let view = view(fixture, "endpoints").await;
    let list = |subset: &Value, field: &str| -> Vec<String> {
        let addresses = subset[field].as_array().into_iter().flatten();
        addresses
            .map(|one| one["ip"].as_str().unwrap().to_owned())
            .collect()
    };
    until("the addresses", async || {
        let endpoints = view.find("web").await.unwrap()?.raw().unwrap();
        let subset = &endpoints["subsets"][0];
        let same = list(subset, "addresses") == ready && list(subset, "notReadyAddresses") == other;
        same.then_some(endpoints)
    })
    .await
}

#[tokio::test]
async fn a_service_publishes_the_pods_that_it_selects() {
    let fixture = Fixture::with_node().await;
    service(
        &fixture,
        json!({"selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}),
    )
    .await;
    has_addresses(&fixture, &[], &[]).await;
    pod(&fixture, "a", "127.16.0.1", true).await;
    pod(&fixture, "b", "127.16.0.2", false).await;
    let endpoints = has_addresses(&fixture, &["127.16.0.1"], &["127.16.0.2"]).await;
    assert_eq!(
        endpoints["metadata"]["labels"],
        json!({
        "team": "x", "endpoints.kubernetes.io/managed-by": "endpoint-controller"})
    );
    let address = &endpoints["subsets"][0]["addresses"][0];
    assert_eq!(address["hostname"], "a");
    assert_eq!(address["nodeName"], "n");
    assert_eq!(address["targetRef"]["name"], "a");
    assert_eq!(
        endpoints["subsets"][0]["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );

    let slice = until("both endpoints", async || {
        let slices = slices(&fixture).await;
        let [one] = &slices[..] else { return None };
        (one["endpoints"].as_array()?.len() == 2).then(|| one.clone())
    })
    .await;
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["metadata"]["generateName"], "web-");
    assert_eq!(
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Service");
    assert!(
        slice["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"]
            .is_string()
    );
    let endpoints = slice["endpoints"].as_array().unwrap();
    let b = endpoints
        .iter()
        .find(|one| one["targetRef"]["name"] == "b")
        .unwrap();
    assert_eq!(
        b["conditions"],
        json!({"ready": false, "serving": false, "terminating": false})
    );
    assert_eq!(b["hostname"], "b");

    set_ready(&fixture, "b", "127.16.0.2", true).await;
    has_addresses(&fixture, &["127.16.0.1", "127.16.0.2"], &[]).await;
    // A pod that loses the label is no longer listed.
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    let other = Patch::merge(json!({"metadata": {"labels": {"app": "other"}}}));
    pods.patch("a", &other).await.unwrap();
    has_addresses(&fixture, &["127.16.0.2"], &[]).await;
    // A pod that is being deleted serves, but is not ready.
    pods.delete("b", &DeleteOptions::default()).await.unwrap();
    has_addresses(&fixture, &[], &[]).await;
    until("the terminating endpoint", async || {
        let slices = slices(&fixture).await;
        let conditions = &slices.first()?["endpoints"][0]["conditions"];
        (*conditions == json!({"ready": false, "serving": true, "terminating": true})).then_some(())
    })
    .await;
    fixture.end_pods(|_| None).await;
    until("the empty slice", async || {
        let slices = slices(&fixture).await;
        let [one] = &slices[..] else { return None };
        one["endpoints"]
            .as_array()
            .is_none_or(Vec::is_empty)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_headless_service_and_pods_that_are_not_ready() {
    let fixture = Fixture::with_node().await;
    pod(&fixture, "a", "127.16.0.1", false).await;
    service(
        &fixture,
        json!({"selector": {"app": "web"}, "clusterIP": "None",
        "publishNotReadyAddresses": true}),
    )
    .await;
    let endpoints = has_addresses(&fixture, &["127.16.0.1"], &[]).await;
    assert_eq!(
        endpoints["metadata"]["labels"]["service.kubernetes.io/headless"],
        ""
    );
    until("the endpoint", async || {
        let slices = slices(&fixture).await;
        let endpoint = &slices.first()?["endpoints"][0];
        (endpoint["conditions"]["ready"] == true && endpoint["conditions"]["serving"] == false)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn endpoints_are_deleted_with_their_service() {
    let mut fixture = Fixture::with_node().await;
    let subsets = json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]);
    let own = json!({"metadata": {"name": "own"}, "subsets": subsets});
    let all = view(&fixture, "endpoints").await;
    all.create(&own).await.unwrap();
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    service(&fixture, spec.clone()).await;
    pod(&fixture, "a", "127.16.0.1", true).await;
    has_addresses(&fixture, &["127.16.0.1"], &[]).await;
    let services = fixture.cluster.services().in_namespace("default").unwrap();
    let gone = async |fixture: &Fixture| {
        let endpoints = view(fixture, "endpoints").await;
        until("the deletion of the endpoints", async || {
            let gone = endpoints.find("web").await.unwrap().is_none();
            (gone && slices(fixture).await.is_empty()).then_some(())
        })
        .await;
    };
    services
        .delete("web", &DeleteOptions::default())
        .await
        .unwrap();
    gone(&fixture).await;
    // Endpoints that never had a Service remain.
    assert!(all.find("own").await.unwrap().is_some());
    // The same after a deletion while no controller runs.
    service(&fixture, spec).await;
    has_addresses(&fixture, &["127.16.0.1"], &[]).await;
    fixture.stop_controllers().await;
    services
        .delete("web", &DeleteOptions::default())
        .await
        .unwrap();
    fixture.start_controllers().await;
    gone(&fixture).await;
}

#[tokio::test]
async fn endpoints_of_a_service_without_selector_are_mirrored() {
    let fixture = Fixture::with_node().await;
    let own = json!({"apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default", "labels": {"own": "yes"}},
        "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}]});
    service(&fixture, json!({"ports": [{"port": 80}]})).await;
    fixture.cluster.create(&own, None).await.unwrap();
    let has = async |addresses: Value| {
        until("the slice", async || {
            let slices = slices(&fixture).await;
            let [one] = &slices[..] else { return None };
            (one["endpoints"][0]["addresses"] == addresses).then(|| one.clone())
        })
        .await
    };
    let slice = has(json!(["10.0.0.1"])).await;
    assert_eq!(
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
        "endpointslicemirroring-controller.k8s.io"
    );
    assert_eq!(slice["metadata"]["labels"]["own"], "yes");
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Endpoints");
    let endpoints = view(&fixture, "endpoints").await;
    let other = Patch::merge(json!({"subsets": [
        {"addresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 1}]}]}));
    endpoints.patch("web", &other).await.unwrap();
    let changed = has(json!(["10.0.0.2"])).await;
    assert_eq!(changed["metadata"]["name"], slice["metadata"]["name"]);
    // The Endpoints themselves are left alone.
    let kept = endpoints.fetch("web").await.unwrap().raw().unwrap();
    assert_eq!(kept["metadata"]["labels"], json!({"own": "yes"}));
    endpoints
        .delete("web", &DeleteOptions::default())
        .await
        .unwrap();
    until("the deletion", async || {
        slices(&fixture).await.is_empty().then_some(())
    })
    .await;
}
