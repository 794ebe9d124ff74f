//! Rolls Deployments out on the embedded cluster and on Kubernetes. The benchmark acts as the
//! nodes' agents: it reports each pod as ready as soon as it is scheduled, so that only the control
//! plane is measured, and no processes.

mod agents;

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use kube_client::Client;
use serde_json::{Value, json};

use crate::{
    report::{Failure, Report, ratio},
    server::{JSON, MERGE, Peer, Watch, send},
};

/// The number of Deployments that are created, each with [`REPLICAS`] pods.
const DEPLOYMENTS: usize = 1000;
const REPLICAS: usize = 3;
/// The pods of the Deployment whose template changes.
const PODS: usize = 1000;
const CONCURRENCY: usize = 32;
const TIMEOUT: Duration = Duration::from_secs(900);
const PATH: &str = "/apis/apps/v1/namespaces/default/deployments";

/// The figures of one control plane.
struct Figures {
    created: Duration,
    rolled_out: Duration,
    /// Processor seconds of the control plane.
    create_cost: f64,
    rollout_cost: f64,
}

type Row = (&'static str, fn(&Figures) -> f64);

const ROWS: [Row; 4] = [
    ("1,000 Deployments of 3 pods, until available", |f| {
        f.created.as_secs_f64()
    }),
    ("the control plane's processor time", |f| f.create_cost),
    ("a Deployment of 1,000 pods, changed", |f| {
        f.rolled_out.as_secs_f64()
    }),
    ("the control plane's processor time", |f| f.rollout_cost),
];

/// Measures both control planes and compares them.
pub(crate) async fn run(report: &mut Report) -> Result<(), Failure> {
    let ours = measure(Peer::ours()).await?;
    for (what, figure) in ROWS {
        report.figure(what, format!("{:.1} s", figure(&ours)), "");
    }
    let Some(peer) = Peer::real() else {
        return Ok(());
    };
    let theirs = match measure(peer).await {
        Ok(theirs) => theirs,
        Err(error) => {
            report.figure("Kubernetes", format!("failed: {error}"), "");
            return Ok(());
        }
    };
    for (what, figure) in ROWS {
        let what = format!("Kubernetes: {what}");
        report.figure(&what, format!("{:.1} s", figure(&theirs)), "");
    }
    report.figure("created faster by", ratio(theirs.created, ours.created), "");
    let faster = ratio(theirs.rolled_out, ours.rolled_out);
    report.figure("changed faster by", faster, "");
    Ok(())
}

async fn measure(peer: Peer) -> Result<Figures, Failure> {
    eprintln!("  {} …", peer.name());
    let (mut server, _) = peer.start().await?;
    server.start_controllers()?;
    let client = server.client().await?;
    let agents = agents::Agents::start(&client).await?;

    let before = server.processor_time()?;
    let started = Instant::now();
    let names: Vec<_> = (0..DEPLOYMENTS)
        .map(|index| format!("web-{index}"))
        .collect();
    create(&client, names.iter().map(|name| deployment(name, REPLICAS))).await?;
    available(&client, "app=web", names.len(), REPLICAS).await?;
    let created = started.elapsed();
    let create_cost = server.processor_time()? - before;

    let mut one = deployment("large", PODS);
    one["metadata"]["labels"]["app"] = json!("large");
    create(&client, [one].into_iter()).await?;
    available(&client, "app=large", 1, PODS).await?;
    let before = server.processor_time()?;
    let started = Instant::now();
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}});
    let path = format!("{PATH}/large");
    send(&client, Method::PATCH, &path, MERGE, change.to_string()).await?;
    available(&client, "app=large", 1, PODS).await?;
    let rolled_out = started.elapsed();
    let rollout_cost = server.processor_time()? - before;
    drop(agents);
    server.stop().await;
    Ok(Figures {
        created,
        rolled_out,
        create_cost,
        rollout_cost,
    })
}

fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({"name": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": agents::labels(),
                    "containers": [{"name": "main", "image": "registry.example.com/web:1.2.3"}],
                },
            },
        },
    })
}

async fn create(client: &Client, objects: impl Iterator<Item = Value>) -> Result<(), Failure> {
    stream::iter(objects)
        .map(|object| send(client, Method::POST, PATH, JSON, object.to_string()))
        .buffer_unordered(CONCURRENCY)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// Waits until `count` Deployments have the given number of updated and available pods, and no
/// others.
async fn available(
    client: &Client,
    selector: &str,
    count: usize,
    replicas: usize,
) -> Result<(), Failure> {
    let wait = async {
        let query = format!("labelSelector={}", selector.replace('=', "%3D"));
        let mut done = std::collections::HashSet::new();
        let mut watch = Watch::open(client, PATH, &query).await?;
        loop {
            // A server may end a watch at any time. Another begins with all objects.
            let Some(event) = watch.next().await? else {
                watch = Watch::open(client, PATH, &query).await?;
                done.clear();
                continue;
            };
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            match is_complete(object, replicas) {
                true => done.insert(name.to_owned()),
                false => done.remove(name),
            };
            if done.len() == count {
                return Ok(());
            }
        }
    };
    tokio::time::timeout(TIMEOUT, wait)
        .await
        .map_err(|_| format!("{count} Deployments are not available after {TIMEOUT:?}"))?
}

fn is_complete(deployment: &Value, replicas: usize) -> bool {
    let status = &deployment["status"];
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let is = |name: &str| number(&status[name]) == replicas as u64;
    ["replicas", "updatedReplicas", "availableReplicas"]
        .into_iter()
        .all(is)
        && number(&status["observedGeneration"]) >= number(&deployment["metadata"]["generation"])
}
