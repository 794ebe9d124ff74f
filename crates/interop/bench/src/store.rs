//! Creates and lists many pods in a durable cluster over TLS.

use std::{hint::black_box, time::Instant};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, api::ListParams};
use longshore::{Cluster, client::Patch};

use crate::{
    pods,
    program::Instance,
    report::{Failure, Report, median_async, millis, ratio},
};

/// The number of concurrent requests, as of a busy controller.
const CONCURRENCY: usize = 64;

/// Creates pods, patches their status, and lists them; then reports the server's memory.
pub(crate) async fn run(report: &mut Report, runs: usize, count: usize) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let cluster = Cluster::from_kubeconfig(Some(&instance.kubeconfig()), None).await?;
    let view = cluster.pods().in_namespace("default")?;

    let started = Instant::now();
    stream::iter(0..count)
        .map(|index| {
            let view = view.clone();
            async move { view.create(&pods::pod(index)).await.map(drop) }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    report.figure(
        "create, 64 concurrent requests, durable",
        format!("{rate:.0}/s"),
        "5 times kube-apiserver (its 1,200/s elsewhere)",
    );

    let started = Instant::now();
    stream::iter(0..count)
        .map(|index| {
            let view = view.clone();
            let patch = Patch::merge(serde_json::json!({"status": {"message": "seen"}}));
            async move {
                view.patch_status(&format!("worker-{index:05}"), &patch)
                    .await
                    .map(drop)
            }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    report.figure(
        "patch status, 64 concurrent requests, durable",
        format!("{rate:.0}/s"),
        "5 times kube-apiserver (its 630/s elsewhere)",
    );

    let proxy = cluster.proxy();
    let floor = median_async(runs, async || {
        black_box(
            proxy
                .get_bytes("/api/v1/namespaces/default/pods", &[])
                .await?,
        );
        Ok(())
    })
    .await?;
    let ours = median_async(runs, async || {
        for pod in view.list().await?.items {
            black_box((pod.name(), pod.phase()?));
        }
        Ok(())
    })
    .await?;
    let api: Api<Pod> = Api::namespaced(cluster.kube_client(), "default");
    let theirs = median_async(runs, async || {
        black_box(api.list(&ListParams::default()).await?);
        Ok(())
    })
    .await?;
    report.figure("list: bytes only", millis(floor), "");
    report.figure(
        "list: names and phases, our client",
        millis(ours),
        "1.1 times the bytes",
    );
    report.figure("list: kube-rs typed", millis(theirs), "");
    report.figure(
        "faster than kube-rs typed, end to end",
        ratio(theirs, ours),
        "",
    );
    let (now, peak) = instance.memory()?;
    report.figure(
        "memory of the cluster: current, peak",
        format!("{now:.0}, {peak:.0} MB"),
        "a tenth of kube-apiserver's (2,000 MB elsewhere)",
    );
    Ok(())
}
