//! A container's runs: its start, its end, and when it runs again.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::{sync::watch, time::Instant};

use super::{
    Inner, Worker,
    start::{Place, PlanError},
};
use crate::{
    logs::{LogWriter, Progress, capture},
    sandbox::Command,
    sources::References,
    streams::{self, Attachment},
};

/// The end of a container's run.
pub(super) struct RunEnd {
    pub(super) index: usize,
    pub(super) code: i32,
    pub(super) tail: String,
}

impl Worker {
    pub(super) async fn start(&mut self, index: usize) {
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
            Ok(command) => self.spawn(index, command).await,
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

    async fn spawn(&mut self, index: usize, command: Command) {
        let name = self.records[index].name().to_owned();
        let run = self.records[index].next_run();
        let (sender, progress) = watch::channel(Progress::default());
        let writer = match self.shared.logs.create(&self.uid, &name, run, progress) {
            Ok(file) => LogWriter::new(file, sender),
            Err(error) => {
                return self.failed_to_start(index, format!("its log cannot be written: {error}"));
            }
        };
        let started = match self.shared.spawner.run(&command).await {
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
        let ends = started.ends;
        let once = self.records[index].container.stdin_once == Some(true);
        let attachment = Arc::new(Attachment::new(ends.input, once, ends.terminal));
        let container = streams::Container {
            process: Arc::downgrade(&process),
            command: Arc::new(command),
            attachment: attachment.clone(),
        };
        self.shared.live.started(&self.uid, &name, container);
        let inner = self.inner.clone();
        tokio::spawn(async move {
            let (stop, stopped) = watch::channel(false);
            let copying = capture(writer, ends.output, ends.errors, &attachment, stopped);
            let waiting = async {
                let code = process.wait().await;
                // Without a PID namespace a stray process may keep the pipes open.
                stop.send_replace(true);
                code
            };
            let (tail, code) = tokio::join!(copying, waiting);
            attachment.end();
            let _ = inner.send(Inner::Ended(RunEnd { index, code, tail })).await;
        });
    }

    fn failed_to_start(&mut self, index: usize, message: String) {
        self.note(true, "Failed", format!("Error: {message}"), Some(index));
        self.records[index].failed_to_start("StartError", message, Timestamp::now());
        self.plan_next(index, 128);
    }

    pub(super) fn container_ended(&mut self, end: RunEnd) {
        let RunEnd { index, code, tail } = end;
        self.running.remove(&index);
        let name = self.records[index].name();
        self.shared.live.ended(&self.uid, name);
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
