//! The task of one pod: starts its containers in order, handles their exits,
//! reports the status, and stops them.

mod cgroup;
mod container;
mod ephemeral;
mod hooks;
mod host_ports;
mod links;
mod probing;
mod release;
mod report;
mod resize;
mod retry;
mod setup;
mod stop;
mod unkillable;

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    Shared, messages,
    record::{self, Policy, Record, Role, State},
    resize::{Allocation, Resize},
    start,
    status::{self, Phase},
    termination,
};
use crate::{
    certificates::PodCertificates,
    cgroups::{Group, Limits},
    claims::ClaimVolumes,
    events::Note,
    host_ports::Rejection,
    logs::KeptPod,
    sandbox::{PodPorts, Process},
    tokens::Tokens,
    volumes::{self, Prepared},
};
use container::RunEnd;
use hooks::{HookEnd, Starting};
use host_ports::ForwardedPorts;
use links::Links;
use probing::{Probed, Probes};
use retry::Retry;
use stop::{ContainerStop, STOP_GRACE, Stopping, later};

/// A message from the agent to a pod's task.
#[derive(Debug)]
pub(crate) enum Message {
    /// The object changed.
    Updated(Box<Pod>),
    /// The object was deleted.
    Removed,
}

/// A message from a pod's own subtasks.
enum SubtaskMessage {
    Ended(RunEnd),
    Probed(Probed),
    HookEnded(HookEnd),
    /// A ConfigMap or Secret of a volume may have changed.
    SourcesChanged,
    /// Certificates of the pod were issued or refused.
    CertificatesChanged,
    /// This many readers of a container's log were dropped as too slow.
    ReadersDropped {
        index: usize,
        readers: usize,
    },
}

struct Worker {
    shared: Arc<Shared>,
    pod: Pod,
    uid: String,
    namespace: String,
    name: String,
    policy: Policy,
    records: Vec<Record>,
    running: HashMap<usize, Arc<Process>>,
    /// The numbers of the current runs of running containers. Messages of earlier runs are ignored.
    runs: HashMap<usize, u64>,
    started_runs: u64,
    running_since: HashMap<usize, Instant>,
    starting: HashMap<usize, Starting>,
    probes: HashMap<usize, Probes>,
    stops: HashMap<usize, ContainerStop>,
    /// The time at which a container may start, by the cluster's clock; immediately if absent,
    /// never if `None`.
    due: HashMap<usize, Option<Instant>>,
    /// The time at which the start of a container is tried again, by the system's clock.
    retry_at: HashMap<usize, Instant>,
    config_retry: HashMap<usize, Retry>,
    inner: mpsc::Sender<SubtaskMessage>,
    /// Watches the sources of volumes; ends with the worker.
    refresher: JoinSet<()>,
    /// Tokens of the pod's service account.
    tokens: Arc<Tokens>,
    /// Certificates of the pod, if its volumes have any.
    certificates: Option<Arc<PodCertificates>>,
    /// Requests and renews the certificates; ends with the worker.
    certifier: JoinSet<()>,
    address: Option<Ipv4Addr>,
    /// The pod's ports, unless the pod uses the machine's network.
    ports: Option<Arc<PodPorts>>,
    /// The ports of the node that are forwarded to the pod.
    forwarded_ports: ForwardedPorts,
    volumes: Option<BTreeMap<String, Prepared>>,
    /// The pod's cgroup.
    cgroup: Option<Arc<Group>>,
    /// The pod's limits.
    pod_limits: Limits,
    /// The cgroups of running containers, and their limits.
    groups: HashMap<usize, (Arc<Group>, Limits)>,
    /// The resources that the node has allocated to the pod.
    allocation: Allocation,
    resize: Resize,
    resize_retry: Retry,
    /// The generation whose resources were compared with the allocation.
    compared: Option<i64>,
    /// Containers that restart to be resized, with true if they have ended.
    resizing: HashMap<usize, bool>,
    /// The process that holds the volumes in memory.
    memory: Option<Process>,
    /// The variables that name Services.
    links: Links,
    /// The volumes of the pod's claims.
    claims: ClaimVolumes,
    setup_retry: Retry,
    started: Option<Timestamp>,
    stopping: Option<Stopping>,
    reason: Option<(&'static str, String)>,
    /// True if the pod was not admitted to the node.
    is_rejected: bool,
    phase: Phase,
    released: bool,
    /// True if the hook has read the volumes or does not need to.
    collected: bool,
    torn_down: bool,
    conditions: Vec<Value>,
    reported: Option<Value>,
    report_retry: Retry,
    deleted: bool,
}

/// Runs a pod until it is removed or the agent stops. A rejected pod fails without running.
pub(super) async fn run(
    shared: Arc<Shared>,
    pod: Pod,
    rejection: Option<Rejection>,
    messages: &mut mpsc::UnboundedReceiver<Message>,
) {
    let (inner, mut reports) = mpsc::channel(16);
    let mut stopping = shared.stopping.clone();
    let mut worker = Worker::new(shared, pod, inner);
    worker.keep_name();
    match rejection {
        Some(rejection) => worker.reject(rejection),
        None if worker.phase.is_terminal() => {}
        None => worker.admit_resources(),
    }
    let running = async {
        match worker.wait_for_earlier_processes(messages).await {
            Some(false) => worker.run_until_removed(messages, &mut reports).await,
            removed => removed == Some(true),
        }
    };
    let removed = tokio::select! {
        removed = running => removed,
        _ = stopping.wait_for(|stop| *stop) => false,
    };
    worker
        .end_all(
            &mut reports,
            if removed { Duration::ZERO } else { STOP_GRACE },
        )
        .await;
    worker.free_host_ports().await;
    worker.release();
    if removed {
        worker.collect_files_of_removed().await;
        worker.shared.remove_files(&worker.uid);
    }
}

impl Worker {
    fn new(shared: Arc<Shared>, pod: Pod, inner: mpsc::Sender<SubtaskMessage>) -> Self {
        let now = shared.clock.now();
        let metadata = &pod.metadata;
        let status = pod.status.as_ref();
        let allocation = Allocation::restored(&pod);
        let mut records = record::records(&pod, shared.last_end.as_ref(), now);
        for record in &mut records {
            if record.role != Role::Ephemeral && record.container.resources.is_some() {
                record.container.resources = Some(allocation.of_container(record.name()));
            }
        }
        let uid = metadata.uid.clone().unwrap_or_default();
        let names = records
            .iter()
            .map(|record| record.name().to_owned())
            .collect();
        shared.logs.record(KeptPod::of(&pod));
        shared.logs.add_pod(&uid, names);
        let phase = Phase::of(&pod);
        // The end was reported, so the volumes were already read.
        let is_over = phase.is_terminal();
        let tokens = Tokens::new(shared.cluster.clone(), &pod).with_clock(shared.clock.clone());
        let certificates = PodCertificates::new(shared.cluster.clone(), &shared.node, &pod);
        let conditions = status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            policy: Policy::of(&pod),
            phase,
            started: status
                .and_then(|status| status.start_time.as_ref())
                .map(|time| time.0),
            conditions: conditions
                .filter_map(|one| serde_json::to_value(one).ok())
                .collect(),
            uid,
            records,
            running: HashMap::new(),
            runs: HashMap::new(),
            started_runs: 0,
            running_since: HashMap::new(),
            starting: HashMap::new(),
            probes: HashMap::new(),
            stops: HashMap::new(),
            due: HashMap::new(),
            retry_at: HashMap::new(),
            config_retry: HashMap::new(),
            inner,
            refresher: JoinSet::new(),
            tokens: Arc::new(tokens),
            certificates: certificates.map(Arc::new),
            certifier: JoinSet::new(),
            address: None,
            ports: None,
            forwarded_ports: ForwardedPorts::default(),
            volumes: None,
            cgroup: None,
            pod_limits: Limits::default(),
            groups: HashMap::new(),
            allocation,
            resize: Resize::default(),
            resize_retry: Retry::default(),
            compared: None,
            resizing: HashMap::new(),
            memory: None,
            links: Links::default(),
            claims: ClaimVolumes::new(),
            setup_retry: Retry::default(),
            stopping: None,
            reason: None,
            is_rejected: false,
            released: false,
            collected: is_over,
            torn_down: false,
            reported: None,
            report_retry: Retry::default(),
            deleted: false,
            shared,
            pod,
        }
    }

    /// Runs until the object is deleted or the agent stops. Returns `true` if the object was
    /// deleted. If the agent stops, no more messages arrive, and the pod's logs must be kept.
    async fn run_until_removed(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<Message>,
        reports: &mut mpsc::Receiver<SubtaskMessage>,
    ) -> bool {
        let mut freed = self.shared.allocations.freed();
        loop {
            self.run_due().await;
            self.collect_files().await;
            self.close_host_ports().await;
            self.report().await;
            self.shared.earlier.remove(&self.uid);
            self.tear_down();
            self.finish_deletion().await;
            let sleep = wait_for(self.next_wakeup(), sleep_until);
            let clock = self.shared.clock.clone();
            let clock_sleep = wait_for(self.next_due(), |at| clock.sleep_until(at));
            tokio::select! {
                message = messages.recv() => {
                    let mut message = message;
                    // Only the latest message matters.
                    while let Ok(newer) = messages.try_recv() {
                        if matches!(message, Some(Message::Updated(_))) {
                            message = Some(newer);
                        }
                    }
                    match message {
                        Some(Message::Updated(pod)) => {
                            if self.updated(*pod) {
                                self.handle_message(SubtaskMessage::SourcesChanged).await;
                            }
                        }
                        Some(Message::Removed) => return true,
                        None => return false,
                    }
                }
                Some(report) = reports.recv() => self.handle_message(report).await,
                () = sleep => {}
                // The resources of the resize may be free now.
                _ = freed.changed(), if self.resize.pending.is_some() => {}
                () = clock_sleep => {}
            }
            while let Ok(report) = reports.try_recv() {
                self.handle_message(report).await;
            }
        }
    }

    async fn handle_message(&mut self, report: SubtaskMessage) {
        match report {
            SubtaskMessage::Ended(end) => self.container_ended(end),
            SubtaskMessage::Probed(probed) => self.probed(&probed),
            SubtaskMessage::HookEnded(end) => self.hook_ended(&end),
            SubtaskMessage::ReadersDropped { index, readers } => {
                self.readers_dropped(index, readers)
            }
            // The volumes were removed or are about to be removed.
            SubtaskMessage::SourcesChanged | SubtaskMessage::CertificatesChanged
                if self.phase.is_terminal() => {}
            // The pod waits for the certificates.
            SubtaskMessage::CertificatesChanged if self.volumes.is_none() => {
                self.setup_retry = Retry::default();
            }
            SubtaskMessage::SourcesChanged | SubtaskMessage::CertificatesChanged => {
                if let Err((_, message)) = self.prepare_volumes().await {
                    tracing::debug!(pod = self.name, message, "cannot update volumes");
                }
            }
        }
    }

    fn note(&self, warning: bool, reason: &'static str, message: String, index: Option<usize>) {
        let container = index.map(|index| {
            let record = &self.records[index];
            (record.list(), record.name().to_owned())
        });
        self.shared.events.note(
            &self.pod,
            Note {
                warning,
                reason,
                message,
                container,
            },
        );
    }

    /// Fails a pod that the node does not admit.
    fn reject(&mut self, (reason, message): Rejection) {
        self.started.get_or_insert_with(|| self.shared.clock.now());
        self.note(true, reason, message.clone(), None);
        self.reason = Some((reason, format!("Pod was rejected: {message}")));
        self.is_rejected = true;
        self.begin_stop(Duration::ZERO);
    }

    /// Stores the changed object. Returns true if files of its volumes may have changed, because
    /// they contain its metadata.
    fn updated(&mut self, pod: Pod) -> bool {
        let (before, after) = (&self.pod.metadata, &pod.metadata);
        let has_changed = before.labels != after.labels || before.annotations != after.annotations;
        let is_due = has_changed && self.volumes.is_some() && volumes::contain_metadata(&pod);
        self.pod = pod;
        self.add_ephemeral_containers();
        if let Some(stopping) = &mut self.stopping
            && let Some(grace) = self.pod.metadata.deletion_grace_period_seconds
        {
            // The grace period can only become shorter.
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
            stopping.kill_at = stopping.kill_at.min(later(grace));
            for stop in self.stops.values_mut() {
                stop.shorten(stopping.kill_at);
            }
        }
        is_due
    }

    /// Returns the pod's deadline, by the cluster's clock.
    fn deadline(&self) -> Option<Instant> {
        let clock = &self.shared.clock;
        let begin = clock.instant();
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        let ran = Duration::try_from(clock.now().duration_since(self.started?)).unwrap_or_default();
        let left = Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).saturating_sub(ran);
        Some(clock.due(begin, left))
    }

    /// Returns the time at which the task must act without a message, by the cluster's clock.
    fn next_due(&self) -> Option<Instant> {
        if self.stopping.is_some() || self.phase.is_terminal() {
            return None;
        }
        let waits = self.due.iter();
        let waits = waits.filter(|(index, _)| !self.running.contains_key(*index));
        let waits = waits.filter_map(|(_, at)| *at);
        waits.chain(self.deadline()).min()
    }

    /// Returns the time at which the task must act without a message, by the system's clock.
    fn next_wakeup(&self) -> Option<Instant> {
        let mut times: Vec<Instant> = self.report_retry.at.into_iter().collect();
        times.extend(self.stops.values().filter_map(ContainerStop::due));
        if self.stopping.is_none() && !self.phase.is_terminal() {
            let waits = self.retry_at.iter();
            let waits = waits.filter(|(index, _)| !self.running.contains_key(*index));
            times.extend(waits.map(|(_, at)| *at));
            times.extend(self.setup_retry.at.filter(|_| self.volumes.is_none()));
            times.extend(self.forwarded_ports.due());
            times.extend(
                self.resize_retry
                    .at
                    .filter(|_| self.resize.in_progress.is_some()),
            );
        }
        times.into_iter().min()
    }

    /// Performs the actions that are due.
    async fn run_due(&mut self) {
        if self.phase.is_terminal() {
            return;
        }
        let deleting = self.pod.metadata.deletion_timestamp.is_some();
        if self.stopping.is_none() {
            if deleting {
                let grace = self
                    .pod
                    .metadata
                    .deletion_grace_period_seconds
                    .unwrap_or(30);
                self.begin_stop(Duration::from_secs(u64::try_from(grace).unwrap_or(0)));
            } else if self.is_past_deadline() {
                let text = "Pod was active on the node longer than the specified deadline";
                self.reason = Some(("DeadlineExceeded", text.to_owned()));
                self.note(false, "DeadlineExceeded", text.to_owned(), None);
                self.begin_stop(self.grace());
            } else if Phase::of(&self.pod).is_terminal() {
                // A client has ended the pod.
                self.begin_stop(self.grace());
            }
        }
        self.continue_stopping();
        if self.stopping.is_none() {
            self.open_host_ports();
            self.resize().await;
            self.start_containers().await;
        }
        let stopped = self.stopping.is_some();
        self.phase = status::phase(&self.records, self.policy, stopped);
        if self.reason.is_some() && self.phase == Phase::Succeeded {
            self.phase = Phase::Failed;
        }
        if self.phase.is_terminal() {
            self.phase = self.visible_phase();
            termination::end_waiting(&mut self.records, self.policy);
            self.retire();
        }
    }

    /// Starts the containers that may start.
    async fn start_containers(&mut self) {
        if !self.set_up().await {
            return;
        }
        self.start_ephemeral_containers().await;
        for index in 0..self.records.len() {
            // The next containers wait for the postStart hook, as in the kubelet.
            if self.starting.contains_key(&index) {
                return;
            }
            let record = &self.records[index];
            let code = record.final_code(self.policy);
            match record.role {
                Role::Init if code == Some(0) => {}
                Role::Init if code.is_some() => return self.stop_sidecars(),
                Role::Init => {
                    if !record.is_running() {
                        self.start_if_due(index).await;
                    }
                    return;
                }
                Role::Sidecar if record.is_running() => {}
                Role::Sidecar if self.main_containers_are_complete() => {}
                Role::Sidecar => {
                    self.start_if_due(index).await;
                }
                Role::Ephemeral => {}
                Role::Main if record.is_running() || code.is_some() => {}
                Role::Main => self.start_if_due(index).await,
            }
            let record = &self.records[index];
            let blocks = record.role == Role::Sidecar
                && !record.was_started()
                && !status::has_main_run(&self.records);
            if blocks || self.starting.contains_key(&index) {
                return;
            }
        }
        if self.main_containers_are_complete() {
            self.stop_sidecars();
        }
    }

    fn main_containers_are_complete(&self) -> bool {
        let mut main_containers = self
            .records
            .iter()
            .filter(|record| record.role == Role::Main);
        main_containers.all(|record| record.final_code(self.policy).is_some())
    }

    fn is_past_deadline(&self) -> bool {
        let deadline = self.deadline();
        deadline.is_some_and(|at| at <= self.shared.clock.instant())
    }

    async fn start_if_due(&mut self, index: usize) {
        let retry_at = self.retry_at.get(&index);
        match self.due.get(&index) {
            Some(Some(at)) if *at > self.shared.clock.instant() => {}
            Some(None) => {}
            _ if retry_at.is_some_and(|at| *at > Instant::now()) => {}
            _ => self.start(index).await,
        }
    }
}

/// Waits until a time, or forever without one.
async fn wait_for<F: Future<Output = ()>>(at: Option<Instant>, sleep: impl FnOnce(Instant) -> F) {
    match at {
        Some(at) => sleep(at).await,
        None => std::future::pending().await,
    }
}
