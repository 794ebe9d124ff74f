//! A server, and pods that run because a test says so.

use std::time::Duration;

use longshore_client::{Cluster, DeleteOptions, LabelSelector, Patch, View, kinds::Pod};
use longshore_embedded::EmbeddedCluster;
use longshore_resolver::Resolver;
use serde_json::{Value, json};

/// Nothing takes so long, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Here {
    pub(crate) embedded: EmbeddedCluster,
    pub(crate) cluster: Cluster,
    pub(crate) pods: View<Pod>,
}

impl Here {
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

    /// A pod of a Job that runs at an address; `""`: it has none and waits.
    pub(crate) async fn pod(&self, name: &str, job: &str, ip: &str) {
        self.pod_with(name, job, ip, json!({})).await;
    }

    /// With more labels.
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

    /// From now on it runs, at this address.
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

    /// TensorFlow's own test: three pods of its default selector.
    pub(crate) async fn tensorflow() -> Self {
        let here = Self::start().await;
        for (name, ip) in [
            ("tensorflow-abc123", "10.1.2.3"),
            ("tensorflow-def456", "10.1.2.4"),
            ("tensorflow-999999", "10.1.2.5"),
        ] {
            here.pod(name, "tensorflow", ip).await;
        }
        here
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
