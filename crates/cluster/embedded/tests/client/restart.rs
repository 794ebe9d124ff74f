//! A server that is stopped and restarted, over its socket.

use std::net::Ipv4Addr;

use longshore_client::{Cluster, DeleteOptions};
use longshore_embedded::{EmbeddedCluster, Options};

use crate::common::{Churn, Mirror, map, maps, with_short_timeouts};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_and_caches_survive_a_restart_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        ephemeral: false,
        data_dir: Some(dir.path().to_owned()),
        listen: Some((Ipv4Addr::LOCALHOST, 0).into()),
        ..Options::server()
    };
    let mut embedded = EmbeddedCluster::start(options.clone()).await.unwrap();
    let kubeconfig = embedded.kubeconfig_path().unwrap().to_owned();
    let remote = Cluster::from_kubeconfig(Some(&kubeconfig), None).await;
    let remote = with_short_timeouts(&remote.unwrap());
    let mut watch = maps(&remote).watch().await.unwrap();
    let cache = maps(&remote).cache().await.unwrap();
    let mut mirror = Mirror::default();
    for round in 0..3 {
        let churn = Churn::start(&embedded.cluster());
        let time = std::time::Duration::from_millis(200);
        mirror.follow(&mut watch, time).await;
        churn.stop().await;
        embedded.stop().await;
        // While the server is stopped, the watch gets no events and no errors.
        mirror.follow(&mut watch, time).await;
        embedded = EmbeddedCluster::start(options.clone()).await.unwrap();
        let own = maps(&embedded.cluster());
        own.create(&map(&format!("after-{round}"), round))
            .await
            .unwrap();
        if let Some(first) = own.list().await.unwrap().items.first() {
            first.delete(&DeleteOptions::default()).await.unwrap();
        }
        mirror.settle(&mut watch, &embedded.cluster()).await;
    }
    mirror.agrees(&cache).await;
    embedded.stop().await;
}
