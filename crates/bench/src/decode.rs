//! A list of pods in memory → their names and phases: the client's lazy items
//! beside kube-rs's typed ones.

use std::{convert::Infallible, hint::black_box};

use bytes::Bytes;
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectList;
use longshore::Cluster;

use crate::{
    pods,
    report::{Failure, Report, median, median_async, millis, ratio},
};

/// Both in turn, on the same bytes.
pub(crate) async fn run(report: &mut Report, runs: usize, count: usize) -> Result<(), Failure> {
    let body = Bytes::from(pods::list_body(count));
    let megabytes = body.len() as f64 / 1e6;
    report.figure(
        "pods, size of the list",
        format!("{count}, {megabytes:.1} MB"),
        "",
    );

    let theirs = median(runs, || {
        let list: ObjectList<Pod> = serde_json::from_slice(&body)?;
        for pod in &list.items {
            let phase = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            black_box((pod.metadata.name.as_deref(), phase));
        }
        Ok(())
    })?;

    let answer = body.clone();
    let service = tower::service_fn(move |_: http::Request<_>| {
        let response = http::Response::new(Full::new(answer.clone()));
        async move { Ok::<_, Infallible>(response) }
    });
    let cluster = Cluster::from_service(service, "default");
    let ours = median_async(runs, async || {
        let list = cluster.pods().list().await?;
        for pod in &list.items {
            black_box((pod.name(), pod.phase()?));
        }
        Ok(())
    })
    .await?;

    report.figure("kube-rs, typed", millis(theirs), "");
    report.figure("ours, through the whole client", millis(ours), "");
    report.figure("faster than kube-rs typed", ratio(theirs, ours), "10 times");
    Ok(())
}
