//! Queries the cluster for names.

use std::{path::PathBuf, time::Duration};

use longshore::{
    client::{Cluster, Item, kinds::Any},
    launcher::{RunSummary, names, runs},
    model::kind,
};

use super::line::Line;
use crate::{
    config,
    target::{Chosen, ClusterArgs},
};

/// The timeout of a completion.
const LIMIT: Duration = Duration::from_secs(2);
/// The maximum number of tasks per run.
const TASKS: u32 = 100;

/// The kind of names to complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Runs,
    RunsTasksAndPods,
    TasksAndPods,
    Kinds,
    Objects,
}

/// Returns the names in the selected cluster; empty if it does not respond in time.
pub(super) fn names(line: &Line, wanted: Names, current: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let found = runtime.block_on(async {
        let found = tokio::time::timeout(LIMIT, ask(line, wanted, current)).await;
        found.ok().flatten().unwrap_or_default()
    });
    runtime.shutdown_background();
    found
}

async fn ask(line: &Line, wanted: Names, current: &str) -> Option<Vec<String>> {
    let args = ClusterArgs::of_words(
        line.option("context").map(str::to_owned),
        line.option("kubeconfig").map(PathBuf::from),
        line.has_flag("embedded"),
        line.option("data-dir").map(PathBuf::from),
    );
    let chosen = args.choice(&config::here().ok()?).await.ok()?;
    if let Chosen::Embedded(layout) = &chosen
        && !layout.dir().exists()
    {
        // A completion does not start a cluster.
        return None;
    }
    let target = chosen.open().await.ok()?;
    let cluster = target.cluster();
    let namespace = line.option("namespace");
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    let found = match wanted {
        Names::Runs => of_runs(cluster, namespace).await,
        Names::RunsTasksAndPods => of_logs(cluster, namespace, current).await,
        Names::TasksAndPods => of_tasks(cluster, namespace).await,
        Names::Kinds => of_kinds(cluster, namespace, current).await,
        Names::Objects => {
            let kind = line.words.first()?;
            of_objects(cluster, namespace, kind).await
        }
    };
    let _ = target.close().await;
    found
}

async fn of_runs(cluster: &Cluster, namespace: &str) -> Option<Vec<String>> {
    let found = runs::list(cluster, Some(namespace)).await.ok()?;
    let names = found.iter().map(|run| run.run.name.to_string());
    Some(names.chain(last(&found)).collect())
}

/// `last`, if there is a run.
fn last(found: &[RunSummary]) -> Option<String> {
    let mut runs = found.iter().filter(|run| run.schedule.is_none());
    runs.next().map(|_| runs::LAST.to_owned())
}

/// Names of runs; after `RUN/` its tasks, after `pod/` pods.
async fn of_logs(cluster: &Cluster, namespace: &str, current: &str) -> Option<Vec<String>> {
    if current.starts_with("pod/") {
        let pods = of_objects(cluster, namespace, "pods").await?;
        return Some(pods.iter().map(|pod| format!("pod/{pod}")).collect());
    }
    let found = runs::list(cluster, Some(namespace)).await.ok()?;
    let Some((word, _)) = current.split_once('/') else {
        let names = found.iter().map(|run| run.run.name.to_string());
        return Some(names.chain(last(&found)).collect());
    };
    let run = runs::pick_made(&found, namespace, word, None).ok()?;
    Some(tasks_of(word, run))
}

fn tasks_of(name: &str, run: &RunSummary) -> Vec<String> {
    let roles = run.run.roles.iter();
    let tasks = roles.flat_map(|role| {
        let indices = 0..role.count.min(TASKS);
        indices.map(move |index| format!("{name}/{}/{index}", role.name))
    });
    tasks.collect()
}

/// The tasks of active runs, and pods that do not belong to a run.
async fn of_tasks(cluster: &Cluster, namespace: &str) -> Option<Vec<String>> {
    let pods = cluster.pods().in_namespace(namespace).ok()?;
    let (found, pods) = futures::join!(runs::list(cluster, Some(namespace)), pods.list());
    let found = found.ok()?;
    let active = found.iter();
    let active: Vec<_> = active
        .filter(|run| !run.state.is_over() && run.schedule.is_none())
        .collect();
    let mut words: Vec<String> = active
        .iter()
        .flat_map(|run| tasks_of(run.run.name.as_str(), run))
        .collect();
    if active
        .iter()
        .any(|run| Some(run.run.name.as_str()) == newest(&found))
    {
        words.push(runs::LAST.to_owned());
    }
    let pods = pods.map(|pods| pods.items).unwrap_or_default();
    let others = pods
        .iter()
        .filter(|pod| !pod.meta().labels.contains_key(names::RUN));
    words.extend(others.map(|pod| pod.name().to_owned()));
    Some(words)
}

fn newest(found: &[RunSummary]) -> Option<&str> {
    let mut runs = found.iter().filter(|run| run.schedule.is_none());
    runs.next().map(|run| run.run.name.as_str())
}

async fn of_kinds(cluster: &Cluster, namespace: &str, current: &str) -> Option<Vec<String>> {
    if let Some((kind, _)) = current.split_once('/') {
        let names = of_objects(cluster, namespace, kind).await?;
        return Some(names.iter().map(|name| format!("{kind}/{name}")).collect());
    }
    let mut kinds: Vec<String> = kind::BUILTIN
        .iter()
        .map(|info| info.plural.to_string())
        .collect();
    kinds.sort();
    kinds.dedup();
    // Custom resources.
    if let Ok(view) = cluster.kind("customresourcedefinitions").await
        && let Ok(added) = view.list().await
    {
        kinds.extend(added.items.iter().map(|item| item.name().to_owned()));
    }
    Some(kinds)
}

async fn of_objects(cluster: &Cluster, namespace: &str, kind: &str) -> Option<Vec<String>> {
    let mut view = cluster.kind(kind).await.ok()?;
    if view.kind().is_namespaced() {
        view = view.in_namespace(namespace).ok()?;
    }
    let found = view.list().await.ok()?;
    let name = |item: &Item<Any>| item.name().to_owned();
    Some(found.items.iter().map(name).collect())
}
