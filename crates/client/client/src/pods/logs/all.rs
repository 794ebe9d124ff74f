//! Reads the logs of all containers of a pod, line by line.

use std::{sync::Arc, time::Duration};

use futures::{
    Stream, StreamExt,
    future::Either,
    stream::{self, BoxStream},
};
use http::StatusCode;
use serde_json::Value;

use super::lines::lines;
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    options::LogOptions,
    transport::chunks,
    view::View,
};

/// The lists of a pod's containers, in the order in which they start.
const LISTS: [(&str, &str); 3] = [
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];
/// The timeout for the start of a container: one year, because a pod can be pending for an
/// unlimited time.
const START_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A line of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The container's name.
    pub container: String,
    /// The line without its line end. Invalid UTF-8 is replaced. A line of more than 1 MiB is
    /// split.
    pub line: String,
}

type LogLines = BoxStream<'static, Result<LogLine>>;

impl View<Pod> {
    /// Streams the logs of all containers of a pod, each line with the name of its container.
    ///
    /// The logs are in the order in which containers start: init containers, including
    /// sidecars, then the others, then ephemeral containers. Containers that have not
    /// started have no lines. With [`LogOptions::follow`], the lines of all containers are
    /// merged as they are written, and containers that start later are included, until
    /// all of them have ended. The other options apply to each container.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the options name a container. The errors of [`View::logs`] if no
    /// container has a log. Later errors are items of the stream.
    pub async fn logs_all(
        &self,
        name: &str,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<LogLine>> + Send + use<>> {
        if let Some(container) = &options.container {
            return Err(Error::Invalid(format!(
                "container: expected none for the logs of all containers, found {container:?}: leave it out"
            )));
        }
        let containers = containers(&self.fetch(name).await?)?;
        Ok(if options.follow {
            let followed = containers.into_iter().map(|container| {
                follow(
                    self.clone(),
                    name.to_owned(),
                    for_container(options, container),
                )
            });
            Either::Left(stream::select_all(followed))
        } else {
            Either::Right(self.logs_in_order(name, containers, options).await?)
        })
    }

    /// Streams one log after the other. Opens the first one that exists before it returns.
    async fn logs_in_order(
        &self,
        name: &str,
        containers: Vec<String>,
        options: &LogOptions,
    ) -> Result<LogLines> {
        let mut containers = containers.into_iter();
        let mut none = None;
        for container in containers.by_ref() {
            match self.lines_of(name, for_container(options, container)).await {
                Err(error) if has_no_log(&error) => {
                    none.get_or_insert(error);
                }
                Err(error) => return Err(error),
                Ok(first) => {
                    let first = first.unwrap_or_else(|| stream::empty().boxed());
                    let (pods, name, options) = (self.clone(), name.to_owned(), options.clone());
                    let others = stream::iter(containers).then(move |container| {
                        let (pods, name) = (pods.clone(), name.clone());
                        let options = for_container(&options, container);
                        async move { pods.lines_or_none(&name, options).await }
                    });
                    return Ok(first.chain(others.flatten()).boxed());
                }
            }
        }
        // A pod has at least one container.
        Err(none.unwrap_or(Error::Closed))
    }

    /// Like [`View::lines_of`]. The lines are empty if the container has no log, and an error
    /// is their only item.
    async fn lines_or_none(&self, name: &str, options: LogOptions) -> LogLines {
        match self.lines_of(name, options).await {
            Ok(Some(lines)) => lines,
            Ok(None) => stream::empty().boxed(),
            Err(error) if has_no_log(&error) => stream::empty().boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    /// Streams the lines of one container, `None` if the pod has no node.
    async fn lines_of(&self, name: &str, options: LogOptions) -> Result<Option<LogLines>> {
        let container: Arc<str> = options.container.as_deref().unwrap_or_default().into();
        let response = self.log_response(name, &options).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let log = chunks(self.cluster().transport.clone(), response);
        let line = move |line: Result<String>| {
            line.map(|line| LogLine {
                container: container.to_string(),
                line,
            })
        };
        Ok(Some(lines(log).map(line).boxed()))
    }
}

impl Item<Pod> {
    /// Like [`View::logs_all`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::logs_all`].
    pub async fn logs_all(
        &self,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<LogLine>> + Send + use<>> {
        self.view().logs_all(self.name(), options).await
    }
}

/// Waits until a container starts, and follows its log.
fn follow(pods: View<Pod>, name: String, options: LogOptions) -> LogLines {
    let lines = async move {
        match pods.lines_of(&name, options.clone()).await {
            Ok(Some(lines)) => return Ok(lines),
            // A node that does not know the pod yet returns 404.
            Err(error) if !has_no_log(&error) && !error.is_not_found() => return Err(error),
            Ok(None) | Err(_) => {}
        }
        let container = options.container.clone().unwrap_or_default();
        let started = pods.wait_for(&name, START_TIMEOUT, " to start", |pod| match pod {
            Some(pod) if has_started(pod, &container) => Some(true),
            Some(pod) if !is_finished(pod) => None,
            // The container never starts.
            _ => Some(false),
        });
        match started.await {
            Ok(true) => {
                let lines = pods.lines_of(&name, options).await?;
                Ok(lines.unwrap_or_else(|| stream::empty().boxed()))
            }
            Ok(false) => Ok(stream::empty().boxed()),
            Err(error) => Err(error),
        }
    };
    stream::once(lines)
        .flat_map(|lines| match lines {
            Ok(lines) => lines,
            Err(error) => stream::iter([Err(error)]).boxed(),
        })
        .boxed()
}

fn for_container(options: &LogOptions, container: String) -> LogOptions {
    LogOptions {
        container: Some(container),
        ..options.clone()
    }
}

/// The names of all containers, in the order in which they start.
fn containers(pod: &Item<Pod>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (list, _) in LISTS {
        let containers: Vec<Value> = pod.field(&["spec", list])?.unwrap_or_default();
        let name = |container: &Value| container["name"].as_str().map(str::to_owned);
        names.extend(containers.iter().filter_map(name));
    }
    Ok(names)
}

/// Returns true for the error of a container without a log. Servers return 400 if it has not
/// started, or has no previous instance.
fn has_no_log(error: &Error) -> bool {
    error.code() == Some(400)
}

fn is_finished(pod: &Item<Pod>) -> bool {
    pod.phase().is_ok_and(|phase| phase.is_final())
}

/// Returns true if a container has started, in this or an earlier instance.
fn has_started(pod: &Item<Pod>, container: &str) -> bool {
    LISTS.iter().any(|(_, list)| {
        let statuses: Vec<Value> = pod
            .field(&["status", list])
            .ok()
            .flatten()
            .unwrap_or_default();
        let mut of_container = statuses.iter().filter(|status| status["name"] == container);
        of_container.any(|status| {
            let has = |state: &str, kind: &str| status[state][kind].is_object();
            has("state", "running") || has("state", "terminated") || has("lastState", "terminated")
        })
    })
}
