//! Lists all pods of a server: from the kubeconfig to names and phases.

use std::{hint::black_box, path::Path, pin::pin, time::Instant};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, Client, api::ListParams};
use kube_core::{ApiResource, DynamicObject};
use longshore::Cluster;
use serde_json::Value;

use super::{
    contender::Contender,
    decode::{look_at_dynamic, look_at_metadata, look_at_typed},
};
use crate::report::Failure;

/// The API path of the pods.
pub(super) const PATH: &str = "/api/v1/namespaces/default/pods";

/// Uses the client once, so that the process allocates its global state.
pub(super) async fn connect(source: &Path) -> Result<(), Failure> {
    let cluster = Cluster::from_kubeconfig(Some(source), None).await?;
    cluster.proxy().get_bytes("/version", &[]).await?;
    Ok(())
}

/// Returns the duration in seconds, including the connection, and the number of pods.
pub(super) async fn run(contender: Contender, source: &Path) -> Result<(f64, usize), Failure> {
    let started = Instant::now();
    let cluster = Cluster::from_kubeconfig(Some(source), None).await?;
    let seen = match contender {
        Contender::OursByPages => {
            let view = cluster.pods().in_namespace("default")?;
            let mut pods = pin!(view.stream());
            let mut seen = 0;
            while let Some(pod) = pods.try_next().await? {
                black_box((pod.name(), pod.phase()?));
                seen += 1;
            }
            seen
        }
        Contender::Ours => {
            let list = cluster.pods().in_namespace("default")?.list().await?;
            for pod in &list.items {
                black_box((pod.name(), pod.phase()?));
            }
            list.items.len()
        }
        theirs => with_kube(theirs, cluster.kube_client()).await?,
    };
    Ok((started.elapsed().as_secs_f64(), seen))
}

async fn with_kube(contender: Contender, client: Client) -> Result<usize, Failure> {
    let everything = ListParams::default();
    Ok(match contender {
        Contender::Typed => {
            let api: Api<Pod> = Api::namespaced(client, "default");
            let list = api.list(&everything).await?;
            list.items.iter().for_each(look_at_typed);
            list.items.len()
        }
        Contender::Dynamic => {
            let pods = ApiResource::erase::<Pod>(&());
            let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &pods);
            let list = api.list(&everything).await?;
            list.items.iter().for_each(look_at_dynamic);
            list.items.len()
        }
        Contender::Metadata => {
            let api: Api<Pod> = Api::namespaced(client, "default");
            let list = api.list_metadata(&everything).await?;
            list.items.iter().for_each(look_at_metadata);
            list.items.len()
        }
        _ => {
            let request = http::Request::get(PATH).body(Vec::new())?;
            let text = client.request_text(request).await?;
            // Each pod has one container with this name.
            text.matches(r#""name":"sidecar""#).count()
        }
    })
}

/// The size of the list in bytes, with and without `managedFields`.
pub(super) async fn sizes(kubeconfig: &Path) -> Result<(f64, f64), Failure> {
    let cluster = Cluster::from_kubeconfig(Some(kubeconfig), None).await?;
    let body = cluster.proxy().get_bytes(PATH, &[]).await?;
    let list: Value = serde_json::from_slice(&body)?;
    let mut bare = 0;
    for pod in list["items"].as_array().into_iter().flatten() {
        let mut pod = pod.clone();
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        bare += pod.to_string().len();
    }
    Ok((body.len() as f64, bare as f64))
}
