//! A container's runs: start, end and restart.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use tokio::{sync::watch, time::Instant};

use super::{
    Record, State, SubtaskMessage, Worker,
    cgroup::TOO_LITTLE_MEMORY,
    messages,
    start::{PlanError, StartContext},
};
use crate::{
    cgroups::Limits,
    devices::Allocation,
    environment::ConfigError,
    logs::{LogWriter, Progress, capture},
    pod_threads,
    sandbox::{Command, StartError},
    sources::References,
    streams::{self, Attachment},
};

/// Interval of checks whether a container's devices are free.
const DEVICE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The end of a container's run.
pub(super) struct RunEnd {
    pub(super) index: usize,
    pub(super) code: i32,
    pub(super) tail: String,
    /// True if the kernel killed a process of the run for lack of memory.
    pub(super) out_of_memory: bool,
}

impl Worker {
    pub(super) async fn start(&mut self, index: usize) {
        let container = self.records[index].container.clone();
        let devices = match self.allocate(index) {
            Allocation::Allocated(variables) => variables,
            Allocation::Busy(message) => return self.wait_for_devices(index, message),
            Allocation::Impossible(message) => return self.failed_to_start(index, message),
        };
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
        let links = self.service_links().await;
        let cgroup = match self.container_cgroup(&container.name).await {
            Ok(cgroup) => cgroup,
            Err(message) => return self.failed_to_start(index, message.to_owned()),
        };
        let (Some(volumes), Some(address)) = (&self.volumes, self.address) else {
            return;
        };
        let folder = self.shared.pod_folder(&self.uid);
        let context = StartContext {
            shared: self.shared.clone(),
            pod: self.pod.clone(),
            container,
            address,
            volumes: volumes.clone(),
            sources,
            folder,
            ports: self.ports.clone(),
            links,
            devices,
            cgroup,
        };
        let prepared = pod_threads::run(move || context.prepare()).await;
        match prepared.unwrap_or_else(|error| Err(PlanError::View(error.to_string()))) {
            Ok(command) => self.spawn(index, command).await,
            // The spec is immutable, and changes of referenced objects may not
            // make it shorter.
            Err(PlanError::Config(error @ ConfigError::TooLarge { .. })) => {
                self.failed_to_start(index, error.to_string());
            }
            Err(error @ (PlanError::Config(_) | PlanError::SubPath(_))) => {
                self.wait_for_config(index, "CreateContainerConfigError", error.to_string());
            }
            Err(PlanError::Security(refusal)) => {
                let message = refusal.to_string();
                self.note(true, "Failed", format!("Error: {message}"), Some(index));
                self.set_waiting(index, "CreateContainerConfigError", Some(message));
                // Only a new pod can change this.
                self.due.insert(index, None);
            }
            Err(error @ PlanError::NoCommand { .. }) => {
                self.note(true, "Failed", format!("Error: {error}"), Some(index));
                self.set_waiting(index, "ErrImageNeedsCommand", Some(error.to_string()));
                // Only a new pod can change this.
                self.due.insert(index, None);
            }
            Err(error @ (PlanError::View(_) | PlanError::WorkingFolder(_))) => {
                self.failed_to_start(index, error.to_string());
            }
        }
    }

    fn wait_for_config(&mut self, index: usize, reason: &str, message: String) {
        self.note(true, "Failed", format!("Error: {message}"), Some(index));
        self.set_waiting(index, reason, Some(message));
        let retry = self.config_retry.entry(index).or_default();
        retry.back_off();
        let at = retry.at;
        self.retry_at.extend(at.map(|at| (index, at)));
    }

    /// Allocates the devices that a container requests. Devices of completed containers are free.
    fn allocate(&self, index: usize) -> Allocation {
        let finished: Vec<&str> = self
            .records
            .iter()
            .filter(|record| record.final_code(self.policy).is_some())
            .map(Record::name)
            .collect();
        let container = &self.records[index].container;
        self.shared
            .devices
            .allocate(&self.uid, container, &finished)
    }

    /// Schedules a retry while other pods hold the devices and may still be
    /// terminating.
    fn wait_for_devices(&mut self, index: usize, message: String) {
        let known = match &self.records[index].state {
            State::Waiting { message, .. } => message.as_deref(),
            _ => None,
        };
        if known != Some(&*message) {
            let text = format!("{message}; it starts when they are");
            self.note(true, "WaitingForDevices", text, Some(index));
        }
        self.set_waiting(index, "WaitingForDevices", Some(message));
        self.retry_at
            .insert(index, Instant::now() + DEVICE_POLL_INTERVAL);
    }

    fn set_waiting(&mut self, index: usize, reason: &str, message: Option<String>) {
        let record = &mut self.records[index];
        record.wait(reason, message);
        self.shared
            .logs
            .set_waiting(&self.uid, record.name(), Some(reason));
    }

    async fn spawn(&mut self, index: usize, command: Command) {
        let name = self.records[index].name().to_owned();
        let run = self.records[index].next_run();
        let (sender, _) = watch::channel(Progress::default());
        let writer = match self.shared.logs.create(&self.uid, &name, run, &sender) {
            Ok(file) => LogWriter::new(file, sender)
                .with_clock(self.shared.clock.clone())
                .on_readers_dropped({
                    let inner = self.inner.clone();
                    move |readers| {
                        let _ = inner.try_send(SubtaskMessage::ReadersDropped { index, readers });
                    }
                }),
            Err(error) => {
                return self.failed_to_start(index, format!("its log cannot be written: {error}"));
            }
        };
        let spawner = &self.shared.spawner;
        let started = match self.target_process(index) {
            Some(Err(target)) => {
                let text = format!("unable to find target container {target:?}");
                return self.wait_for_config(index, "CreateContainerConfigError", text);
            }
            Some(Ok(target)) => spawner.run_in(&target, &command).await,
            None => match &self.memory {
                Some(holder) => spawner.run_with_mounts(holder, &command).await,
                None => spawner.run(&command).await,
            },
        };
        let started = match started {
            Ok(started) => started,
            Err(error) => {
                let mut message = error.to_string();
                let group = command.cgroup.as_ref();
                if group.is_some_and(|group| group.out_of_memory_kills() > 0) {
                    TOO_LITTLE_MEMORY.clone_into(&mut message);
                }
                let container = &self.records[index].container;
                let has_command = container
                    .command
                    .as_ref()
                    .is_some_and(|all| !all.is_empty());
                if matches!(error, StartError::Execute { .. }) && !has_command {
                    let image = container.image.as_deref().unwrap_or_default();
                    message.push_str(&match self.shared.image_entrypoints.find(image) {
                        Some(_) => format!(
                            "; this is the entrypoint that --image-entrypoint sets for the image \
                             {image:?}: install the program on this machine, give the container \
                             a command, or start the cluster with another entrypoint"
                        ),
                        None => format!(
                            "; the container has no command, so its args were taken for one: \
                             give it a command, or start the cluster with `longshore up \
                             --image-entrypoint '{image}=COMMAND'`"
                        ),
                    });
                }
                return self.failed_to_start(index, message);
            }
        };
        let id = format!("longshore://{}-{name}-{run}", self.uid);
        self.config_retry.remove(&index);
        self.due.remove(&index);
        self.retry_at.remove(&index);
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
        self.check_cgroup(command.cgroup.as_ref(), process.id());
        let cgroup = command.cgroup.clone();
        if let Some(group) = &cgroup {
            let limits = Limits::of_container(&self.resources(), &name);
            self.groups.insert(index, (group.clone(), limits));
        }
        self.resizing.remove(&index);
        self.records[index].actual = Some(self.allocation.of_container(&name));
        self.running.insert(index, process.clone());
        self.started_runs += 1;
        self.runs.insert(index, self.started_runs);
        let ends = started.ends;
        let once = self.records[index].container.stdin_once == Some(true);
        let attachment = Arc::new(Attachment::new(ends.input, once, ends.terminal));
        let container = streams::Container {
            process: Arc::downgrade(&process),
            command: Arc::new(Command {
                // Large and needed only once.
                operations: Vec::new(),
                ..command
            }),
            attachment: attachment.clone(),
        };
        self.shared
            .running_containers
            .started(&self.uid, &name, container);
        self.record_processes();
        self.process_started(index, id);
        let inner = self.inner.clone();
        tokio::spawn(async move {
            let (stop, stopped) = watch::channel(false);
            let copying = capture(writer, ends.output, ends.errors, &attachment, stopped);
            let waiting = async {
                let code = process.wait().await;
                // Without a PID namespace, a leftover process may keep the
                // pipes open.
                stop.send_replace(true);
                code
            };
            let observing = async { tokio::join!(copying, waiting) };
            let observed = AssertUnwindSafe(observing).catch_unwind().await;
            let (tail, code) = match observed {
                Ok(observed) => observed,
                Err(_) => {
                    tracing::error!(
                        container = name,
                        "following a container panicked; killing the container"
                    );
                    process.kill();
                    (String::new(), process.wait().await)
                }
            };
            attachment.end();
            let out_of_memory = cgroup.is_some_and(|group| group.out_of_memory_kills() > 0);
            let _ = inner
                .send(SubtaskMessage::Ended(RunEnd {
                    index,
                    code,
                    tail,
                    out_of_memory,
                }))
                .await;
        });
    }

    fn failed_to_start(&mut self, index: usize, message: String) {
        self.note(true, "Failed", format!("Error: {message}"), Some(index));
        self.records[index].failed_to_start("StartError", message, self.shared.clock.now());
        self.plan_next(index, 128);
    }

    /// Records an event that clients lose lines of a log because they read too slowly.
    pub(super) fn readers_dropped(&self, index: usize, readers: usize) {
        let name = self.records[index].name();
        let text = format!(
            "{readers} reader(s) of the log of container {name} did not read for long: \
             the container waits for them no more, and lines that they have not read are removed"
        );
        tracing::warn!(
            pod = self.name,
            container = name,
            readers,
            "slow readers of a log were dropped"
        );
        self.note(true, "LogReaderTooSlow", text, Some(index));
    }

    pub(super) fn container_ended(&mut self, end: RunEnd) {
        let RunEnd {
            index,
            code,
            tail,
            out_of_memory,
        } = end;
        self.running.remove(&index);
        self.groups.remove(&index);
        self.runs.remove(&index);
        self.running_since.remove(&index);
        self.probes.remove(&index);
        self.stops.remove(&index);
        self.finish_start(index);
        let name = self.records[index].name();
        self.shared.running_containers.ended(&self.uid, name);
        let folder = self.shared.pod_folder(&self.uid);
        let container = &self.records[index].container;
        let message = messages::read(&folder, &self.pod, container, code, &tail);
        self.records[index].ended(code, message, self.shared.clock.now());
        if out_of_memory {
            self.records[index].was_out_of_memory();
        }
        if code != 0 && reports_port_in_use(&tail) {
            let text = format!(
                "container {} could not bind its port: {}",
                self.records[index].name(),
                self.port_remedy()
            );
            self.note(true, "AddressInUse", text, Some(index));
        }
        if self.stopping.is_none() {
            self.plan_next(index, code);
        }
    }

    /// Returns the possible reason for a port in use, and the remedy.
    fn port_remedy(&self) -> String {
        let node = self.shared.address;
        let address = self.address.unwrap_or(node);
        if address == node {
            return "with hostNetwork, a pod uses the ports of this machine; use another port, \
                    or omit hostNetwork"
                .to_owned();
        }
        match self.shared.spawner.features().has_mounts() {
            true => "another container of the pod, or a program that listens on all addresses \
                     of this machine, uses it; use another port"
                .to_owned(),
            false => format!(
                "pods share this machine's network; bind to the pod's own address ($POD_IP, \
                 {address}) instead of 0.0.0.0"
            ),
        }
    }

    /// Schedules the restart of a container that ended with `code`, if it
    /// restarts.
    fn plan_next(&mut self, index: usize, code: i32) {
        let record = &mut self.records[index];
        if !record.restarts_after(self.policy, code) {
            return;
        }
        if let Some(has_ended @ false) = self.resizing.get_mut(&index) {
            *has_ended = true;
            self.due.remove(&index);
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
        let clock = &self.shared.clock;
        let due = clock.due(clock.instant(), delay);
        self.due.insert(index, Some(due));
        let text = format!("Back-off restarting failed container {container} in pod {pod}");
        self.note(true, "BackOff", text, Some(index));
    }
}

/// Returns true if a command's last output reports that its port is in use.
fn reports_port_in_use(tail: &str) -> bool {
    tail.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("address already in use")
            || line.contains("eaddrinuse")
            || has_word(&line, "port") && line.contains(" in use")
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric());
    words.any(|known| known == word)
}
