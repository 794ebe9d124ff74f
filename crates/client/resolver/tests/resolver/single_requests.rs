//! Single requests: specs, masters, accelerators, the own task.

use longshore_client::Patch;
use longshore_embedded::FaultRule;
use longshore_resolver::{Assembly, Identity, Resolver};
use serde_json::json;

use crate::common::Fixture;

#[tokio::test]
async fn the_defaults_are_those_of_tensorflow() {
    let fixture = Fixture::tensorflow().await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let spec = resolver.cluster_spec().await.unwrap();
    let expected = json!({"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]});
    assert_eq!(spec.as_dict(), expected);
    assert_eq!(resolver.environment(), "");
    assert_eq!(resolver.rpc_layer(), "grpc");
    assert_eq!((resolver.task_type(), resolver.task_id()), (None, None));
    let nodes = resolver.with_assembly(Assembly::tensorflow());
    let spec = nodes.cluster_spec().await.unwrap();
    let expected = json!({"worker": ["192.168.0.1:8470", "192.168.0.1:8470", "192.168.0.1:8470"]});
    assert_eq!(spec.as_dict(), expected);
}

#[tokio::test]
async fn a_master_is_the_address_of_a_task() {
    let fixture = Fixture::start().await;
    for (index, ip) in ["10.1.2.3", "10.1.2.4", "10.1.2.5"].iter().enumerate() {
        let name = format!("worker-{index}");
        fixture.pod(&name, "tensorflow", ip).await;
    }
    let resolver = Resolver::new(fixture.cluster.clone());
    let master = async |kind, id, layer| resolver.master(kind, id, layer).await.unwrap();
    assert_eq!(
        master(Some("worker"), Some(2), None).await,
        "grpc://10.1.2.5:8470"
    );
    assert_eq!(
        master(Some("worker"), Some(0), Some("")).await,
        "10.1.2.3:8470"
    );
    assert_eq!(master(Some("worker"), None, None).await, "");
    assert_eq!(master(None, Some(0), None).await, "");
    let own = resolver
        .clone()
        .with_task(Some("worker"), Some(1))
        .with_rpc_layer("http");
    let master = async |id| own.master(None, id, None).await.unwrap();
    assert_eq!(master(None).await, "http://10.1.2.4:8470");
    assert_eq!(master(Some(0)).await, "http://10.1.2.3:8470");
    let error = resolver
        .master(Some("worker"), Some(3), None)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "No task with index 3 in job 'worker'");
}

#[tokio::test]
async fn one_request_keeps_the_order_of_roles_and_selectors() {
    let fixture = Fixture::start().await;
    fixture.pod("z", "worker1", "10.0.0.1").await;
    fixture.pod("a", "worker2", "10.0.0.2").await;
    fixture.pod("p", "ps", "10.0.0.3").await;
    let resolver = fixture.resolver(&[
        ("worker", &["job-name=worker1", "job-name=worker2"]),
        ("ps", &["job-name=ps"]),
    ]);
    let lists = FaultRule::delay(std::time::Duration::ZERO)
        .verbs(["list"])
        .resource("pods");
    let lists = fixture.embedded.faults().add(lists).unwrap();
    let spec = resolver.cluster_spec().await.unwrap();
    assert_eq!(
        spec.as_dict(),
        json!({"worker": ["10.0.0.1:8470", "10.0.0.2:8470"], "ps": ["10.0.0.3:8470"]})
    );
    assert_eq!(fixture.embedded.faults().fired(&lists), 1);
}

#[tokio::test]
async fn a_failed_pod_is_an_error_unless_failed_pods_are_skipped() {
    let fixture = Fixture::tensorflow().await;
    fixture
        .status("tensorflow-abc123", json!({"phase": "Failed"}))
        .await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let error = resolver.cluster_spec().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Pod \"tensorflow-abc123\" is not running; phase: \"Failed\""
    );
    let lenient = Assembly {
        policy: longshore_resolver::Policy::skip_finished(),
        ..Assembly::default()
    };
    let spec = resolver
        .with_assembly(lenient)
        .cluster_spec()
        .await
        .unwrap();
    assert_eq!(spec.num_tasks("worker"), Ok(2));
}

#[tokio::test]
async fn only_the_namespace_is_searched_unless_all_are_requested() {
    let fixture = Fixture::start().await;
    fixture.pod("w-0", "tensorflow", "10.0.0.1").await;
    let namespaces = fixture.cluster.namespaces();
    namespaces
        .create(&json!({"metadata": {"name": "another"}}))
        .await
        .unwrap();
    let there = fixture.cluster.pods().in_namespace("another").unwrap();
    let twin = json!({
        "metadata": {"name": "w-0", "labels": {"job-name": "tensorflow"}},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    });
    there.create(&twin).await.unwrap();
    let runs = Patch::merge(json!({"status": {"phase": "Running", "podIP": "fd00::2"}}));
    there.patch_status("w-0", &runs).await.unwrap();
    let spec = async |namespace| {
        let resolver = Resolver::new(fixture.cluster.clone()).with_namespace(namespace);
        resolver.cluster_spec().await.unwrap().as_dict()
    };
    assert_eq!(
        spec(Some("default")).await,
        json!({"worker": ["10.0.0.1:8470"]})
    );
    assert_eq!(
        spec(Some("another")).await,
        json!({"worker": ["[fd00::2]:8470"]})
    );
    assert_eq!(
        spec(None).await,
        json!({"worker": ["[fd00::2]:8470", "10.0.0.1:8470"]})
    );
}

#[tokio::test]
async fn accelerators_of_tasks_and_their_models() {
    let fixture = Fixture::start().await;
    let node =
        json!({"metadata": {"name": "big", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100"}}});
    fixture.cluster.nodes().create(&node).await.unwrap();
    for (name, node, gpus) in [
        ("w-0", "big", "8"),
        ("w-1", "gone", "2"),
        ("w-2", "big", "0"),
    ] {
        let limits = json!({"nvidia.com/gpu": gpus, "cpu": "1"});
        let pod = json!({
            "metadata": {"name": name, "labels": {"job-name": "tensorflow"}},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": "any", "resources": {"limits": limits}}],
            },
        });
        fixture.pods.create(&pod).await.unwrap();
        fixture.runs(name, "10.0.0.1").await;
    }
    let resolver = Resolver::new(fixture.cluster.clone());
    let found = serde_json::to_value(resolver.accelerators().await.unwrap()).unwrap();
    assert_eq!(
        found,
        json!([
            {"role": "worker", "index": 0, "resources": {"nvidia.com/gpu": 8}, "model": "NVIDIA-H100"},
            {"role": "worker", "index": 1, "resources": {"nvidia.com/gpu": 2}, "model": null},
            {"role": "worker", "index": 2, "resources": {}, "model": null},
        ])
    );
    let number = async |role, index| {
        let found = resolver.num_accelerators(role, index).await;
        serde_json::to_value(found.unwrap()).unwrap()
    };
    assert_eq!(number(Some("worker"), Some(0)).await, json!({"GPU": 8}));
    assert_eq!(number(Some("worker"), Some(2)).await, json!({}));
    // The common accelerators of all tasks.
    assert_eq!(number(None, None).await, json!({}));
    let error = resolver
        .num_accelerators(Some("worker"), Some(7))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "No task with index 7 in job 'worker'");
}

#[tokio::test]
async fn a_pod_finds_its_own_task() {
    let fixture = Fixture::tensorflow().await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let variables = |name: &str| (name == "HOSTNAME").then(|| "tensorflow-def456".to_owned());
    let identity = Identity::from_variables(variables);
    let task = resolver.task_of(&identity).await.unwrap();
    assert_eq!((task.role.as_str(), task.index), ("worker", 2));
    // The process that runs this test is not one of the tasks.
    let error = resolver.with_own_task().await.unwrap_err().to_string();
    assert!(error.contains("is not one of the 3 tasks"), "{error}");
}
