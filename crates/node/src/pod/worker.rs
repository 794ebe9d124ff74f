//! The task of one pod: starts its containers in their order, hears of their
//! ends, reports, stops.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    net::Ipv4Addr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use longshore_client::{DeleteOptions, Error, Patch};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    Shared,
    record::{self, Policy, Record, Role},
    start::{self, Place, PlanError},
    status::{self, Phase},
};
use crate::{
    events::Note,
    hosts::Host,
    logs::{LogWriter, Progress, capture},
    node,
    sandbox::Process,
    sources::{self, References, Sources},
    volumes::{self, Prepared},
};

/// First and longest wait before something refused is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(20));
/// What containers get to end when the agent stops.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// What the agent tells a pod's task.
#[derive(Debug)]
pub(crate) enum Message {
    /// The object changed.
    Updated(Box<Pod>),
    /// The object is gone.
    Removed,
}

/// What a pod's own tasks tell it.
enum Inner {
    Ended(RunEnd),
    /// A ConfigMap or Secret of a volume may have changed.
    SourcesChanged,
}

/// The end of a container's run.
struct RunEnd {
    index: usize,
    code: i32,
    tail: String,
}

/// Why and until when containers are being stopped.
#[derive(Debug)]
struct Stopping {
    kill_at: Instant,
    killed: bool,
    sidecars_told: bool,
}

/// Waits that double.
#[derive(Debug, Default)]
struct Retry {
    at: Option<Instant>,
    delay: Duration,
}

impl Retry {
    fn again(&mut self) {
        self.delay = (self.delay * 2).clamp(RETRY.0, RETRY.1);
        self.at = Some(Instant::now() + self.delay);
    }

    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at <= Instant::now())
    }
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
    /// When a container may start; absent: at once. `None`: never.
    due: HashMap<usize, Option<Instant>>,
    config_retry: HashMap<usize, Retry>,
    inner: mpsc::Sender<Inner>,
    /// Watches the sources of volumes; ends with the worker.
    refresher: JoinSet<()>,
    address: Option<Ipv4Addr>,
    volumes: Option<BTreeMap<String, Prepared>>,
    setup_retry: Retry,
    started: Option<Timestamp>,
    stopping: Option<Stopping>,
    reason: Option<(&'static str, String)>,
    phase: Phase,
    released: bool,
    conditions: Vec<Value>,
    reported: Option<Value>,
    report_retry: Retry,
    deleted: bool,
}

/// Runs a pod until it is removed or the agent stops.
pub(crate) async fn run(
    shared: Arc<Shared>,
    pod: Pod,
    mut messages: mpsc::UnboundedReceiver<Message>,
) {
    let (inner, mut reports) = mpsc::channel(16);
    let mut stopping = shared.stopping.clone();
    let mut worker = Worker::new(shared, pod, inner);
    let removed = tokio::select! {
        removed = worker.live(&mut messages, &mut reports) => removed,
        _ = stopping.wait_for(|stop| *stop) => false,
    };
    worker
        .end_all(
            &mut reports,
            if removed { Duration::ZERO } else { STOP_GRACE },
        )
        .await;
    worker.release();
    if removed {
        worker.remove_files();
    }
}

impl Worker {
    fn new(shared: Arc<Shared>, pod: Pod, inner: mpsc::Sender<Inner>) -> Self {
        let now = Timestamp::now();
        let metadata = &pod.metadata;
        let status = pod.status.as_ref();
        let records = record::records(&pod, now);
        let uid = metadata.uid.clone().unwrap_or_default();
        let names = records
            .iter()
            .map(|record| record.name().to_owned())
            .collect();
        shared.logs.add_pod(&uid, names);
        let conditions = status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            policy: Policy::of(&pod),
            phase: Phase::of(&pod),
            started: status
                .and_then(|status| status.start_time.as_ref())
                .map(|time| time.0),
            conditions: conditions
                .filter_map(|one| serde_json::to_value(one).ok())
                .collect(),
            uid,
            records,
            running: HashMap::new(),
            due: HashMap::new(),
            config_retry: HashMap::new(),
            inner,
            refresher: JoinSet::new(),
            address: None,
            volumes: None,
            setup_retry: Retry::default(),
            stopping: None,
            reason: None,
            released: false,
            reported: None,
            report_retry: Retry::default(),
            deleted: false,
            shared,
            pod,
        }
    }

    /// Until the object is gone (`true`), or the agent ends: then nobody sends
    /// messages any more, and the pod's logs are to stay.
    async fn live(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<Message>,
        reports: &mut mpsc::Receiver<Inner>,
    ) -> bool {
        loop {
            self.step().await;
            self.report().await;
            self.finish_deletion().await;
            let wake = self.wake();
            let sleep = async {
                match wake {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = messages.recv() => {
                    let mut message = message;
                    // Only the newest counts.
                    while let Ok(newer) = messages.try_recv() {
                        if matches!(message, Some(Message::Updated(_))) {
                            message = Some(newer);
                        }
                    }
                    match message {
                        Some(Message::Updated(pod)) => self.updated(*pod),
                        Some(Message::Removed) => return true,
                        None => return false,
                    }
                }
                Some(report) = reports.recv() => self.hear(report).await,
                () = sleep => {}
            }
            while let Ok(report) = reports.try_recv() {
                self.hear(report).await;
            }
        }
    }

    async fn hear(&mut self, report: Inner) {
        match report {
            Inner::Ended(end) => self.container_ended(end),
            Inner::SourcesChanged => {
                if let Err((_, message)) = self.prepare_volumes().await {
                    tracing::debug!(pod = self.name, message, "volumes are not updated");
                }
            }
        }
    }

    fn note(&self, warning: bool, reason: &'static str, message: String, index: Option<usize>) {
        let container = index.map(|index| {
            let record = &self.records[index];
            (record.is_init(), record.name().to_owned())
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

    fn updated(&mut self, pod: Pod) {
        self.pod = pod;
        if let Some(stopping) = &mut self.stopping
            && let Some(grace) = self.pod.metadata.deletion_grace_period_seconds
        {
            // Grace can only shrink.
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
            stopping.kill_at = stopping.kill_at.min(Instant::now() + grace);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        let ran =
            Duration::try_from(Timestamp::now().duration_since(self.started?)).unwrap_or_default();
        let left = Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).saturating_sub(ran);
        Some(Instant::now() + left)
    }

    /// When something is to be done although nothing happens.
    fn wake(&self) -> Option<Instant> {
        let mut times: Vec<Instant> = self.report_retry.at.into_iter().collect();
        if let Some(stopping) = &self.stopping {
            times
                .extend((!stopping.killed && !self.running.is_empty()).then_some(stopping.kill_at));
        } else if !self.phase.is_terminal() {
            let waits = self
                .due
                .iter()
                .filter(|(index, _)| !self.running.contains_key(*index));
            times.extend(waits.filter_map(|(_, at)| *at));
            times.extend(self.setup_retry.at.filter(|_| self.volumes.is_none()));
            times.extend(self.deadline());
        }
        times.into_iter().min()
    }

    /// Does what is due now.
    async fn step(&mut self) {
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
            } else if self.deadline().is_some_and(|at| at <= Instant::now()) {
                let text = "Pod was active on the node longer than the specified deadline";
                self.reason = Some(("DeadlineExceeded", text.to_owned()));
                self.note(false, "DeadlineExceeded", text.to_owned(), None);
                self.begin_stop(self.grace());
            }
        }
        if self.stopping.is_some() {
            self.go_on_stopping();
        } else {
            self.advance().await;
        }
        let stopped = self.stopping.is_some();
        self.phase = status::phase(&self.records, self.policy, stopped);
        if self.reason.is_some() && self.phase == Phase::Succeeded {
            self.phase = Phase::Failed;
        }
        if self.phase.is_terminal() {
            self.retire();
        }
    }

    fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let seconds = spec
            .and_then(|spec| spec.termination_grace_period_seconds)
            .unwrap_or(30);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    fn begin_stop(&mut self, grace: Duration) {
        let mut running: Vec<usize> = self.running.keys().copied().collect();
        running.sort_unstable();
        for index in running {
            let text = format!("Stopping container {}", self.records[index].name());
            self.note(false, "Killing", text, Some(index));
            if self.records[index].role != Role::Sidecar {
                self.running[&index].terminate();
            }
        }
        let kill_at = Instant::now() + grace;
        self.stopping = Some(Stopping {
            kill_at,
            killed: false,
            sidecars_told: false,
        });
    }

    fn go_on_stopping(&mut self) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        let records = &self.records;
        let only_sidecars = self
            .running
            .keys()
            .all(|index| records[*index].role == Role::Sidecar);
        if only_sidecars && !stopping.sidecars_told {
            stopping.sidecars_told = true;
            self.running
                .values()
                .for_each(|process| process.terminate());
        }
        if !stopping.killed && stopping.kill_at <= Instant::now() {
            stopping.killed = true;
            self.running.values().for_each(|process| process.kill());
        }
    }

    /// Starts what may start.
    async fn advance(&mut self) {
        if !self.set_up().await {
            return;
        }
        for index in 0..self.records.len() {
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
                Role::Sidecar if self.mains_are_done() => {}
                Role::Sidecar => {
                    self.start_if_due(index).await;
                    if !self.records[index].has_run() {
                        return;
                    }
                }
                Role::Main if record.is_running() || code.is_some() => {}
                Role::Main => self.start_if_due(index).await,
            }
        }
        if self.mains_are_done() {
            self.stop_sidecars();
        }
    }

    fn mains_are_done(&self) -> bool {
        let mut mains = self
            .records
            .iter()
            .filter(|record| record.role == Role::Main);
        mains.all(|record| record.final_code(self.policy).is_some())
    }

    fn stop_sidecars(&mut self) {
        if !self.running.is_empty() {
            self.begin_stop(self.grace());
            self.go_on_stopping();
        }
    }

    async fn start_if_due(&mut self, index: usize) {
        match self.due.get(&index) {
            Some(Some(at)) if *at > Instant::now() => {}
            Some(None) => {}
            _ => self.start(index).await,
        }
    }

    /// Address, hosts file and volumes; whether all are there.
    async fn set_up(&mut self) -> bool {
        if self.volumes.is_some() {
            return true;
        }
        if !self.setup_retry.is_due() {
            return false;
        }
        self.started.get_or_insert_with(Timestamp::now);
        match self.try_set_up().await {
            Ok(prepared) => {
                self.volumes = Some(prepared);
                true
            }
            Err((reason, message)) => {
                self.note(true, reason, message, None);
                self.setup_retry.again();
                false
            }
        }
    }

    async fn try_set_up(&mut self) -> Result<BTreeMap<String, Prepared>, (&'static str, String)> {
        let address = self.take_address().ok_or_else(|| {
            (
                "FailedCreatePodSandBox",
                "the node has no address left for the pod".to_owned(),
            )
        })?;
        let folder = self.shared.pod_folder(&self.uid);
        let failed = |error: std::io::Error| {
            let text = format!(
                "the pod's folder {} cannot be made: {error}",
                folder.display()
            );
            ("FailedCreatePodSandBox", text)
        };
        fs::create_dir_all(folder.join("base")).map_err(failed)?;
        self.shared
            .hosts
            .add(&self.uid, self.host(address), &folder.join("hosts"))
            .map_err(failed)?;
        let prepared = self.prepare_volumes().await?;
        let references = References::of_volumes(&self.pod);
        if !references.is_empty() && self.refresher.is_empty() {
            let cluster = self.shared.cluster.clone();
            let inner = self.inner.clone();
            let changed = move || inner.try_send(Inner::SourcesChanged).is_ok();
            self.refresher.spawn(sources::follow(
                cluster,
                self.namespace.clone(),
                references,
                changed,
            ));
        }
        Ok(prepared)
    }

    async fn prepare_volumes(&self) -> Result<BTreeMap<String, Prepared>, (&'static str, String)> {
        let failed = |error: &dyn std::fmt::Display| ("FailedMount", error.to_string());
        let Some(address) = self.address else {
            return Ok(BTreeMap::new());
        };
        let references = References::of_volumes(&self.pod);
        let sources = self
            .fetch(&references)
            .await
            .map_err(|error| failed(&error))?;
        let facts = start::facts(&self.shared, address);
        let folder = self.shared.pod_folder(&self.uid).join("volumes");
        volumes::prepare(&self.pod, &folder, &sources, &facts).map_err(|error| failed(&error))
    }

    async fn fetch(&self, references: &References) -> Result<Sources, Error> {
        if references.is_empty() {
            return Ok(Sources::default());
        }
        sources::fetch(&self.shared.cluster, &self.namespace, references).await
    }

    fn take_address(&mut self) -> Option<Ipv4Addr> {
        if self.address.is_none() {
            let spec = self.pod.spec.as_ref();
            let status = self.pod.status.as_ref();
            let earlier = status.and_then(|status| status.pod_ip.as_deref()?.parse().ok());
            let shared = &self.shared;
            self.address = if spec.is_some_and(|spec| spec.host_network == Some(true)) {
                Some(Ipv4Addr::LOCALHOST)
            } else {
                earlier
                    .filter(|address| shared.addresses.reserve(*address))
                    .or_else(|| shared.addresses.take())
            };
        }
        self.address
    }

    fn host(&self, address: Ipv4Addr) -> Host {
        let spec = self.pod.spec.as_ref();
        let aliases = spec
            .into_iter()
            .flat_map(|spec| spec.host_aliases.iter().flatten());
        Host {
            namespace: self.namespace.clone(),
            hostname: start::hostname(&self.pod),
            subdomain: spec
                .and_then(|spec| spec.subdomain.clone())
                .filter(|subdomain| !subdomain.is_empty()),
            address,
            aliases: aliases
                .map(|alias| {
                    (
                        alias.ip.clone(),
                        alias.hostnames.clone().unwrap_or_default(),
                    )
                })
                .collect(),
        }
    }

    async fn start(&mut self, index: usize) {
        let container = self.records[index].container.clone();
        let sources = match self.fetch(&References::of_environment(&container)).await {
            Ok(sources) => sources,
            Err(error) => {
                return self.wait_for_config(
                    index,
                    "CreateContainerConfigError",
                    error.to_string(),
                );
            }
        };
        let (Some(volumes), Some(address)) = (&self.volumes, self.address) else {
            return;
        };
        let folder = self.shared.pod_folder(&self.uid);
        let place = Place {
            shared: &self.shared,
            pod: &self.pod,
            container: &container,
            address,
            volumes,
            sources: &sources,
            folder: &folder,
        };
        match place.command() {
            Ok(command) => self.spawn(index, &command).await,
            Err(PlanError::Config(error)) => {
                self.wait_for_config(index, "CreateContainerConfigError", error.to_string());
            }
            Err(error @ PlanError::NoCommand { .. }) => {
                self.note(true, "Failed", format!("Error: {error}"), Some(index));
                self.set_waiting(index, "ErrImageNeedsCommand", Some(error.to_string()));
                // Nothing but another pod can change this.
                self.due.insert(index, None);
            }
            Err(PlanError::View(message)) => self.failed_to_start(index, message),
        }
    }

    fn wait_for_config(&mut self, index: usize, reason: &str, message: String) {
        self.note(true, "Failed", format!("Error: {message}"), Some(index));
        self.set_waiting(index, reason, Some(message));
        let retry = self.config_retry.entry(index).or_default();
        retry.again();
        self.due.insert(index, retry.at);
    }

    fn set_waiting(&mut self, index: usize, reason: &str, message: Option<String>) {
        let record = &mut self.records[index];
        record.wait(reason, message);
        self.shared
            .logs
            .set_waiting(&self.uid, record.name(), Some(reason));
    }

    async fn spawn(&mut self, index: usize, command: &crate::sandbox::Command) {
        let name = self.records[index].name().to_owned();
        let run = self.records[index].next_run();
        let (sender, progress) = watch::channel(Progress::default());
        let writer = match self.shared.logs.create(&self.uid, &name, run, progress) {
            Ok(file) => LogWriter::new(file, sender),
            Err(error) => {
                return self.failed_to_start(index, format!("its log cannot be written: {error}"));
            }
        };
        let started = match self.shared.spawner.run(command).await {
            Ok(started) => started,
            Err(error) => return self.failed_to_start(index, error.to_string()),
        };
        let id = format!("longshore://{}-{name}-{run}", self.uid);
        self.records[index].started(id, Timestamp::now());
        self.config_retry.remove(&index);
        self.due.remove(&index);
        self.note(
            false,
            "Created",
            format!("Created container: {name}"),
            Some(index),
        );
        self.note(
            false,
            "Started",
            format!("Started container {name}"),
            Some(index),
        );
        let process = Arc::new(started.process);
        tracing::debug!(
            pod = self.name,
            container = name,
            pid = process.id(),
            "started"
        );
        self.running.insert(index, process.clone());
        let inner = self.inner.clone();
        tokio::spawn(async move {
            let (stop, stopped) = watch::channel(false);
            let copying = capture(writer, started.output, started.errors, stopped);
            let waiting = async {
                let code = process.wait().await;
                // Without a PID namespace a stray process may keep the pipes open.
                stop.send_replace(true);
                code
            };
            let (tail, code) = tokio::join!(copying, waiting);
            let _ = inner.send(Inner::Ended(RunEnd { index, code, tail })).await;
        });
    }

    fn failed_to_start(&mut self, index: usize, message: String) {
        self.note(true, "Failed", format!("Error: {message}"), Some(index));
        self.records[index].failed_to_start("StartError", message, Timestamp::now());
        self.plan_next(index, 128);
    }

    fn container_ended(&mut self, end: RunEnd) {
        let RunEnd { index, code, tail } = end;
        self.running.remove(&index);
        let container = &self.records[index].container;
        let from_log =
            container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        let message = (from_log && code != 0 && !tail.is_empty()).then(|| tail.clone());
        self.records[index].ended(code, message, Timestamp::now());
        if code != 0 && names_taken_port(&tail) {
            let address = self
                .address
                .map_or_else(String::new, |address| address.to_string());
            let text = format!(
                "container {} could not bind its port: pods share this machine's network; \
                 bind to the pod's own address ($POD_IP, {address}) instead of 0.0.0.0",
                self.records[index].name()
            );
            self.note(true, "AddressInUse", text, Some(index));
        }
        if self.stopping.is_none() {
            self.plan_next(index, code);
        }
    }

    /// Whether and when a container runs again after it ended with `code`.
    fn plan_next(&mut self, index: usize, code: i32) {
        let record = &mut self.records[index];
        if !record.restarts_after(self.policy, code) {
            return;
        }
        let delay = record.next_delay();
        if delay.is_zero() {
            self.due.remove(&index);
            return;
        }
        let pod = format!("{}_{}({})", self.name, self.namespace, self.uid);
        let container = record.name().to_owned();
        let text = format!(
            "back-off {}s restarting failed container={container} pod={pod}",
            delay.as_secs()
        );
        self.set_waiting(index, "CrashLoopBackOff", Some(text));
        self.due.insert(index, Some(Instant::now() + delay));
        let text = format!("Back-off restarting failed container {container} in pod {pod}");
        self.note(true, "BackOff", text, Some(index));
    }

    /// Writes the status if it changed.
    async fn report(&mut self) {
        if self.deleted || !self.report_retry.is_due() {
            return;
        }
        // A time that has passed must not wake the task again.
        self.report_retry.at = None;
        if self.reported.is_none() && Phase::of(&self.pod).is_terminal() {
            return;
        }
        let status = status::render(&status::Inputs {
            pod: &self.pod,
            records: &self.records,
            phase: self.phase,
            policy: self.policy,
            address: self.address,
            host_address: node::ADDRESS,
            started: self.started,
            reason: self.reason.clone(),
            before: &self.conditions,
            now: Timestamp::now(),
        });
        if self.reported.as_ref() == Some(&status) {
            return;
        }
        let patch = json!({"metadata": {"uid": self.uid}, "status": status});
        let pods = self.shared.cluster.pods().in_namespace(&self.namespace);
        let result = match pods {
            Ok(pods) => {
                pods.patch_status(&self.name, &Patch::strategic(patch))
                    .await
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(_) => {
                self.conditions = status["conditions"].as_array().cloned().unwrap_or_default();
                self.reported = Some(status);
                self.report_retry = Retry::default();
            }
            // Gone, or another pod of this name: that is told by a message.
            Err(error) if error.is_not_found() || error.is_conflict() => {
                self.reported = Some(status);
            }
            Err(error) => {
                tracing::warn!(pod = self.name, %error, "a pod's status was not written");
                self.report_retry.again();
            }
        }
    }

    /// Deletes the object when its containers are through.
    async fn finish_deletion(&mut self) {
        let wanted = self.pod.metadata.deletion_timestamp.is_some();
        let reported = self.report_retry.at.is_none();
        if !wanted || self.deleted || !self.running.is_empty() || !reported {
            return;
        }
        let options = DeleteOptions {
            grace_seconds: Some(0),
            uid: Some(self.uid.clone()),
            ..Default::default()
        };
        let result = match self.shared.cluster.pods().in_namespace(&self.namespace) {
            Ok(pods) => pods.delete(&self.name, &options).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => self.deleted = true,
            Err(error) if error.is_not_found() || error.is_conflict() => self.deleted = true,
            Err(error) => {
                tracing::warn!(pod = self.name, %error, "a pod was not deleted");
                self.report_retry.again();
            }
        }
    }

    /// Ends all containers and waits until they are reaped.
    async fn end_all(&mut self, reports: &mut mpsc::Receiver<Inner>, grace: Duration) {
        if !grace.is_zero() {
            self.running
                .values()
                .for_each(|process| process.terminate());
            let all = async {
                while !self.running.is_empty() {
                    match reports.recv().await {
                        Some(Inner::Ended(end)) => drop(self.running.remove(&end.index)),
                        Some(Inner::SourcesChanged) => {}
                        None => break,
                    }
                }
            };
            let _ = tokio::time::timeout(grace, all).await;
        }
        self.running.values().for_each(|process| process.kill());
        while !self.running.is_empty() {
            match reports.recv().await {
                Some(Inner::Ended(end)) => drop(self.running.remove(&end.index)),
                Some(Inner::SourcesChanged) => {}
                None => break,
            }
        }
    }

    /// Nothing runs any more: no file needs to be kept up to date. Address and
    /// names stay until the pod is removed, for peers that are slower to look.
    fn retire(&mut self) {
        self.refresher.abort_all();
        self.shared.hosts.retire(&self.uid);
    }

    /// Gives address and names back.
    fn release(&mut self) {
        if self.released {
            return;
        }
        self.released = true;
        self.refresher.abort_all();
        self.shared.hosts.remove(&self.uid);
        if let Some(address) = self.address {
            self.shared.addresses.release(address);
        }
    }

    fn remove_files(&self) {
        self.shared.logs.remove_pod(&self.uid);
        remove_folder(&self.shared.pod_folder(&self.uid));
    }
}

fn names_taken_port(tail: &str) -> bool {
    [
        "Address already in use",
        "EADDRINUSE",
        "address already in use",
    ]
    .iter()
    .any(|text| tail.contains(text))
}

fn remove_folder(folder: &PathBuf) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(?folder, %error, "a deleted pod's folder could not be removed");
    }
}
