//! Serves one SSH client on standard input and output.

use std::{sync::Arc, time::Duration};

use longshore::{
    client::{Cluster, Item, kinds::Pod},
    launcher::runs::TaskPod,
};
use longshore_ssh::{Keys, serve};
use tokio::signal::unix::{SignalKind, signal};

use super::{host::Task, stdio};
use crate::{
    error::{Error, Kind, Result},
    owners::Access,
    task_container::TaskContainer,
};

/// The interval at which the end of the task is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time that the last messages have to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Serves the client until it leaves or the task ends.
pub(crate) async fn run(
    cluster: &Cluster,
    namespace: &str,
    place: &str,
    keys: &Keys,
    access: Access,
) -> Result<()> {
    let task = Arc::new(TaskContainer::find(cluster, namespace, place, access).await?);
    let pod = task.pod.clone();
    let host = Arc::new(Task::new(task));
    let output = stdio::output();
    let served = tokio::select! {
        served = serve(stdio::input(), output.stream, keys, host, over(&pod)) => served,
        // Standard output accepts no more data, also if the client sends nothing.
        Ok(()) = output.failed => return Ok(()),
    };
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, output.finished).await;
    match served {
        Ok(_) => Ok(()),
        Err(longshore_ssh::Error::Io(_)) => Ok(()),
        Err(error) => Err(Error::from_source(Kind::Failed, &error)),
    }
}

/// Completes when no more sessions are possible: the task has ended, or this process is asked to
/// end. ssh sends SIGHUP to its proxy.
async fn over(pod: &Item<Pod>) -> String {
    let mut signals = [
        SignalKind::hangup(),
        SignalKind::terminate(),
        SignalKind::interrupt(),
    ]
    .map(|kind| signal(kind).ok());
    let [hangup, terminate, interrupt] = &mut signals;
    let mut any = std::pin::pin!(async {
        tokio::select! {
            () = next(hangup) => {}
            () = next(terminate) => {}
            () = next(interrupt) => {}
        }
    });
    let name = match task_name(pod) {
        Some(name) => format!("the task {name}"),
        None => format!("the pod {}", pod.name()),
    };
    loop {
        tokio::select! {
            () = &mut any => return "the proxy was stopped".to_owned(),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        // Other errors are temporary, or the sessions report them, too.
        match pod.fetch().await {
            Ok(now) => {
                let facts = now.typed::<TaskPod>().ok();
                let is_other = now.meta().uid != pod.meta().uid;
                if is_other || facts.as_ref().is_some_and(TaskPod::is_over) {
                    let code = facts.as_ref().and_then(TaskPod::exit_code);
                    let code = code.filter(|_| !is_other);
                    let end = code.map_or(String::new(), |code| format!(" (exit code {code})"));
                    return format!("{name} has ended{end}");
                }
            }
            Err(error) if error.is_not_found() => return format!("{name} has ended"),
            Err(_) => {}
        }
    }
}

async fn next(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

fn task_name(pod: &Item<Pod>) -> Option<String> {
    let task = crate::place::task_of(pod)?;
    let run = pod.meta().labels.get(longshore::launcher::names::RUN)?;
    Some(format!("{run}/{task}"))
}
