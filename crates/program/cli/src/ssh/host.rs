//! A task as the host of SSH sessions and of forwarded connections.

use std::sync::Arc;

use futures::future::BoxFuture;
use longshore_ssh::{Host, Refusal, Request, Started, Stream};

use super::{own_names::OwnNames, session};
use crate::{task_container::TaskContainer, ui};

/// A task.
pub(super) struct Task {
    task: Arc<TaskContainer>,
    names: OwnNames,
}

impl Task {
    pub(super) fn new(task: Arc<TaskContainer>) -> Self {
        // Without these names, only loopback names belong to the pod.
        let names = task.pod.typed().unwrap_or_default();
        Self { task, names }
    }
}

impl Host for Task {
    fn start(&self, request: Request) -> BoxFuture<'_, Result<Started, String>> {
        Box::pin(session::start(self.task.clone(), request))
    }

    fn connect(&self, host: String, port: u16) -> BoxFuture<'_, Result<Box<dyn Stream>, Refusal>> {
        Box::pin(async move {
            if !self.names.has(&host) {
                return Err(Refusal::Prohibited(format!(
                    "Longshore forwards ports of the task itself, as localhost:{port}, not those of {host:?}"
                )));
            }
            let forward = self.task.pod.port_forward(port);
            let connected = async { forward?.connect().await }.await;
            match connected {
                Ok(stream) => Ok(Box::new(stream) as Box<dyn Stream>),
                Err(error) => Err(Refusal::Failed(error.to_string())),
            }
        })
    }

    fn note(&self, text: &str) {
        ui::warning(text);
    }
}
