//! Comparison with TensorFlow's own `KubernetesClusterResolver` on one cluster: the same
//! results where TensorFlow is right, the documented difference elsewhere.

use longshore::{
    Cluster,
    client::{LabelSelector, Patch},
    embedded::{EmbeddedCluster, Options},
    resolver::{Assembly, Resolver},
};
use serde_json::{Value, json};

use crate::install::ask;

/// A cluster that both resolvers use; TensorFlow connects to it over TCP.
struct Both {
    embedded: EmbeddedCluster,
    cluster: Cluster,
}

impl Both {
    async fn start() -> Self {
        let options = Options {
            listen: Some(([127, 0, 0, 1], 0).into()),
            ..Options::server()
        };
        let embedded = EmbeddedCluster::start(options).await.unwrap();
        let cluster = embedded.cluster();
        Self { embedded, cluster }
    }

    async fn pod(&self, name: &str, job: &str, number: u8, phase: &str) {
        let pods = self.cluster.pods().in_namespace("default").unwrap();
        let pod = json!({
            "metadata": {"name": name, "labels": {"job-name": job}},
            "spec": {"containers": [{"name": "main", "image": "any"}]},
        });
        pods.create(&pod).await.unwrap();
        let status = json!({
            "phase": phase, "podIP": format!("10.0.0.{number}"), "hostIP": format!("192.168.0.{number}"),
        });
        let patch = Patch::merge(json!({"status": status}));
        pods.patch_status(name, &patch).await.unwrap();
    }

    /// TensorFlow's result for a mapping.
    fn theirs(&self, mapping: &[(&str, &[&str])]) -> Value {
        let jobs = mapping
            .iter()
            .map(|(role, selectors)| ((*role).to_owned(), json!(selectors)));
        let question = json!({
            "kubeconfig": self.embedded.kubeconfig_path().unwrap(),
            "mapping": jobs.collect::<Value>(),
        });
        // The server runs on this runtime and has to respond while the script runs.
        tokio::task::block_in_place(|| ask("tensorflow", "resolve.py", &question))
    }

    fn ours(&self, mapping: &[(&str, &[&str])], how: Assembly) -> Resolver {
        let selectors = |texts: &[&str]| -> Vec<LabelSelector> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let mapping = mapping
            .iter()
            .map(|(role, texts)| (*role, selectors(texts)));
        Resolver::new(self.cluster.clone())
            .with_mapping(mapping)
            .with_assembly(how)
    }

    async fn spec(&self, mapping: &[(&str, &[&str])], how: Assembly) -> Result<Value, String> {
        let spec = self.ours(mapping, how).cluster_spec().await;
        spec.map(|spec| spec.as_dict())
            .map_err(|error| error.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "cargo xtask test --frameworks"]
async fn the_same_spec_and_the_same_master() {
    let both = Both::start().await;
    for (number, name) in [
        "tensorflow-abc123",
        "tensorflow-def456",
        "tensorflow-999999",
    ]
    .iter()
    .enumerate()
    {
        both.pod(name, "tensorflow", u8::try_from(number).unwrap(), "Running")
            .await;
    }
    for (number, name) in [(7, "z"), (8, "a-10"), (9, "a-2")] {
        both.pod(name, &format!("ps-{}", &name[..1]), number, "Running")
            .await;
    }
    for mapping in [
        &[("worker", &["job-name=tensorflow"] as &[&str])] as &[(&str, &[&str])],
        &[
            ("worker", &["job-name=tensorflow"]),
            ("ps", &["job-name=ps-z", "job-name=ps-a"]),
        ],
        &[("worker", &["job-name in (tensorflow)", "job-name=missing"])],
    ] {
        let theirs = both.theirs(mapping);
        let ours = both.spec(mapping, Assembly::tensorflow()).await;
        assert_eq!(Ok(&theirs["spec"]), ours.as_ref(), "{theirs}");
        let resolver = both.ours(mapping, Assembly::tensorflow());
        let master = resolver
            .master(Some("worker"), Some(2), None)
            .await
            .unwrap();
        assert_eq!(theirs["masters"]["worker:2"], master, "{theirs}");
        let none = resolver.master(None, None, None).await.unwrap();
        assert_eq!(theirs["masters"]["none"], none, "{theirs}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "cargo xtask test --frameworks"]
async fn the_same_error() {
    let both = Both::start().await;
    both.pod("w-0", "tensorflow", 1, "Running").await;
    both.pod("w-1", "tensorflow", 2, "Failed").await;
    let mapping: &[(&str, &[&str])] = &[("worker", &["job-name=tensorflow"])];
    let theirs = both.theirs(mapping);
    let ours = both
        .spec(mapping, Assembly::tensorflow())
        .await
        .unwrap_err();
    assert_eq!(theirs["error"], format!("RuntimeError: {ours}"));
}

/// Tests the cases in which TensorFlow's resolver is wrong, and Longshore's default.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "cargo xtask test --frameworks"]
async fn the_documented_differences() {
    let both = Both::start().await;
    both.pod("w-10", "tensorflow", 10, "Running").await;
    both.pod("w-2", "tensorflow", 2, "Running").await;
    let mapping: &[(&str, &[&str])] = &[("worker", &["job-name=tensorflow"])];
    // TensorFlow returns the addresses of the nodes, and sorts 10 before 2.
    assert_eq!(
        both.theirs(mapping)["spec"],
        json!({"worker": ["192.168.0.10:8470", "192.168.0.2:8470"]})
    );
    assert_eq!(
        both.spec(mapping, Assembly::default()).await.unwrap(),
        json!({"worker": ["10.0.0.2:8470", "10.0.0.10:8470"]})
    );
    // TensorFlow always searches all namespaces.
    let namespaces = both.cluster.namespaces();
    namespaces
        .create(&json!({"metadata": {"name": "another"}}))
        .await
        .unwrap();
    let there = both.cluster.pods().in_namespace("another").unwrap();
    let stranger = json!({
        "metadata": {"name": "w-3", "labels": {"job-name": "tensorflow"}},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    });
    there.create(&stranger).await.unwrap();
    let runs = Patch::merge(
        json!({"status": {"phase": "Running", "podIP": "fd00::3", "hostIP": "fd00::1"}}),
    );
    there.patch_status("w-3", &runs).await.unwrap();
    // TensorFlow does not put an IPv6 address in brackets, so its port is ambiguous.
    let theirs = both.theirs(mapping);
    assert_eq!(theirs["spec"]["worker"][2], "fd00::1:8470", "{theirs}");
    let how = Assembly::tensorflow();
    assert_eq!(
        both.spec(mapping, how.clone()).await.unwrap(),
        json!({"worker": ["192.168.0.10:8470", "192.168.0.2:8470"]})
    );
    let everywhere = both.ours(mapping, how).with_namespace(None);
    assert_eq!(
        everywhere.cluster_spec().await.unwrap().as_dict()["worker"][2],
        "[fd00::1]:8470"
    );
    // For TensorFlow, a pod that two selectors match is two tasks.
    let twice: &[(&str, &[&str])] = &[("worker", &["job-name=tensorflow", "job-name"])];
    assert_eq!(
        both.theirs(twice)["spec"]["worker"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    let refused = both.spec(twice, Assembly::default()).await.unwrap_err();
    assert!(refused.contains("is matched by two selectors"), "{refused}");
}
