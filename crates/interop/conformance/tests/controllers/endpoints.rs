//! Endpoints and EndpointSlices.

use serde_json::{Value, json};

use crate::{
    kubelet::BEHAVIOR,
    objects::{list, template, text},
    plane::Plane,
};

#[tokio::test]
async fn endpoint_slices_have_the_addresses_of_selected_pods() {
    let plane = Plane::with_nodes(1).await;
    let pods = plane.path("v1", "pods");
    for name in ["a", "b"] {
        let mut pod = template(plane.namespace(), "web", "ready");
        pod["metadata"]["name"] = json!(name);
        plane.create(&pods, &pod).await;
    }
    let services = plane.path("v1", "services");
    let service = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    plane.create(&services, &service).await;
    let slices = plane.path("discovery.k8s.io/v1", "endpointslices");
    let slices = format!("{slices}?labelSelector=kubernetes.io%2Fservice-name%3Dweb");
    let ready = |slices: &[Value]| {
        let endpoints = slices.iter().flat_map(|slice| list(slice, "/endpoints"));
        let ready = endpoints.filter(|one| one["conditions"]["ready"] == true);
        let mut names: Vec<String> = ready
            .map(|one| text(one, "/targetRef/name").to_owned())
            .collect();
        names.sort();
        names
    };
    let both = plane
        .until_items(&slices, |slices| ready(slices) == ["a", "b"])
        .await;
    assert_eq!(both.len(), 1);
    assert_eq!(both[0]["addressType"], "IPv4");
    assert_eq!(both[0]["ports"][0]["port"], 8080);
    let address = |name: &str| {
        let mut endpoints = list(&both[0], "/endpoints").iter();
        let found = endpoints.find(|one| text(one, "/targetRef/name") == name);
        text(found.unwrap(), "/addresses/0").to_owned()
    };
    let pod = plane.get(&format!("{pods}/a")).await.ok();
    assert_eq!(address("a"), text(&pod, "/status/podIP"));
    let patch = json!({"metadata": {"annotations": {BEHAVIOR: "unready"}}});
    plane.merge(&format!("{pods}/b"), &patch).await;
    plane
        .until_items(&slices, |slices| ready(slices) == ["a"])
        .await;
    let endpoints = format!("{}/web", plane.path("v1", "endpoints"));
    plane
        .until(&endpoints, |endpoints| {
            let subset = &list(endpoints, "/subsets")
                .first()
                .cloned()
                .unwrap_or_default();
            list(subset, "/addresses").len() == 1 && list(subset, "/notReadyAddresses").len() == 1
        })
        .await;
    plane.delete(&format!("{services}/web")).await.ok();
    plane.until_items(&slices, <[Value]>::is_empty).await;
    plane.until_gone(&endpoints).await;
}

#[tokio::test]
async fn endpoints_of_a_service_without_selector_are_mirrored() {
    let plane = Plane::start().await;
    let services = plane.path("v1", "services");
    let service = json!({"metadata": {"name": "outside"}, "spec": {"ports": [{"port": 80}]}});
    plane.create(&services, &service).await;
    let endpoints = json!({
        "metadata": {"name": "outside"},
        "subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 8080}]}],
    });
    let path = plane.path("v1", "endpoints");
    plane.create(&path, &endpoints).await;
    let slices = plane.path("discovery.k8s.io/v1", "endpointslices");
    let slices = format!("{slices}?labelSelector=kubernetes.io%2Fservice-name%3Doutside");
    let mirrored = plane.until_items(&slices, |slices| slices.len() == 1).await;
    assert_eq!(
        mirrored[0]["endpoints"][0]["addresses"],
        json!(["192.0.2.7"])
    );
    let manager = "/metadata/labels/endpointslice.kubernetes.io~1managed-by";
    assert_eq!(
        text(&mirrored[0], manager),
        "endpointslicemirroring-controller.k8s.io"
    );
    plane.delete(&format!("{path}/outside")).await.ok();
    plane.until_items(&slices, <[Value]>::is_empty).await;
}
