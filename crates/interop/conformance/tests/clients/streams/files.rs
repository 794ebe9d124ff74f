//! kubectl cp.

use super::{POD, with_each_kubectl};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_copied_both_ways() {
    with_each_kubectl(POD, async |session| {
        session.ready("pod/box").await;
        session.sh("mkdir -p tree/deep && head -c 3000000 /dev/urandom > tree/big && echo small > tree/deep/small").await;
        let there = session.sh("kubectl exec box -c main -- mktemp -d").await;
        let there = there.trim();
        session.sh(&format!("kubectl cp tree box:{there}/tree -c main")).await;
        session.sh(&format!("kubectl cp -c main box:{there}/tree back && diff -r tree back")).await;
        session.sh(&format!("kubectl cp tree/big box:{there}/one -c main")).await;
        session.sh(&format!("kubectl cp -c main box:{there}/one one && cmp one tree/big")).await;
        session.sh(&format!("kubectl exec box -c main -- rm -r {there}")).await;
    })
    .await;
}
