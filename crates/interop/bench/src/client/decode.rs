//! Decodes a list of pods in memory to their names and phases.

use std::{convert::Infallible, fs, hint::black_box, path::Path, time::Instant};

use bytes::Bytes;
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use kube_core::{DynamicObject, ObjectList, metadata::PartialObjectMeta};
use longshore::Cluster;

use super::contender::Contender;
use crate::report::Failure;

/// Returns the duration in seconds and the number of pods. Longshore's figure includes its
/// whole client.
pub(super) async fn run(contender: Contender, source: &Path) -> Result<(f64, usize), Failure> {
    let body = Bytes::from(fs::read(source)?);
    match contender {
        Contender::Typed => {
            let started = Instant::now();
            let list: ObjectList<Pod> = serde_json::from_slice(&body)?;
            list.items.iter().for_each(look_at_typed);
            Ok((started.elapsed().as_secs_f64(), list.items.len()))
        }
        Contender::Dynamic => {
            let started = Instant::now();
            let list: ObjectList<DynamicObject> = serde_json::from_slice(&body)?;
            list.items.iter().for_each(look_at_dynamic);
            Ok((started.elapsed().as_secs_f64(), list.items.len()))
        }
        Contender::Metadata => {
            let started = Instant::now();
            let list: ObjectList<PartialObjectMeta<Pod>> = serde_json::from_slice(&body)?;
            list.items.iter().for_each(look_at_metadata);
            Ok((started.elapsed().as_secs_f64(), list.items.len()))
        }
        _ => {
            let service = tower::service_fn(move |_: http::Request<_>| {
                let response = http::Response::new(Full::new(body.clone()));
                async move { Ok::<_, Infallible>(response) }
            });
            let cluster = Cluster::from_service(service, "default");
            let started = Instant::now();
            let list = cluster.pods().list().await?;
            for pod in &list.items {
                black_box((pod.name(), pod.phase()?));
            }
            Ok((started.elapsed().as_secs_f64(), list.items.len()))
        }
    }
}

pub(super) fn look_at_typed(pod: &Pod) {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    black_box((pod.metadata.name.as_deref(), phase));
}

pub(super) fn look_at_dynamic(pod: &DynamicObject) {
    let phase = pod.data["status"]["phase"].as_str();
    black_box((pod.metadata.name.as_deref(), phase));
}

/// Reads only the name, because metadata has no phase.
pub(super) fn look_at_metadata(pod: &PartialObjectMeta<Pod>) {
    black_box(pod.metadata.name.as_deref());
}
