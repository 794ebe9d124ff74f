//! Connects to the tasks of a run as their pods come and go.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use longshore::{
    client::{Item, kinds::Pod},
    launcher::{
        Run,
        names::Task,
        runs::{TaskPod, WatchedPods},
    },
};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use super::{
    connection::{Container, Shared, serve},
    report::News,
    versions::Version,
};
use crate::bootstrap_program::program_of;

/// The pause after an error of the cluster.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps all running tasks of the run up to date, including tasks that start later, until the
/// future is dropped.
pub(super) async fn keep(shared: Arc<Shared>, run: Run, versions: watch::Receiver<Version>) {
    let mut watched = loop {
        match WatchedPods::start(&shared.cluster, &run).await {
            Ok(watched) => break watched,
            // The follower of the run reports outages.
            Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
        }
    };
    let mut serving = JoinSet::new();
    let mut pods: BTreeMap<String, (Task, AbortHandle)> = BTreeMap::new();
    let mut is_first = true;
    loop {
        let running: BTreeMap<String, Container> = watched
            .current()
            .iter()
            .filter_map(|pod| running(pod, &run))
            .map(|container| (container.pod.clone(), container))
            .collect();
        let gone: Vec<String> = pods
            .keys()
            .filter(|pod| !running.contains_key(*pod))
            .cloned()
            .collect();
        for pod in gone {
            if let Some((task, serving)) = pods.remove(&pod) {
                serving.abort();
                let _ = shared.news.send(News::Gone(task)).await;
            }
        }
        if std::mem::take(&mut is_first) {
            let found = running.values().map(|container| container.task.clone());
            let _ = shared.news.send(News::Found(found.collect())).await;
        }
        for (pod, container) in running {
            pods.entry(pod).or_insert_with(|| {
                let task = container.task.clone();
                let served = serve(Arc::clone(&shared), container, versions.clone());
                (task, serving.spawn(served))
            });
        }
        // The connections to the tasks may continue while the cluster does not respond.
        if watched.changed().await.is_err() {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

/// The container of a task that runs its command.
fn running(pod: &Item<Pod>, run: &Run) -> Option<Container> {
    let task_pod = pod.typed::<TaskPod>().ok()?;
    let is_leaving = pod.meta().deletion_timestamp.is_some();
    if !task_pod.has_started() || task_pod.is_over() || is_leaving {
        return None;
    }
    Some(Container {
        task: task_pod.task()?,
        namespace: run.namespace.clone(),
        pod: pod.name().to_owned(),
        name: task_pod.main_container().to_owned(),
        program: program_of(pod, task_pod.main_container())?,
    })
}
