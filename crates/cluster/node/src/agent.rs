//! Starts and stops the agent and dispatches pods to their tasks.

use std::{
    collections::{HashMap, HashSet},
    env,
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, try_join_all},
};
use k8s_openapi::api::core::v1::Pod;
use longshore_client::{Cache, Change, Changes, Cluster, FieldSelector, Item, kinds};
use longshore_clock::Clock;
use longshore_model::network::node_address;
use longshore_services::{HostPorts, Services};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    ApiAccess, CollectFiles, Error, FillVolumes, ImageEntrypoint, ImageUser, LastEnd, LogLimits,
    LogReader, Sessions,
    address::Addresses,
    allocations::Allocations,
    cgroups::Cgroups,
    data_folder,
    devices::{self, Devices},
    dns,
    events::Events,
    host_ports::{AdmittedPorts, Rejection},
    hosts::Hosts,
    images::{ImageEntrypoints, ImageUsers},
    logs::{LogStore, keep},
    machine,
    node::{self, NodeInfo},
    pod::{self, EarlierPods, Message, Shared},
    remover::Remover,
    sandbox::Spawner,
    security::AgentPrivileges,
    streams::RunningContainers,
    sysctls,
    usage::UsageMeter,
};

/// Maximum time for pods to end after `stop`. After that, dropping their
/// process guards kills them.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time a start waits until pods that ended with the last agent are reported.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay before a component of the agent that panicked is restarted.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The configuration of the agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster that the nodes belong to.
    pub cluster: Cluster,
    /// The names of the nodes, for example `longshore`: at least one, at most
    /// [`MAX_NODES`](crate::MAX_NODES). Each node has its own address, which is [`node_address`] of
    /// its index, and the capacity of the whole machine, except for GPUs, which are distributed to
    /// the nodes.
    pub nodes: Vec<String>,
    /// The directory of logs and volumes; created if missing.
    pub data_dir: PathBuf,
    /// A directory that comes first in the `PATH` of pods.
    pub path_prepend: Option<PathBuf>,
    /// The address of the API for pods; `None` gives them no access.
    pub access: Option<ApiAccess>,
    /// Limits of each container's log.
    pub log_limits: LogLimits,
    /// True to keep the logs of a Job's deleted pods until the Job is removed. Requires permission
    /// to watch Jobs, and to read their controllers.
    pub keep_logs: bool,
    /// The file with the limit in bytes of the disk space of these logs, which may change at any
    /// time. Without the file, the limit is [`KEPT_LOGS_LIMIT`](crate::KEPT_LOGS_LIMIT).
    pub kept_logs_limit: Option<PathBuf>,
    /// Entrypoints of images, for containers without a command.
    pub image_entrypoints: Vec<ImageEntrypoint>,
    /// Users of images, for containers without `runAsUser`.
    pub image_users: Vec<ImageUser>,
    /// The root of the kernel's files about GPUs: `/`, or a directory tree in tests.
    pub device_root: PathBuf,
    /// Populates new volumes of pods.
    pub fill_volumes: Option<Arc<dyn FillVolumes>>,
    /// Reads the volumes of pods that have ended.
    pub collect_files: Option<Arc<dyn CollectFiles>>,
    /// The end of the previous agent on the same data, if it is known.
    pub last_end: Option<LastEnd>,
    /// The clock of the cluster. Times in statuses, deadlines and delays of restarts use this
    /// clock. Probes and grace periods of processes do not.
    pub clock: Clock,
}

/// A running agent of the nodes of this machine. Stop it with [`NodeAgent::stop`]; dropping it kills
/// its pods.
#[derive(Debug)]
pub struct NodeAgent {
    logs: LogReader,
    sessions: Sessions,
    stop: watch::Sender<bool>,
    /// True after the dispatchers may run pods.
    runs: watch::Sender<bool>,
    earlier: Arc<EarlierPods>,
    /// The dispatchers of the nodes' pods.
    pods: JoinSet<()>,
    background: JoinSet<()>,
}

impl NodeAgent {
    /// Registers the nodes. Pods bound to them run from [`NodeAgent::run_pods`] on.
    ///
    /// # Errors
    /// [`Error`]: the data folder cannot be used, or the API rejects a
    /// node or the watch of its pods.
    pub fn start(options: Options) -> BoxFuture<'static, Result<Self, Error>> {
        // Boxed, so that the future is compiled in this crate instead of in each crate that awaits
        // it.
        Box::pin(Self::begin(options))
    }

    async fn begin(options: Options) -> Result<Self, Error> {
        let Options {
            cluster,
            nodes: names,
            data_dir,
            path_prepend,
            access,
            log_limits,
            keep_logs,
            kept_logs_limit,
            image_entrypoints,
            image_users,
            device_root,
            fill_volumes,
            collect_files,
            last_end,
            clock,
        } = options;
        let unusable = |source| Error::DataFolder {
            path: data_dir.clone(),
            source,
        };
        let data = data_folder::create(&data_dir).map_err(unusable)?;
        let mut removed = data_folder::earlier_nodes(&data).map_err(unusable)?;
        removed.retain(|name| !names.contains(name));
        // All names are recorded in case this agent ends before it has removed the other nodes.
        data_folder::record_nodes(&data, names.iter().chain(&removed)).map_err(unusable)?;
        let spawner = Spawner::start(&data.join(data_folder::PROBE))
            .await
            .map_err(Error::Spawner)?;
        if let Some(refusal) = &spawner.features().refusal {
            tracing::warn!(
                refusal,
                "no namespaces: pods run as process groups, without volumes"
            );
        }
        let cgroups = Cgroups::of_this_process();
        let leftovers = cgroups.clone();
        // The task is not awaited, because the processes of these groups have ended.
        drop(tokio::task::spawn_blocking(move || {
            leftovers.remove_leftovers()
        }));
        let remover = Remover::start().map_err(Error::Spawner)?;
        let machine = machine::MachineInfo::read(&data);
        let found = devices::detect(&device_root, |name| env::var(name).ok());
        let shares = devices::distribute(&found, names.len()).into_iter();
        let nodes: Vec<(NodeInfo, Devices)> = (0_u8..)
            .map(node_address)
            .zip(names.iter().zip(shares.map(Devices::new)))
            .map(|(address, (name, devices))| {
                let info = NodeInfo::new(name, address, machine.clone(), cgroups.clone(), &devices);
                (info, devices)
            })
            .collect();
        let joining = nodes.iter().map(|(info, _)| join(&cluster, info, &clock));
        let (caches, dns, is_removed) = futures::join!(
            try_join_all(joining),
            dns::open(&cluster),
            node::remove(&cluster, &removed)
        );
        let caches = caches?;
        is_removed.map_err(Error::EarlierNodes)?;
        data_folder::record_nodes(&data, &names).map_err(unusable)?;

        let mut background = JoinSet::new();
        for (info, _) in &nodes {
            background.spawn(restart_on_panic("lease and status", {
                let (cluster, info, clock) = (cluster.clone(), info.clone(), clock.clone());
                move || node::keep_alive(cluster.clone(), info.clone(), clock.clone())
            }));
        }
        let hosts = Hosts::new();
        let addresses = nodes.iter().map(|(info, _)| info.address).collect();
        let (services, forward) = Services::new(cluster.clone(), addresses, clock.clone());
        background.spawn(forward);
        let dns = dns.map(|(dns, sockets)| {
            let settings = dns::machine_settings();
            background.spawn(services.dns(sockets, dns.address, hosts.clone(), settings));
            dns
        });
        background.spawn({
            let (services, hosts) = (services.clone(), hosts.clone());
            async move {
                let mut changes = services.changes();
                loop {
                    hosts.set_services(services.names());
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
            }
        });
        background.spawn(restart_on_panic("hosts files", {
            let hosts = hosts.clone();
            move || {
                let hosts = hosts.clone();
                async move { hosts.maintain().await }
            }
        }));
        let folder = data.join(data_folder::LOGS);
        let logs = match keep_logs {
            true => LogStore::keeping(folder, log_limits, kept_logs_limit),
            false => LogStore::new(folder, log_limits),
        };
        let items = caches.iter().flat_map(Cache::items);
        let present: HashSet<String> = items.map(|item| item.uid().to_owned()).collect();
        logs.keep_only(&|uid| present.contains(uid));
        data_folder::remove_stale_pods(&data, &present, &remover);
        if let Some(kept) = logs.kept().cloned() {
            let cluster = cluster.clone();
            background.spawn(restart_on_panic("logs of deleted pods", move || {
                keep(cluster.clone(), kept.clone())
            }));
        }

        let (stop, stopping) = watch::channel(false);
        let reader = LogReader::new(logs.clone());
        let agent_privileges = Arc::new(agent_privileges(&spawner));
        let spawner = Arc::new(spawner);
        let remover = Arc::new(remover);
        let image_entrypoints = Arc::new(ImageEntrypoints(image_entrypoints));
        let image_users = Arc::new(ImageUsers(image_users));
        let addresses = Arc::new(Addresses::new(&data));
        let running_containers = Arc::new(RunningContainers::default());
        let usage = Arc::new(UsageMeter::default());
        let earlier = Arc::new(EarlierPods::default());
        let mut of_nodes = Vec::new();
        for (info, devices) in nodes {
            let name = info.name.clone();
            let (events, write_events) = Events::new(cluster.clone(), name, clock.clone());
            background.spawn(write_events);
            of_nodes.push(Arc::new(Shared {
                cluster: cluster.clone(),
                node: info.name,
                address: info.address,
                addresses: addresses.clone(),
                data: data.clone(),
                path_prepend: path_prepend.clone(),
                access: access.clone(),
                machine: info.machine,
                agent_privileges: agent_privileges.clone(),
                devices,
                image_entrypoints: image_entrypoints.clone(),
                image_users: image_users.clone(),
                spawner: spawner.clone(),
                cgroups: cgroups.clone(),
                allocations: Allocations::default(),
                hosts: hosts.clone(),
                services: services.clone(),
                host_ports: HostPorts::default(),
                admitted_ports: AdmittedPorts::default(),
                dns,
                logs: logs.clone(),
                running_containers: running_containers.clone(),
                usage: usage.clone(),
                events,
                fill_volumes: fill_volumes.clone(),
                collect_files: collect_files.clone(),
                remover: remover.clone(),
                stopping: stopping.clone(),
                last_end: last_end.clone(),
                earlier: earlier.clone(),
                clock: clock.clone(),
            }));
        }
        let shared = of_nodes.first().map(Arc::downgrade).unwrap_or_default();
        let sessions = Sessions::new(shared, names);
        let runs = watch::Sender::new(false);
        let mut pods = JoinSet::new();
        for (shared, cache) in of_nodes.into_iter().zip(caches) {
            admit_earlier_pods(&shared, cache.items());
            let mut may_run = runs.subscribe();
            let mut stopping = stopping.clone();
            pods.spawn(async move {
                tokio::select! {
                    _ = may_run.wait_for(|runs| *runs) => {}
                    _ = stopping.wait_for(|stops| *stops) => return,
                }
                let changes = cache.subscribe();
                // The watch ends when the last cache is dropped.
                let _cache = cache;
                dispatch(shared, changes).await;
            });
        }
        Ok(Self {
            logs: reader,
            sessions,
            stop,
            runs,
            earlier,
            pods,
            background,
        })
    }

    /// Starts to run the pods bound to the nodes. Before this call, the agent has done nothing that
    /// the cluster could not repeat after a crash. Returns after the API shows no container as
    /// running that ended with an earlier agent.
    pub async fn run_pods(&self) {
        self.runs.send_replace(true);
        let left = self.earlier.removed(REPORT_TIMEOUT).await;
        if left > 0 {
            tracing::warn!(
                pods = left,
                "pods that ended with the last agent are still shown as running; their status follows"
            );
        }
    }

    /// Returns a reader of the node's container logs.
    #[must_use]
    pub fn logs(&self) -> LogReader {
        self.logs.clone()
    }

    /// Returns a handle to open sessions with the node's containers.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        self.sessions.clone()
    }

    /// Stops all containers (TERM, and KILL one second later) and reaps them. The Pod objects are
    /// not changed: a later agent on the same data finds their containers terminated and applies
    /// their restartPolicy.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let pods = &mut self.pods;
        let ended = async { while pods.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("pods did not end in time; killing them");
            self.pods.shutdown().await;
        }
        self.background.shutdown().await;
    }
}

/// Registers a node. Returns the pods that are bound to it.
async fn join(
    cluster: &Cluster,
    info: &NodeInfo,
    clock: &Clock,
) -> Result<Cache<kinds::Pod>, Error> {
    let registered = node::register(cluster, info, clock).await;
    registered.map_err(|source| Error::Register {
        name: info.name.clone(),
        source,
    })?;
    let bound = FieldSelector::everything().with("spec.nodeName", info.name.as_str());
    let pods = cluster.pods().fields(bound);
    pods.cache().await.map_err(Error::Watch)
}

/// Determines the privileges of this process over the processes that it starts.
fn agent_privileges(spawner: &Spawner) -> AgentPrivileges {
    let features = spawner.features();
    AgentPrivileges {
        namespaces: features.has_mounts(),
        user_namespace: features.has_user_namespace(),
        read_only_views: features.read_only_views,
        ..AgentPrivileges::of_this_process()
    }
}

/// Runs work and restarts it when it panics.
async fn restart_on_panic<F: Future<Output = ()>>(what: &'static str, work: impl Fn() -> F) {
    while AssertUnwindSafe(work()).catch_unwind().await.is_err() {
        tracing::error!(
            what,
            "a component of the node agent panicked; restarting it"
        );
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

/// The dispatcher's handle to a pod's task.
struct PodHandle {
    uid: String,
    messages: mpsc::UnboundedSender<Message>,
}

/// Admits a pod to the node, unless it has ended.
fn admit(shared: &Shared, pod: &Pod) -> Result<(), Rejection> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    match pod::has_ended(pod) {
        true => Ok(()),
        false => sysctls::check(pod).and_then(|()| shared.admitted_ports.admit(uid, pod)),
    }
}

/// Admits the pods of an earlier agent in the order of their creation, so that a pod that has run
/// is not rejected in favour of a later pod.
fn admit_earlier_pods(shared: &Shared, items: Vec<Item<kinds::Pod>>) {
    let mut pods: Vec<Pod> = items
        .iter()
        .filter_map(|item| read(item).map(|(_, pod)| pod))
        .collect();
    pods.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
    for pod in pods {
        shared.earlier.add(&pod);
        // A pod that is not admitted fails when its task starts.
        let _ = admit(shared, &pod);
    }
}

/// Starts a task for every pod of the node and forwards changes to it.
async fn dispatch(shared: Arc<Shared>, mut changes: Changes<kinds::Pod>) {
    let mut tasks = JoinSet::new();
    let mut handles: HashMap<(String, String), PodHandle> = HashMap::new();
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
                // Another pod with the same name exists, so the older one was deleted.
                if let Some(old) = handles.remove(&key) {
                    let _ = old.messages.send(Message::Removed);
                }
                let (messages, received) = mpsc::unbounded_channel();
                handles.insert(
                    key,
                    PodHandle {
                        uid: item.uid().to_owned(),
                        messages,
                    },
                );
                let rejection = admit(&shared, &pod).err();
                tasks.spawn(pod::run(shared.clone(), pod, rejection, received));
            }
            Some(Change::Gone(item)) => {
                let key = (
                    item.namespace().unwrap_or_default().to_owned(),
                    item.name().to_owned(),
                );
                shared.admitted_ports.release(item.uid());
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
    match item.object() {
        Ok(pod) => {
            let key = (
                item.namespace().unwrap_or_default().to_owned(),
                item.name().to_owned(),
            );
            Some((key, pod))
        }
        Err(error) => {
            tracing::warn!(pod = item.name(), %error, "cannot decode a pod; it does not run");
            None
        }
    }
}
