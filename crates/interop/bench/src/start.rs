//! Measures the start of a cluster, and its idle memory.

use std::time::{Duration, Instant};

use longshore::{
    client::until,
    embedded::{EmbeddedCluster, Options, Snapshot},
};
use serde_json::json;

use crate::{
    program::Instance,
    report::{Failure, Report, median, median_async, middle, millis},
};

/// The number of objects of a snapshot.
const OBJECTS: usize = 1_000;

/// The time after which a cluster without clients is idle.
const SETTLED: Duration = Duration::from_secs(3);

/// The timeout for the first pod.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts clusters in this process, and as a background process.
pub(crate) async fn run(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let server = started(runs, Options::server).await?;
    report.figure("API server in this process", millis(server), "5 ms");
    let options = || Options {
        controllers: true,
        ..Options::server()
    };
    let controllers = started(runs, options).await?;
    report.figure("the same, with controllers", millis(controllers), "5 ms");
    let cluster = started(runs, Options::default).await?;
    report.figure("the same, and with a node", millis(cluster), "5 ms");
    let pod = median_async(runs, async || first_pod().await).await?;
    report.figure("start, a pod of `true`, and stop", millis(pod), "");
    snapshots(report, runs).await?;
    let in_process = median_async(runs, async || {
        let cluster = longshore::embedded::start().await?;
        cluster.stop().await;
        Ok(())
    })
    .await?;
    report.figure("the same, start and stop", millis(in_process), "");

    for (what, options) in [
        ("`longshore up` until ready", &[][..]),
        ("`longshore up --ephemeral` until ready", &["--ephemeral"]),
    ] {
        let (mut times, mut idle) = (Vec::new(), 0.0);
        for run in 1..=runs {
            let instance = Instance::new()?;
            times.push(median(1, || instance.up(options))?);
            if run == runs {
                std::thread::sleep(SETTLED);
                idle = instance.memory()?.0;
            }
        }
        report.figure(what, millis(middle(&times)), "50 ms");
        report.figure("memory when idle", format!("{idle:.0} MB"), "45 MB");
    }
    Ok(())
}

/// The median time until a cluster with these options has started.
async fn started(runs: usize, options: impl Fn() -> Options) -> Result<Duration, Failure> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let begin = Instant::now();
        let cluster = EmbeddedCluster::start(options()).await?;
        times.push(begin.elapsed());
        cluster.stop().await;
    }
    Ok(middle(&times))
}

/// Starts a cluster and a pod, and stops the cluster when the pod has succeeded.
async fn first_pod() -> Result<(), Failure> {
    let cluster = EmbeddedCluster::start(Options::default()).await?;
    let pods = cluster.cluster().pods().in_namespace("default")?;
    let containers = json!([{"name": "main", "image": "any", "command": ["true"]}]);
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    let pod = json!({"metadata": {"name": "first"}, "spec": spec});
    let pod = pods.create(&pod).await?;
    let finished = pod.wait(until::finished, TIMEOUT).await?;
    if finished.state() != "phase Succeeded" {
        return Err(format!("the pod has not succeeded: {}", finished.state()).into());
    }
    cluster.stop().await;
    Ok(())
}

/// Takes a snapshot of many objects, returns to it, and starts another server from it.
async fn snapshots(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let prepared = longshore::embedded::start_server().await?;
    let maps = prepared.cluster().configmaps().in_namespace("default")?;
    for index in 0..OBJECTS {
        let map = json!({"metadata": {"name": format!("map-{index}")}, "data": {"key": "value"}});
        maps.create(&map).await?;
    }
    let (mut taken, mut restored) = (Vec::new(), Vec::new());
    let mut last: Option<Snapshot> = None;
    for _ in 0..runs {
        let begin = Instant::now();
        let snapshot = prepared.snapshot();
        taken.push(begin.elapsed());
        maps.delete("map-0", &longshore::client::DeleteOptions::default())
            .await?;
        let begin = Instant::now();
        prepared.restore(&snapshot).await?;
        restored.push(begin.elapsed());
        last = Some(snapshot);
    }
    let other = started(runs, || Options {
        snapshot: last.clone(),
        ..Options::server()
    });
    let other = other.await?;
    prepared.stop().await;
    let (taken, restored) = (middle(&taken), middle(&restored));
    report.figure("snapshot of 1,000 objects", precise(taken), "1 ms");
    report.figure("return to it", precise(restored), "1 ms");
    report.figure("API server with its objects", millis(other), "5 ms");
    Ok(())
}

fn precise(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}
