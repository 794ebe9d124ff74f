//! What a word means: a run, a task of a run, or a pod.

mod container;
mod word;

use longshore::{
    LabelSelector, View,
    client::{Cluster, Item, kinds::Pod},
    launcher::{
        RunSummary,
        names::{COMPLETION_INDEX, JOB_NAME, Task},
        runs::{self, RunsError},
        suggest,
    },
};

pub(crate) use container::Container;
use word::Word;
pub(crate) use word::looks_like_a_task;

use crate::error::{Error, Kind, Result};

/// What a word was found to mean.
#[derive(Debug)]
pub(crate) enum Place {
    /// A run. Of a schedule, the last run that it has made.
    Run(Box<RunSummary>),
    /// Tasks of a run, of one role and perhaps of one index, which exist.
    Tasks {
        run: Box<RunSummary>,
        role: String,
        index: Option<u32>,
    },
    /// A pod.
    Pod(Box<Item<Pod>>),
}

/// Finds out what a word means. A full name comes first, be it a run's or a pod's, then
/// the host name of a Job's task, then a beginning of a run's name, or `last`.
pub(crate) async fn find(cluster: &Cluster, namespace: &str, text: &str) -> Result<Place> {
    let pods = cluster.pods().in_namespace(namespace)?;
    match Word::parse(text)? {
        Word::Pod(name) => match pods.find(name).await? {
            Some(pod) => Ok(Place::Pod(Box::new(pod))),
            None => Err(no_pod(&pods, name).await),
        },
        Word::Task { run, role, index } => {
            let found = runs::find_made(cluster, namespace, run).await?;
            found.run.check_task(Some(role), index)?;
            Ok(Place::Tasks {
                run: Box::new(found),
                role: role.to_owned(),
                index,
            })
        }
        Word::Name(name) => named(cluster, namespace, name, &pods).await,
    }
}

async fn named(cluster: &Cluster, namespace: &str, name: &str, pods: &View<Pod>) -> Result<Place> {
    // What cannot be a pod's name is not asked for.
    let is_pods = longshore::model::name::dns_subdomain("pod", name).is_ok();
    let pod = async {
        match is_pods {
            true => pods.find(name).await,
            false => Ok(None),
        }
    };
    let (all, pod) = futures::join!(runs::list(cluster, Some(namespace)), pod);
    let is_run = |run: &RunSummary| run.run.name.as_str() == name;
    let has_run = all.as_ref().is_ok_and(|all| all.iter().any(is_run));
    if let (false, Ok(Some(pod))) = (has_run, &pod) {
        return Ok(Place::Pod(Box::new(pod.clone())));
    }
    if !has_run && let Some(pod) = of_host(pods, name).await? {
        return Ok(Place::Pod(Box::new(pod)));
    }
    let all = all?;
    match runs::pick_made(&all, namespace, name) {
        Ok(run) => Ok(Place::Run(Box::new(run.clone()))),
        Err(RunsError::NoSuchRun { nearest, .. }) => {
            // Whether there is such a pod is not known.
            pod?;
            Err(nothing(pods, name, nearest).await)
        }
        Err(error) => Err(error.into()),
    }
}

/// The pod of the task of that host name: `train-worker-0` of the Job `train-worker`,
/// with what follows a dot left out, as hostfiles have it.
async fn of_host(pods: &View<Pod>, name: &str) -> Result<Option<Item<Pod>>> {
    let Some((job, index)) = word::host(name) else {
        return Ok(None);
    };
    let labels = LabelSelector::exactly([(JOB_NAME, job), (COMPLETION_INDEX, index)]);
    let Ok(labels) = labels else {
        return Ok(None);
    };
    let found = pods.clone().labels(labels).list().await?.items;
    Ok(newest(found))
}

/// The pod that runs; else the one that was created last: a task that is started again
/// gets another pod.
fn newest(mut pods: Vec<Item<Pod>>) -> Option<Item<Pod>> {
    let runs = |pod: &Item<Pod>| pod.phase().is_ok_and(|phase| !phase.is_final());
    pods.sort_by_key(|pod| (runs(pod), pod.meta().creation_timestamp));
    pods.pop()
}

/// The pod of a task of a run, if it has one.
async fn pod_of(cluster: &Cluster, run: &runs::Run, task: &Task) -> Result<Option<Item<Pod>>> {
    let mut pods = run.list_pods(cluster).await?;
    pods.retain(|pod| task_of(pod).as_ref() == Some(task));
    Ok(newest(pods))
}

/// Which task of a run a pod is.
pub(crate) fn task_of(pod: &Item<Pod>) -> Option<Task> {
    let evidence = pod.typed::<longshore::launcher::evidence::PodEvidence>();
    evidence.ok()?.task()
}

async fn no_pod(pods: &View<Pod>, name: &str) -> Error {
    let near = nearest_pod(pods, name).await;
    let place = pods.namespace().unwrap_or_default();
    let message = format!("no pod {name:?} in namespace {place:?}{}", meant(near));
    Error::new(Kind::Failed, message).hint("`longshore get pods` lists the pods")
}

async fn nothing(pods: &View<Pod>, name: &str, nearest_run: Option<String>) -> Error {
    let near = match nearest_run {
        Some(run) => Some(run),
        None => nearest_pod(pods, name).await,
    };
    let place = pods.namespace().unwrap_or_default();
    let message = format!(
        "no run or pod {name:?} in namespace {place:?}{}",
        meant(near)
    );
    Error::new(Kind::Failed, message)
        .hint("`longshore runs` lists the runs, `longshore get pods` the pods")
}

/// So many pods are compared with a word at most.
const COMPARED: usize = 1000;

async fn nearest_pod(pods: &View<Pod>, name: &str) -> Option<String> {
    // Only a help: an error of this question says nothing about the first.
    let all = pods.list().await.ok()?.items;
    let names = all.iter().take(COMPARED).map(Item::name);
    suggest::nearest(name, names).map(str::to_owned)
}

fn meant(near: Option<String>) -> String {
    near.map(|near| format!(" (did you mean {near:?}?)"))
        .unwrap_or_default()
}
