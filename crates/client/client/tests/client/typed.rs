//! The accessors of the common kinds, and their errors for absent fields.

use crate::fake::{Answer, Fake};
use longshore_client::{
    Error, Item, Kind,
    kinds::{Job, Namespace, Node, Pod, ReplicaSet, Secret, Service},
    typed::{AddressType, IngressPoint, NamespacePhase, PodPhase, SecretType},
};
use serde_json::{Value, json};

async fn item<K: Kind>(mut object: Value) -> Item<K> {
    object["metadata"] = json!({"name": "x", "resourceVersion": "1"});
    let fake = Fake::new([Answer::json(200, &json!({"items": [object]}))]);
    fake.cluster()
        .view::<K>()
        .list()
        .await
        .unwrap()
        .items
        .remove(0)
}

fn absent<T: std::fmt::Debug>(result: longshore_client::Result<T>) -> String {
    match result {
        Err(error @ Error::Status { .. }) => error.to_string(),
        other => panic!("a status error is expected: {other:?}"),
    }
}

#[tokio::test]
async fn pods_have_status_accessors() {
    let pod: Item<Pod> = item(json!({"spec": {"nodeName": "n1"}, "status": {
        "phase": "Failed", "podIP": "10.0.0.7", "hostIP": "fe80::1", "message": "m", "reason": "Evicted",
        "startTime": "2026-01-02T03:04:05Z",
        "containerStatuses": [{
            "name": "main", "image": "i", "imageID": "", "containerID": "c://1", "ready": false, "restartCount": 2,
            "state": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled",
                "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:04:06Z", "containerID": "c://1"}},
            "lastState": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
        }, {"name": "side", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}, "lastState": {}}],
    }}))
    .await;
    assert_eq!(pod.phase().unwrap(), PodPhase::Failed);
    assert!(pod.phase().unwrap().is_final());
    assert_eq!(pod.ip().unwrap().to_string(), "10.0.0.7");
    assert!(pod.host_ip().unwrap().is_ipv6());
    assert_eq!(
        (
            pod.message().unwrap().as_str(),
            pod.reason().unwrap().as_str()
        ),
        ("m", "Evicted")
    );
    assert_eq!(
        pod.start_time().unwrap().to_string(),
        "2026-01-02T03:04:05Z"
    );
    assert_eq!(pod.node().unwrap().as_deref(), Some("n1"));
    let containers = pod.containers().unwrap();
    let main = &containers[0];
    assert_eq!(
        (main.name().unwrap().as_str(), main.restart_count().unwrap()),
        ("main", 2)
    );
    assert!(!main.ready().unwrap());
    let state = main.state().unwrap();
    assert_eq!((state.state(), state.terminated()), ("terminated", true));
    assert_eq!(
        (state.exit_code().unwrap(), state.signal().unwrap()),
        (137, 9)
    );
    assert!(state.finished_at().unwrap() > state.started_at().unwrap());
    let last = main.last_state().unwrap();
    assert!(last.running() && last.started_at().is_ok());
    absent(last.reason());
    let side = &containers[1];
    assert_eq!(side.state().unwrap().reason().unwrap(), "ErrImagePull");
    absent(side.state().unwrap().exit_code());
    absent(side.last_state());
    assert_eq!(absent(side.image()), "Pod x has no container image");
    assert_eq!(side.pod(), &pod);
}

#[tokio::test]
async fn errors_of_an_empty_pod_name_the_missing_field() {
    let pod: Item<Pod> = item(json!({})).await;
    assert_eq!(absent(pod.phase()), "Pod x has no status.phase");
    absent(pod.ip());
    absent(pod.start_time());
    assert!(pod.containers().unwrap().is_empty());
    assert_eq!(pod.node().unwrap(), None);
    let odd: Item<Pod> = item(json!({"status": {"phase": "Dreaming", "podIP": "x"}})).await;
    assert_eq!(odd.phase().unwrap(), PodPhase::Other("Dreaming".into()));
    assert!(matches!(odd.ip(), Err(Error::Decode { .. })));
}

#[tokio::test]
async fn nodes_have_accessors_for_addresses_and_resources() {
    let node: Item<Node> = item(json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n1"}, {"type": "Odd", "address": "o"}],
        "capacity": {"cpu": "3500m", "memory": "2Gi", "nvidia.com/gpu": "4"},
        "allocatable": {"cpu": "2 apples"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }}))
    .await;
    let addresses = node.addresses().unwrap();
    assert_eq!(addresses[0].kind, AddressType::InternalIp);
    assert_eq!(addresses[0].ip().unwrap().to_string(), "10.0.0.1");
    assert_eq!(
        (addresses[1].text.as_str(), addresses[1].ip()),
        ("n1", None)
    );
    assert_eq!(addresses[2].kind, AddressType::Other("Odd".into()));
    let capacity = node.capacity().unwrap();
    assert_eq!(
        (capacity.cpu(), capacity.memory()),
        (Some(3.5), Some(2 << 30))
    );
    assert_eq!(capacity.get("nvidia.com/gpu").unwrap().value(), 4.0);
    assert!(matches!(node.allocatable(), Err(Error::Decode { .. })));
    assert!(node.holds("Ready").unwrap() && node.conditions().unwrap()[0].holds());
    let empty: Item<Node> = item(json!({})).await;
    assert!(empty.addresses().unwrap().is_empty());
    absent(empty.capacity());
    absent(empty.conditions());
}

#[tokio::test]
async fn absent_counts_are_0() {
    let set: Item<ReplicaSet> = item(json!({"status": {"replicas": 2}})).await;
    assert_eq!(set.observed_replicas().unwrap(), 2);
    assert_eq!(set.ready_replicas().unwrap(), 0);
    let wrong: Item<ReplicaSet> = item(json!({"status": {"replicas": "2"}})).await;
    assert!(matches!(
        wrong.observed_replicas(),
        Err(Error::Decode { .. })
    ));
}

#[tokio::test]
async fn objects_have_the_type_of_their_kind() {
    let job: Item<Job> = item(json!({"spec": {"completions": 4, "template": {}}})).await;
    let object: Job = job.object().unwrap();
    assert_eq!(object.spec.unwrap().completions, Some(4));
    // Items of lists lack both.
    assert_eq!(job.raw().unwrap()["apiVersion"], "batch/v1");
    assert_eq!(job.raw().unwrap()["kind"], "Job");
    let wrong: Item<Job> = item(json!({"spec": 1})).await;
    let text = wrong.object().unwrap_err().to_string();
    assert!(text.contains("jobs x"), "{text}");
    let another: Item<Job> = item(json!({"apiVersion": "batch/v2", "kind": "Job"})).await;
    assert!(another.object().is_err());
}

#[tokio::test]
async fn secrets_are_decoded_and_never_printed() {
    let secret: Item<Secret> =
        item(json!({"type": "kubernetes.io/tls", "data": {"a": "aGVsbG8=", "b": ""}})).await;
    let data = secret.data().unwrap();
    assert_eq!(
        (data["a"].as_slice(), data["b"].as_slice()),
        (&b"hello"[..], &b""[..])
    );
    assert_eq!(secret.secret_type().unwrap(), SecretType::Tls);
    assert_eq!(secret.spec().unwrap(), json!({}));
    let empty: Item<Secret> = item(json!({})).await;
    assert!(empty.data().unwrap().is_empty());
    for data in [
        json!({"a": "s3cret!"}),
        json!("s3cret!"),
        json!({"a": {"b": "s3cret!"}}),
    ] {
        let bad: Item<Secret> = item(json!({ "data": data })).await;
        let text = bad.data().unwrap_err().to_string();
        assert!(
            text.contains("secrets x") && !text.contains("s3cret"),
            "{text}"
        );
        let text = bad.object().unwrap_err().to_string();
        assert!(
            text.contains("secrets x") && !text.contains("s3cret"),
            "{text}"
        );
        let text = bad.field::<u8>(&["data"]).unwrap_err().to_string();
        assert!(
            text.contains("data of secrets x") && !text.contains("s3cret"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn services_and_namespaces_have_accessors() {
    let service: Item<Service> = item(
        json!({"spec": {"clusterIP": "None"}, "status": {"loadBalancer":
        {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "lb.example.org"}, {"ip": "1.2.3.4"}]}}}),
    )
    .await;
    let ingress: Vec<IngressPoint> = service
        .loadbalancer_ingress()
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(
        ingress,
        [
            IngressPoint::Ip([1, 2, 3, 4].into()),
            IngressPoint::Hostname("lb.example.org".into())
        ]
    );
    let namespace: Item<Namespace> = item(json!({"status": {"phase": "Terminating"}})).await;
    assert_eq!(namespace.phase().unwrap(), NamespacePhase::Terminating);
}
