//! Clock jumps, as after a laptop's suspend: the client notices no time passing, then all
//! its timeouts expire at once.

use std::{
    net::Ipv4Addr,
    thread,
    time::{Duration, Instant},
};

use longshore_client::Cluster;
use longshore_embedded::{EmbeddedCluster, Options};
use tokio::runtime::{Builder, Runtime};

use crate::common::{Churn, Mirror, maps, soak, with_short_timeouts};

/// Longer than a watch may be silent.
const JUMP: Duration = Duration::from_millis(400);

#[test]
fn a_clock_jump_loses_no_event() {
    // The server has separate threads, which continue while this one sleeps.
    let theirs = Runtime::new().unwrap();
    let options = Options {
        listen: Some((Ipv4Addr::LOCALHOST, 0).into()),
        ..Options::server()
    };
    let embedded = theirs.block_on(EmbeddedCluster::start(options)).unwrap();
    let kubeconfig = embedded.kubeconfig_path().unwrap();
    let ours = Builder::new_current_thread().enable_all().build().unwrap();
    ours.block_on(async {
        let remote = Cluster::from_kubeconfig(Some(kubeconfig), None).await;
        let remote = with_short_timeouts(&remote.unwrap());
        let mut watch = maps(&remote).watch().await.unwrap();
        let cache = maps(&remote).cache().await.unwrap();
        let churn = {
            let _theirs = theirs.enter();
            Churn::start(&embedded.cluster())
        };
        let mut mirror = Mirror::default();
        let end = Instant::now() + soak().max(4 * JUMP);
        while Instant::now() < end {
            thread::sleep(JUMP);
            mirror.follow(&mut watch, JUMP / 4).await;
        }
        assert!(mirror.events > 10, "only {} events", mirror.events);
        let changes = theirs.spawn(churn.stop()).await.unwrap();
        mirror.settle(&mut watch, &remote).await;
        assert!(changes > 10, "only {changes} changes");
        mirror.agrees(&cache).await;
    });
    theirs.block_on(embedded.stop());
}
