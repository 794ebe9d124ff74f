//! Hooks of containers: postStart and preStop.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{HTTPGetAction, LifecycleHandler, Pod};
use tokio::task::JoinSet;

use super::{Shared, SubtaskMessage, Worker, stop::FAR_FUTURE};
use crate::{
    events::Note,
    probes::{HttpError, HttpGet, MAX_OUTPUT, NOT_TLS, get, resolve_http},
    streams::{self, CollectError, Container},
};

/// A container whose postStart hook runs. The container counts as waiting until then.
#[derive(Debug)]
pub(super) struct Starting {
    id: String,
    since: Timestamp,
    _hook: JoinSet<()>,
}

/// The end of a hook.
#[derive(Debug)]
pub(super) struct HookEnd {
    index: usize,
    run: u64,
    is_pre_stop: bool,
    failed: bool,
}

/// The action of a hook.
enum Hook {
    Exec(Vec<String>),
    Http(HttpGet),
    Sleep(Duration),
    Invalid(String),
}

impl Worker {
    /// Records that a container's process has started. With a postStart hook, the container runs
    /// when the hook has succeeded.
    pub(super) fn process_started(&mut self, index: usize, id: String) {
        let since = self.shared.clock.now();
        let lifecycle = self.records[index].container.lifecycle.as_ref();
        let hook = lifecycle.and_then(|lifecycle| lifecycle.post_start.clone());
        match hook {
            None => self.begin_run(index, id, since),
            Some(hook) => {
                let starting = Starting {
                    id,
                    since,
                    _hook: self.run_hook(index, &hook, false),
                };
                self.starting.insert(index, starting);
            }
        }
    }

    fn begin_run(&mut self, index: usize, id: String, since: Timestamp) {
        self.records[index].started(id, since);
        self.start_probes(index);
    }

    /// Records the start of a container that ended, or is being stopped, before its postStart hook
    /// has ended.
    pub(super) fn finish_start(&mut self, index: usize) {
        if let Some(starting) = self.starting.remove(&index) {
            self.records[index].started(starting.id, starting.since);
        }
    }

    pub(super) fn run_pre_stop_hook(&self, index: usize) -> JoinSet<()> {
        let lifecycle = self.records[index].container.lifecycle.as_ref();
        match lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
            Some(hook) => self.run_hook(index, hook, true),
            None => JoinSet::new(),
        }
    }

    pub(super) fn hook_ended(&mut self, end: &HookEnd) {
        let index = end.index;
        if self.runs.get(&index) != Some(&end.run) {
            return;
        }
        if end.is_pre_stop {
            if end.failed {
                // The cause is omitted, because it may contain secrets.
                let text = "PreStopHook failed".to_owned();
                self.note(true, "FailedPreStopHook", text, Some(index));
            }
            self.pre_stop_hook_ended(index);
        } else if let Some(starting) = self.starting.remove(&index) {
            if end.failed {
                let text = "PostStartHook failed".to_owned();
                self.note(true, "FailedPostStartHook", text, Some(index));
                self.records[index].started(starting.id, starting.since);
                let grace = self.grace();
                self.stop_container(index, grace, "FailedPostStartHook".to_owned());
            } else {
                self.begin_run(index, starting.id, starting.since);
            }
        }
    }

    /// Runs a hook in a separate task. Dropping the task ends the hook.
    fn run_hook(&self, index: usize, hook: &LifecycleHandler, is_pre_stop: bool) -> JoinSet<()> {
        let container = &self.records[index].container;
        let name = container.name.clone();
        let mut tasks = JoinSet::new();
        let running = &self.shared.running_containers;
        let (Some(address), Some(run), Ok(target)) = (
            self.address,
            self.runs.get(&index).copied(),
            running.container(&self.uid, &name),
        ) else {
            return tasks;
        };
        let hook = resolve(hook, |get| {
            resolve_http(get, container, address, "lifecycle")
        });
        let (shared, inner) = (self.shared.clone(), self.inner.clone());
        // Events need only the metadata.
        let pod = Pod {
            metadata: self.pod.metadata.clone(),
            ..Pod::default()
        };
        tasks.spawn(async move {
            let performed = AssertUnwindSafe(perform(&hook, &shared, &pod, &target));
            let result = performed.catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err("the hook panicked".to_owned()));
            if let Err(message) = &result {
                let pod = pod.metadata.name.as_deref();
                tracing::debug!(pod, container = name, message, "a hook failed");
            }
            let end = HookEnd {
                index,
                run,
                is_pre_stop,
                failed: result.is_err(),
            };
            let _ = inner.send(SubtaskMessage::HookEnded(end)).await;
        });
        tasks
    }
}

fn resolve(
    hook: &LifecycleHandler,
    http: impl Fn(&HTTPGetAction) -> Result<HttpGet, String>,
) -> Hook {
    if let Some(exec) = &hook.exec {
        return Hook::Exec(exec.command.clone().unwrap_or_default());
    }
    if let Some(get) = &hook.http_get {
        return http(get).map_or_else(Hook::Invalid, Hook::Http);
    }
    if let Some(sleep) = &hook.sleep {
        let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
        return Hook::Sleep(Duration::from_secs(seconds).min(FAR_FUTURE));
    }
    Hook::Invalid("the hook has no supported action".to_owned())
}

async fn perform(
    hook: &Hook,
    shared: &Arc<Shared>,
    pod: &Pod,
    target: &Container,
) -> Result<(), String> {
    match hook {
        Hook::Exec(command) => {
            let collected = streams::collect(&shared.spawner, target, command, MAX_OUTPUT).await;
            match collected {
                Ok(collected) if collected.code == 0 => Ok(()),
                Ok(collected) => Err(format!(
                    "command '{}' exited with {}: {}",
                    command.join(" "),
                    collected.code,
                    collected.output
                )),
                Err(CollectError(message)) => Err(message),
            }
        }
        Hook::Http(request) => match send(request).await {
            Err(message) if message.contains(NOT_TLS) => {
                send(&request.without_tls()).await?;
                let note = Note {
                    warning: true,
                    reason: "LifecycleHTTPFallback",
                    message: format!(
                        "request to HTTPS lifecycle hook {} got HTTP response, retry with HTTP \
                         succeeded",
                        request.authority()
                    ),
                    container: None,
                };
                shared.events.note(pod, note);
                Ok(())
            }
            result => result,
        },
        Hook::Sleep(duration) => {
            tokio::time::sleep(*duration).await;
            Ok(())
        }
        Hook::Invalid(message) => Err(message.clone()),
    }
}

/// Sends a request. Any response is a success, and only the end of the
/// container limits the time, as in the kubelet.
async fn send(request: &HttpGet) -> Result<(), String> {
    match get(request, FAR_FUTURE).await {
        Ok(_) => Ok(()),
        Err(HttpError::Request(message) | HttpError::Body(message)) => Err(message),
    }
}
