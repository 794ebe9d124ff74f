//! Starting and stopping the agent; handing pods to their tasks.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    os::unix::fs::DirBuilderExt,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;
use longshore_client::{Change, Changes, Cluster, FieldSelector, Item, kinds};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
};

use crate::{
    ApiAccess, Error, FillVolumes, ImageEntrypoint, LastEnd, LogLimits, LogReader, Sessions,
    address::Addresses,
    devices::{self, Devices},
    events::Events,
    hosts::Hosts,
    images::ImageEntrypoints,
    logs::LogStore,
    machine, node,
    pod::{self, Message, Shared},
    remover::Remover,
    sandbox::Spawner,
    security::Powers,
    streams::Live,
};

/// What pods get at most after `stop` before they are abandoned to their
/// guards, which kill.
const STOP_AT_MOST: Duration = Duration::from_secs(10);

/// How long a part of the agent that panicked waits before it begins again.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// How the agent runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster it serves.
    pub cluster: Cluster,
    /// The node's name, as `longshore`.
    pub name: String,
    /// Where logs and volumes are kept; made if missing.
    pub data_dir: PathBuf,
    /// A folder that comes first in the PATH of pods.
    pub path_prepend: Option<PathBuf>,
    /// How pods reach the API; `None`: they get no access.
    pub access: Option<ApiAccess>,
    /// How much is kept of each container's log.
    pub log_limits: LogLimits,
    /// Commands of images, for containers that name none.
    pub image_entrypoints: Vec<ImageEntrypoint>,
    /// Where the kernel's files about GPUs are: `/`, or a tree of a test's own.
    pub device_root: PathBuf,
    /// Fills new volumes of pods.
    pub fill_volumes: Option<Arc<dyn FillVolumes>>,
    /// How the agent before this one ended on the same data, if that is known.
    pub last_end: Option<LastEnd>,
}

/// A running node agent. Stop it with [`NodeAgent::stop`]; dropping it kills
/// its pods.
#[derive(Debug)]
pub struct NodeAgent {
    logs: LogReader,
    sessions: Sessions,
    stop: watch::Sender<bool>,
    pods: Option<JoinHandle<()>>,
    background: JoinSet<()>,
}

impl NodeAgent {
    /// Registers the node and begins to run the pods bound to it.
    ///
    /// # Errors
    /// [`Error`]: the data folder cannot be used, the API refuses the node or
    /// the watch of its pods.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let Options {
            cluster,
            name,
            data_dir,
            path_prepend,
            access,
            log_limits,
            image_entrypoints,
            device_root,
            fill_volumes,
            last_end,
        } = options;
        let data = make_folders(&data_dir).map_err(|source| Error::DataFolder {
            path: data_dir.clone(),
            source,
        })?;
        let spawner = Spawner::start(&data.join("probe"))
            .await
            .map_err(Error::Spawner)?;
        if let Some(refusal) = &spawner.features().refusal {
            tracing::warn!(
                refusal,
                "no namespaces: pods run as process groups, without volumes"
            );
        }
        let remover = Remover::start().map_err(Error::Spawner)?;
        let devices = Devices::new(devices::detect(&device_root, |name| env::var(name).ok()));
        let machine = machine::Facts::read(&data, &devices);
        node::register(&cluster, &name, &machine)
            .await
            .map_err(|source| Error::Register {
                name: name.clone(),
                source,
            })?;
        let bound = FieldSelector::everything().with("spec.nodeName", name.as_str());
        let cache = cluster
            .pods()
            .fields(bound)
            .cache()
            .await
            .map_err(Error::Watch)?;

        let mut background = JoinSet::new();
        let (events, write_events) = Events::new(cluster.clone(), name.clone());
        background.spawn(write_events);
        background.spawn(supervised("lease and status", {
            let (cluster, name, machine) = (cluster.clone(), name.clone(), machine.clone());
            move || node::keep_alive(cluster.clone(), name.clone(), machine.clone())
        }));
        let hosts = Hosts::new();
        background.spawn(supervised("hosts files", {
            let hosts = hosts.clone();
            move || {
                let hosts = hosts.clone();
                async move { hosts.maintain().await }
            }
        }));
        let logs = LogStore::new(data.join("logs"), log_limits);
        let present: HashSet<String> = cache
            .items()
            .iter()
            .map(|item| item.uid().to_owned())
            .collect();
        logs.keep_only(&|uid| present.contains(uid));
        forget_pods(&data.join("pods"), &present);

        let (stop, stopping) = watch::channel(false);
        let reader = LogReader::new(logs.clone());
        let shared = Arc::new(Shared {
            cluster,
            node: name,
            addresses: Addresses::new(&data),
            data,
            path_prepend,
            access,
            machine,
            powers: powers(&spawner),
            devices,
            image_entrypoints: ImageEntrypoints(image_entrypoints),
            spawner,
            hosts,
            logs,
            live: Live::default(),
            events,
            fill_volumes,
            remover,
            stopping,
            last_end,
        });
        let sessions = Sessions::new(Arc::downgrade(&shared));
        let changes = cache.subscribe();
        let pods = tokio::spawn(async move {
            // The watch ends with the last cache.
            let _cache = cache;
            dispatch(shared, changes).await;
        });
        Ok(Self {
            logs: reader,
            sessions,
            stop,
            pods: Some(pods),
            background,
        })
    }

    /// Reads the logs of the node's containers.
    #[must_use]
    pub fn logs(&self) -> LogReader {
        self.logs.clone()
    }

    /// Opens sessions with the node's containers.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        self.sessions.clone()
    }

    /// Ends all containers (TERM, a second later KILL) and reaps them. The pods
    /// stay in the API as they are: an agent that starts later on the same data
    /// finds their containers lost and goes on by their restartPolicy.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(pods) = &mut self.pods
            && tokio::time::timeout(STOP_AT_MOST, &mut *pods)
                .await
                .is_err()
        {
            tracing::warn!("pods did not end in time; they are killed");
            pods.abort();
            let _ = pods.await;
        }
        self.pods = None;
        self.background.shutdown().await;
    }
}

impl Drop for NodeAgent {
    fn drop(&mut self) {
        if let Some(pods) = self.pods.take() {
            pods.abort();
        }
    }
}

/// What this process may do to those that it starts.
fn powers(spawner: &Spawner) -> Powers {
    let features = spawner.features();
    Powers {
        namespaces: features.has_mounts(),
        user_namespace: features.has_user_namespace(),
        read_only_views: features.read_only_views,
        ..Powers::of_this_process()
    }
}

/// Work that begins again when it panics.
async fn supervised<F: Future<Output = ()>>(what: &'static str, work: impl Fn() -> F) {
    while AssertUnwindSafe(work()).catch_unwind().await.is_err() {
        tracing::error!(what, "a part of the node agent panicked; it begins again");
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

fn make_folders(data: &Path) -> std::io::Result<PathBuf> {
    // Secrets of pods are below: no other user may read them.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)?;
    let data = data.canonicalize()?;
    for name in ["logs", "pods", "probe"] {
        fs::create_dir_all(data.join(name))?;
    }
    Ok(data)
}

/// Removes what pods left that were deleted while no agent ran.
fn forget_pods(folder: &Path, present: &HashSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_str()
            .is_none_or(|uid| !present.contains(uid))
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A pod's task, as the dispatcher sees it.
struct Handle {
    uid: String,
    messages: mpsc::UnboundedSender<Message>,
}

/// Gives every pod of the node a task and passes changes on to it.
async fn dispatch(shared: Arc<Shared>, mut changes: Changes<kinds::Pod>) {
    let mut tasks = JoinSet::new();
    let mut handles: HashMap<(String, String), Handle> = HashMap::new();
    let mut stopping = shared.stopping.clone();
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            _ = stopping.wait_for(|stop| *stop) => break,
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of a pod ended unexpectedly");
                }
                continue;
            }
        };
        match change {
            Some(Change::Upsert(item)) => {
                let Some((key, pod)) = read(&item) else {
                    continue;
                };
                let known = handles.get(&key).filter(|handle| handle.uid == item.uid());
                if let Some(handle) = known {
                    let _ = handle.messages.send(Message::Updated(Box::new(pod)));
                    continue;
                }
                // Another pod of the same name: the older one is gone.
                if let Some(old) = handles.remove(&key) {
                    let _ = old.messages.send(Message::Removed);
                }
                let (messages, received) = mpsc::unbounded_channel();
                handles.insert(
                    key,
                    Handle {
                        uid: item.uid().to_owned(),
                        messages,
                    },
                );
                tasks.spawn(pod::run(shared.clone(), pod, received));
            }
            Some(Change::Gone(item)) => {
                let key = (
                    item.namespace().unwrap_or_default().to_owned(),
                    item.name().to_owned(),
                );
                if let Some(handle) = handles.remove(&key) {
                    let _ = handle.messages.send(Message::Removed);
                }
            }
            None => break,
        }
    }
    drop(handles);
    while tasks.join_next().await.is_some() {}
}

fn read(item: &Item<kinds::Pod>) -> Option<((String, String), Pod)> {
    match item.typed::<Pod>() {
        Ok(pod) => {
            let key = (
                item.namespace().unwrap_or_default().to_owned(),
                item.name().to_owned(),
            );
            Some((key, pod))
        }
        Err(error) => {
            tracing::warn!(pod = item.name(), %error, "a pod cannot be read and is not run");
            None
        }
    }
}
