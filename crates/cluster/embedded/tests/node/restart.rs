//! Pods after a restart of the cluster.

use std::time::Duration;

use longshore_client::{Cluster, PodItem};
use longshore_embedded::{EmbeddedCluster, Options};
use serde_json::json;

/// The number of pods that run when the cluster stops.
const PODS: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(30);

fn is_running(pod: &PodItem) -> bool {
    pod.state() == "phase Running"
}

async fn phases(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.pods().list().await.unwrap().items;
    pods.iter().map(PodItem::state).collect()
}

/// The first request after a restart already sees that the containers have ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_cluster_shows_no_ended_pod_as_running() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        ephemeral: false,
        data_dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let embedded = EmbeddedCluster::start(options.clone()).await.unwrap();
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let containers = json!([{"name": "main", "image": "any", "command": ["sleep", "300"]}]);
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    for index in 0..PODS {
        let pod = json!({"metadata": {"name": format!("pod-{index}")}, "spec": spec});
        pods.create(&pod).await.unwrap();
    }
    for index in 0..PODS {
        let name = format!("pod-{index}");
        pods.wait(&name, is_running, TIMEOUT).await.unwrap();
    }
    // A client in this process keeps the store open.
    drop(pods);
    embedded.stop().await;

    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let phases = phases(&embedded.cluster()).await;
    assert_eq!(phases, vec!["phase Failed"; PODS]);
    embedded.stop().await;
}
