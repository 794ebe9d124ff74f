//! Nodes right after the start of the cluster.

use longshore_embedded::{EmbeddedCluster, Options};

/// Pods do not wait until the controllers have seen that the node is ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nodes_of_a_started_cluster_have_no_taints() {
    for nodes in [1, 3] {
        let options = Options {
            nodes,
            ..Options::default()
        };
        let embedded = EmbeddedCluster::start(options).await.unwrap();
        let listed = embedded.cluster().nodes().list().await.unwrap().items;
        assert_eq!(listed.len(), usize::from(nodes));
        for node in listed {
            let node = node.raw().unwrap();
            assert!(node["spec"]["taints"].is_null(), "{node}");
        }
        embedded.stop().await;
    }
}
