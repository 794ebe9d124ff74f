//! Decodes the events of a watch to names and phases on one thread.

use std::{convert::Infallible, fs, hint::black_box, path::Path, pin::pin, time::Instant};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{
    Api, Client,
    api::{WatchEvent as KubeEvent, WatchParams},
};
use kube_core::{ApiResource, DynamicObject};
use longshore::{Cluster, client::WatchEvent};

use super::{
    contender::Contender,
    decode::{look_at_dynamic, look_at_typed},
};
use crate::report::Failure;

/// The size of a frame of the body in bytes, as over TLS.
const PIECE: usize = 16 << 10;

/// Returns the duration in seconds and the number of events.
pub(super) async fn run(
    contender: Contender,
    source: &Path,
    count: usize,
) -> Result<(f64, usize), Failure> {
    let body = Bytes::from(fs::read(source)?);
    let service = tower::service_fn(move |_: http::Request<_>| {
        let body = body.clone();
        let pieces = (0..body.len())
            .step_by(PIECE)
            .map(move |at| body.slice(at..body.len().min(at + PIECE)));
        let frames = stream::iter(pieces).map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        async move { Ok::<_, Infallible>(http::Response::new(StreamBody::new(frames))) }
    });
    let from = WatchParams::default();
    let started = Instant::now();
    let mut seen = 0;
    match contender {
        Contender::Typed => {
            let api: Api<Pod> = Api::all(Client::new(service, "default"));
            let mut events = pin!(api.watch(&from, "1").await?);
            while let Some(event) = events.try_next().await? {
                if let KubeEvent::Modified(pod) = &event {
                    look_at_typed(pod);
                    seen += 1;
                }
            }
        }
        Contender::Dynamic => {
            let pods = ApiResource::erase::<Pod>(&());
            let api: Api<DynamicObject> = Api::all_with(Client::new(service, "default"), &pods);
            let mut events = pin!(api.watch(&from, "1").await?);
            while let Some(event) = events.try_next().await? {
                if let KubeEvent::Modified(pod) = &event {
                    look_at_dynamic(pod);
                    seen += 1;
                }
            }
        }
        _ => {
            let cluster = Cluster::from_service(service, "default");
            let mut watch = cluster.pods().watch_since("1").await?;
            while seen < count {
                if let WatchEvent::Modified(pod) = watch.next(None).await? {
                    black_box((pod.name(), pod.phase()?));
                    seen += 1;
                }
            }
        }
    }
    Ok((started.elapsed().as_secs_f64(), seen))
}
