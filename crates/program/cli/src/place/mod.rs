//! Resolves a name to a run, a task of a run, or a pod.

mod container;
mod word;

use longshore::{
    LabelSelector, View,
    client::{Cluster, Item, kinds::Pod},
    launcher::{
        Owner, RunSummary,
        names::{self, COMPLETION_INDEX, JOB_NAME, Task},
        runs::{self, RunsError},
        suggest,
    },
};

pub(crate) use container::Container;
pub(crate) use word::{Word, looks_like_a_task};

use crate::{
    error::{Error, Kind, Result},
    owners::{self, Access, Owned},
};

/// A resolved name.
#[derive(Debug)]
pub(crate) enum Place {
    /// A run. For a schedule, the last run that it has created.
    Run(Box<RunSummary>),
    /// Existing tasks of a run, with one role and optionally one index.
    Tasks {
        run: Box<RunSummary>,
        role: String,
        index: Option<u32>,
    },
    /// A pod.
    Pod(Box<Item<Pod>>),
}

/// Resolves a name. The order is: a full name of a run or pod, the host name of a Job's task,
/// and a prefix of a run's name or `last`.
///
/// For an action, asks if the run belongs to another user.
pub(crate) async fn find(
    cluster: &Cluster,
    namespace: &str,
    text: &str,
    access: Access,
) -> Result<Place> {
    let place = resolve(cluster, namespace, text, access).await?;
    place.allow(cluster, access).await?;
    Ok(place)
}

impl Place {
    /// Asks before an action on a run of another user.
    pub(crate) async fn allow(&self, cluster: &Cluster, access: Access) -> Result<()> {
        let owned = match self {
            Self::Run(run) | Self::Tasks { run, .. } => Some(Owned::from(&**run)),
            Self::Pod(pod) => pod_of_run(pod),
        };
        owners::allow_owned(cluster, owned.as_slice(), access).await
    }
}

/// The run of a pod, if it belongs to one.
fn pod_of_run(pod: &Item<Pod>) -> Option<Owned> {
    let run = pod.meta().labels.get(names::RUN)?;
    Some(Owned {
        name: run.clone(),
        owner: Owner::of_object(pod.meta()),
    })
}

async fn resolve(cluster: &Cluster, namespace: &str, text: &str, access: Access) -> Result<Place> {
    let pods = cluster.pods().in_namespace(namespace)?;
    match Word::parse(text)? {
        Word::Pod(name) => match pods.find(name).await? {
            Some(pod) => Ok(Place::Pod(Box::new(pod))),
            None => Err(no_pod(&pods, name).await),
        },
        Word::Task { run, role, index } => {
            let all = runs::list(cluster, Some(namespace)).await?;
            let me = runs::whose(cluster, &all, &[run], access.users()).await?;
            let found = runs::pick_made(&all, namespace, run, me.as_ref())?.clone();
            let (role, index) = found.run.role_and_index(role, index);
            let role = role.to_owned();
            found.run.check_task(Some(&role), index)?;
            Ok(Place::Tasks {
                run: Box::new(found),
                role,
                index,
            })
        }
        Word::Name(name) => named(cluster, namespace, name, &pods, access).await,
    }
}

async fn named(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    pods: &View<Pod>,
    access: Access,
) -> Result<Place> {
    // Do not query invalid pod names.
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
    let me = runs::whose(cluster, &all, &[name], access.users()).await?;
    match runs::pick_made(&all, namespace, name, me.as_ref()) {
        Ok(run) => Ok(Place::Run(Box::new(run.clone()))),
        Err(RunsError::NoSuchRun { nearest, .. }) => {
            // If the pod could not be requested, returns this error.
            pod?;
            Err(nothing(pods, name, nearest).await)
        }
        Err(error) => Err(error.into()),
    }
}

/// The pod of the task with this host name: `train-worker-0` of the Job `train-worker`. Ignores
/// the part after a dot, as in hostfiles.
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

/// The running pod, or the newest one, because a restarted task has a new pod.
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

/// The task of a run's pod.
pub(crate) fn task_of(pod: &Item<Pod>) -> Option<Task> {
    pod.typed::<runs::TaskPod>().ok()?.task()
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

/// The maximum number of pod names to compare.
const COMPARED: usize = 1000;

async fn nearest_pod(pods: &View<Pod>, name: &str) -> Option<String> {
    // Only for a suggestion, so ignore errors.
    let all = pods.list().await.ok()?.items;
    let names = all.iter().take(COMPARED).map(Item::name);
    suggest::nearest(name, names).map(str::to_owned)
}

fn meant(near: Option<String>) -> String {
    near.map(|near| format!(" (did you mean {near:?}?)"))
        .unwrap_or_default()
}
