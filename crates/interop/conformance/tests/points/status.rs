//! Points 32 to 43: the status of each kind.

use std::net::IpAddr;

use longshore::client::{
    DeleteOptions, FieldSelector, Item, Patch,
    kinds::{
        DaemonSet, Deployment, Namespace, Node, Pod, ReplicaSet, ReplicationController, Secret,
        Service,
    },
    typed::{AddressType, IngressPoint, NamespacePhase, PodPhase, SecretType},
};
use serde_json::{Value, json};

use crate::common::{Fixture, absent, workload};

async fn node(fixture: &Fixture, status: &Value) -> Item<Node> {
    let nodes = fixture.cluster.nodes();
    // Names of cluster-scoped objects start with the test's namespace.
    let data = json!({"metadata": {"name": fixture.namespace()}});
    nodes.create(&data).await.unwrap();
    let patch = Patch::merge(json!({ "status": status }));
    nodes
        .patch_status(fixture.namespace(), &patch)
        .await
        .unwrap()
}

#[tokio::test]
async fn point_32_addresses_of_nodes() {
    let fixture = Fixture::start().await;
    let node = node(&fixture, &json!({"addresses": [
        {"type": "InternalIP", "address": "10.0.0.7"}, {"type": "ExternalIP", "address": "fe80::1"},
        {"type": "Hostname", "address": "seven"}, {"type": "Pigeon", "address": "coop"},
    ]}))
    .await;
    let addresses = node.addresses().unwrap();
    let kinds: Vec<_> = addresses
        .iter()
        .map(|address| address.kind.clone())
        .collect();
    let other = AddressType::Other("Pigeon".into());
    assert_eq!(
        kinds,
        [
            AddressType::InternalIp,
            AddressType::ExternalIp,
            AddressType::Hostname,
            other
        ]
    );
    assert_eq!(
        addresses[0].ip(),
        Some("10.0.0.7".parse::<IpAddr>().unwrap())
    );
    assert!(addresses[1].ip().unwrap().is_ipv6());
    assert_eq!(
        (addresses[2].ip(), addresses[2].text.as_str()),
        (None, "seven")
    );
    let patch = Patch::merge(json!({"status": {"addresses": null}}));
    let bare = node.patch_status(&patch).await.unwrap();
    assert!(bare.addresses().unwrap().is_empty());
    bare.delete(&DeleteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn point_33_capacity_and_conditions_of_nodes() {
    let fixture = Fixture::start().await;
    let node = node(
        &fixture,
        &json!({
            "capacity": {"cpu": "1500m", "memory": "2Gi", "pods": "110", "nvidia.com/gpu": "4"},
            "allocatable": {"cpu": "1", "memory": "1500M"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }),
    )
    .await;
    let capacity = node.capacity().unwrap();
    assert_eq!(
        (capacity.cpu(), capacity.memory()),
        (Some(1.5), Some(2 << 30))
    );
    assert_eq!(capacity.get("nvidia.com/gpu").unwrap().value(), 4.0);
    assert_eq!(node.allocatable().unwrap().memory(), Some(1_500_000_000));
    let ready = &node.conditions().unwrap()[0];
    assert!(ready.kind == "Ready" && ready.holds() && node.holds("Ready").unwrap());
    node.delete(&DeleteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn point_34_phases_of_namespaces() {
    let fixture = Fixture::start().await;
    let namespaces = fixture.cluster.namespaces();
    let data = json!({"metadata": {"generateName": "x-"}});
    let namespace: Item<Namespace> = namespaces.create(&data).await.unwrap();
    assert_eq!(namespace.phase().unwrap(), NamespacePhase::Active);
    namespace.delete(&DeleteOptions::default()).await.unwrap();
    let going = namespaces.find(namespace.name()).await.unwrap();
    if let Some(going) = going {
        assert_eq!(going.phase().unwrap(), NamespacePhase::Terminating);
        // The server returns 409 for the second delete; the client ignores it.
        going.delete(&DeleteOptions::default()).await.unwrap();
    }
}

#[tokio::test]
async fn point_35_counts_of_replica_sets_and_replication_controllers() {
    let fixture = Fixture::start().await;
    let status = json!({
        "availableReplicas": 1, "fullyLabeledReplicas": 3, "observedGeneration": 1,
        "replicas": 4, "readyReplicas": 2,
    });
    let spec = workload(4);
    let set: Item<ReplicaSet> = fixture.with_status("a", &spec, &status).await;
    let mut of_controller = spec.clone();
    of_controller["selector"] = json!({"app": "x"});
    let controller: Item<ReplicationController> =
        fixture.with_status("a", &of_controller, &status).await;
    macro_rules! check {
        ($item:ident) => {
            assert_eq!($item.available_replicas().unwrap(), 1);
            assert_eq!($item.fully_labeled_replicas().unwrap(), 3);
            assert_eq!($item.observed_generation().unwrap(), 1);
            assert_eq!($item.observed_replicas().unwrap(), 4);
            assert_eq!($item.ready_replicas().unwrap(), 2);
        };
    }
    check!(set);
    check!(controller);
    let bare = fixture.view::<ReplicaSet>();
    let bare = bare
        .create(&json!({"metadata": {"name": "b"}, "spec": spec}))
        .await
        .unwrap();
    assert_eq!(bare.ready_replicas().unwrap(), 0);
}

#[tokio::test]
async fn point_36_counts_of_daemon_sets() {
    let fixture = Fixture::start().await;
    let mut spec = workload(1);
    spec.as_object_mut().unwrap().remove("replicas");
    let status = json!({
        "currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 3,
        "numberReady": 1,
    });
    let set: Item<DaemonSet> = fixture.with_status("a", &spec, &status).await;
    assert_eq!(set.current_number_scheduled().unwrap(), 1);
    assert_eq!(set.desired_number_scheduled().unwrap(), 2);
    assert_eq!(set.number_misscheduled().unwrap(), 3);
    assert_eq!(set.number_ready().unwrap(), 1);
    assert_eq!(set.number_available().unwrap(), 0);
}

#[tokio::test]
async fn point_37_counts_of_deployments() {
    let fixture = Fixture::start().await;
    let status = json!({
        "availableReplicas": 2, "observedGeneration": 1, "readyReplicas": 2, "replicas": 4,
        "updatedReplicas": 3,
    });
    let deployment: Item<Deployment> = fixture.with_status("a", &workload(4), &status).await;
    assert_eq!(deployment.available_replicas().unwrap(), 2);
    assert_eq!(deployment.observed_generation().unwrap(), 1);
    assert_eq!(deployment.observed_replicas().unwrap(), 4);
    assert_eq!(deployment.updated_replicas().unwrap(), 3);
    assert_eq!(deployment.ready_replicas().unwrap(), 2);
    assert_eq!(deployment.unavailable_replicas().unwrap(), 0);
    let lacking = Patch::merge(json!({"status": {"unavailableReplicas": 2}}));
    let lacking = deployment.patch_status(&lacking).await.unwrap();
    assert_eq!(lacking.unavailable_replicas().unwrap(), 2);
}

async fn pod(fixture: &Fixture, status: &Value) -> Item<Pod> {
    fixture
        .test
        .create(
            &fixture.test.path("v1", "serviceaccounts"),
            &json!({"metadata": {"name": "quiet"}}),
        )
        .await;
    let spec = json!({
        "serviceAccountName": "quiet", "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "image"}],
    });
    fixture.with_status("a", &spec, status).await
}

#[tokio::test]
async fn point_38_pods() {
    let fixture = Fixture::start().await;
    let pod = pod(&fixture, &json!({
        "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
        "hostIP": "fe80::1", "message": "m", "reason": "r", "startTime": "2026-01-02T03:04:05Z",
        "containerStatuses": [{"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0}],
    }))
    .await;
    assert_eq!(pod.phase().unwrap(), PodPhase::Running);
    assert_eq!(pod.ip().unwrap(), "10.0.0.1".parse::<IpAddr>().unwrap());
    assert!(pod.host_ip().unwrap().is_ipv6());
    assert_eq!(
        (pod.message().unwrap(), pod.reason().unwrap()),
        ("m".into(), "r".into())
    );
    assert_eq!(
        pod.start_time().unwrap().to_string(),
        "2026-01-02T03:04:05Z"
    );
    assert_eq!(pod.containers().unwrap().len(), 1);
    let patch = Patch::json(json!([
        {"op": "remove", "path": "/status/podIP"}, {"op": "remove", "path": "/status/podIPs"},
        {"op": "remove", "path": "/status/reason"},
    ]));
    let bare = pod.patch_status(&patch).await.unwrap();
    assert_eq!(absent(bare.ip()), "status.podIP");
    assert_eq!(absent(bare.reason()), "status.reason");
}

#[tokio::test]
async fn point_39_containers() {
    let fixture = Fixture::start().await;
    let pod = pod(&fixture, &json!({"containerStatuses": [{
        "name": "main", "image": "image:1", "imageID": "sha256:1", "containerID": "c://1",
        "ready": true, "restartCount": 2, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
        "lastState": {"terminated": {"exitCode": 1}},
    }]}))
    .await;
    let containers = pod.containers().unwrap();
    let main = &containers[0];
    assert_eq!(main.pod(), &pod);
    assert_eq!(main.raw()["name"], "main");
    assert_eq!(
        (main.name().unwrap(), main.id().unwrap()),
        ("main".into(), "c://1".into())
    );
    assert_eq!(
        (main.image().unwrap(), main.image_id().unwrap()),
        ("image:1".into(), "sha256:1".into())
    );
    assert_eq!(
        (main.ready().unwrap(), main.restart_count().unwrap()),
        (true, 2)
    );
    assert!(main.state().unwrap().running());
    assert_eq!(main.last_state().unwrap().exit_code().unwrap(), 1);
}

#[tokio::test]
async fn point_40_states_of_containers() {
    let fixture = Fixture::start().await;
    let one = |name: &str, state: Value| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let pod = pod(
        &fixture,
        &json!({"containerStatuses": [
            one("w", json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}})),
            one("r", json!({"running": {"startedAt": "2026-01-02T03:04:05Z"}})),
            one("t", json!({"terminated": {
                "exitCode": 137, "signal": 9, "reason": "OOMKilled", "containerID": "c://1",
                "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:04:06Z",
            }})),
        ]}),
    )
    .await;
    let states: Vec<_> = pod
        .containers()
        .unwrap()
        .iter()
        .map(|container| container.state().unwrap())
        .collect();
    let words: Vec<_> = states.iter().map(|state| state.state()).collect();
    assert_eq!(words, ["waiting", "running", "terminated"]);
    let [waiting, running, terminated] = &states[..] else {
        unreachable!()
    };
    assert_eq!(waiting.reason().unwrap(), "ErrImagePull");
    assert_eq!(waiting.message().unwrap(), "no such image");
    assert_eq!(
        absent(waiting.started_at()),
        "container startedAt while waiting"
    );
    assert_eq!(
        running.started_at().unwrap().to_string(),
        "2026-01-02T03:04:05Z"
    );
    assert_eq!(absent(running.reason()), "container reason while running");
    assert_eq!(
        absent(running.exit_code()),
        "container exitCode while running"
    );
    assert_eq!(
        (
            terminated.exit_code().unwrap(),
            terminated.signal().unwrap()
        ),
        (137, 9)
    );
    assert_eq!(terminated.reason().unwrap(), "OOMKilled");
    assert_eq!(terminated.container_id().unwrap(), "c://1");
    assert!(terminated.finished_at().unwrap() > terminated.started_at().unwrap());
    assert_eq!(absent(terminated.message()), "container state message");
}

#[tokio::test]
async fn point_41_ingress_of_load_balancers() {
    let fixture = Fixture::start().await;
    let spec = json!({"type": "LoadBalancer", "ports": [{"port": 80}]});
    let status = json!({"loadBalancer": {"ingress": [
        {"ip": "10.1.1.1"}, {"hostname": "lb.example.com"}, {"ip": "fe80::1"},
    ]}});
    let service: Item<Service> = fixture.with_status("a", &spec, &status).await;
    let points = service.loadbalancer_ingress().unwrap();
    assert!(points.contains(&IngressPoint::Ip("10.1.1.1".parse().unwrap())));
    assert!(points.contains(&IngressPoint::Hostname("lb.example.com".into())));
    assert_eq!(points.len(), 3);
    let plain = json!({"metadata": {"name": "b"}, "spec": {"ports": [{"port": 80}]}});
    let plain = fixture.view::<Service>().create(&plain).await.unwrap();
    assert!(plain.loadbalancer_ingress().unwrap().is_empty());
}

#[tokio::test]
async fn point_42_secrets() {
    let fixture = Fixture::start().await;
    let secrets = fixture.view::<Secret>();
    let data =
        json!({"metadata": {"name": "a"}, "data": {"k": "AP8="}, "stringData": {"t": "text"}});
    let secret = secrets.create(&data).await.unwrap();
    let contents = secret.data().unwrap();
    assert_eq!(
        (&contents["k"][..], &contents["t"][..]),
        (&[0, 255][..], &b"text"[..])
    );
    assert_eq!(secret.secret_type().unwrap(), SecretType::Opaque);
    assert_eq!(secret.spec().unwrap(), json!({}));
    let own = json!({"metadata": {"name": "b"}, "type": "example.com/own"});
    let own = secrets.create(&own).await.unwrap();
    assert_eq!(
        own.secret_type().unwrap(),
        SecretType::Other("example.com/own".into())
    );
    assert!(own.data().unwrap().is_empty());
}

#[tokio::test]
async fn point_43_unknown_values_are_kept() {
    let fixture = Fixture::start().await;
    let phases = [
        ("Running", PodPhase::Running),
        ("Dreaming", PodPhase::Other("Dreaming".into())),
    ];
    for (word, phase) in phases {
        assert_eq!(PodPhase::from(word), phase);
        assert_eq!(phase.to_string(), word);
    }
    assert_eq!(
        NamespacePhase::from("Terminating"),
        NamespacePhase::Terminating
    );
    assert_eq!(SecretType::from("kubernetes.io/tls"), SecretType::Tls);
    let pods = fixture
        .view::<Pod>()
        .fields(FieldSelector::everything().with("status.phase", "Running"));
    assert!(pods.list().await.unwrap().items.is_empty());
}
