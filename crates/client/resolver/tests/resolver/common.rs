//! A server, and pods whose status the tests write.

use std::time::Duration;

use longshore_client::{Cluster, DeleteOptions, LabelSelector, Patch, View, kinds::Pod};
use longshore_embedded::EmbeddedCluster;
use longshore_resolver::Resolver;
use serde_json::{Value, json};

/// An upper bound for any step, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Fixture {
    pub(crate) embedded: EmbeddedCluster,
    pub(crate) cluster: Cluster,
    pub(crate) pods: View<Pod>,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let embedded = longshore_embedded::start_server().await.unwrap();
        let cluster = embedded.cluster();
        let pods = cluster.pods().in_namespace("default").unwrap();
        Self {
            embedded,
            cluster,
            pods,
        }
    }

    /// A running pod of a Job with this address; with `""`, the pod is pending.
    pub(crate) async fn pod(&self, name: &str, job: &str, ip: &str) {
        self.pod_with(name, job, ip, json!({})).await;
    }

    /// With additional labels.
    pub(crate) async fn pod_with(&self, name: &str, job: &str, ip: &str, labels: Value) {
        let mut labels = labels;
        labels["job-name"] = json!(job);
        let container = json!({"name": "main", "image": "any"});
        let pod = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [container]},
        });
        self.pods.create(&pod).await.unwrap();
        if !ip.is_empty() {
            self.runs(name, ip).await;
        }
    }

    /// The pod now runs, at this address.
    pub(crate) async fn runs(&self, name: &str, ip: &str) {
        let status = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": "192.168.0.1"});
        self.status(name, status).await;
    }

    pub(crate) async fn status(&self, name: &str, status: Value) {
        let patch = Patch::merge(json!({"status": status}));
        self.pods.patch_status(name, &patch).await.unwrap();
    }

    pub(crate) async fn remove(&self, name: &str) {
        let options = DeleteOptions::default();
        self.pods.delete(name, &options).await.unwrap();
    }

    /// The pods of TensorFlow's own test: three with its default selector.
    pub(crate) async fn tensorflow() -> Self {
        let fixture = Self::start().await;
        for (name, ip) in [
            ("tensorflow-abc123", "10.1.2.3"),
            ("tensorflow-def456", "10.1.2.4"),
            ("tensorflow-999999", "10.1.2.5"),
        ] {
            fixture.pod(name, "tensorflow", ip).await;
        }
        fixture
    }

    pub(crate) fn resolver(&self, mapping: &[(&str, &[&str])]) -> Resolver {
        let selectors = |texts: &[&str]| -> Vec<LabelSelector> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let mapping = mapping
            .iter()
            .map(|(role, texts)| (*role, selectors(texts)));
        Resolver::new(self.cluster.clone()).with_mapping(mapping)
    }
}
