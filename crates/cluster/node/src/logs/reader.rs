//! Reads logs and follows those that are being written.

use std::{io, sync::Arc};

use futures::{StreamExt as _, future::BoxFuture};
use longshore_node_api::{LogError, LogRequest, LogStream, NodeLogs, PodLogs};

use super::{reading::Reading, store::LogStore};

/// Reads the logs of a node's containers, including logs of earlier agents on the same data folder.
#[derive(Debug, Clone)]
pub struct LogReader {
    store: Arc<LogStore>,
}

impl LogReader {
    pub(crate) fn new(store: Arc<LogStore>) -> Self {
        Self { store }
    }

    /// Opens a log. The stream ends at the end of the log or, with `follow`, after the container
    /// has ended and all its output was read.
    fn read(&self, query: &LogRequest) -> Result<LogStream, LogError> {
        let (uid, pod) = (&query.uid, &query.pod);
        let known = self.store.containers(uid);
        let container = match (&known, query.container.as_str()) {
            (Some(all), "") if all.len() == 1 => all[0].clone(),
            (Some(all), name) if all.iter().any(|known| known == name) => name.to_owned(),
            (None, name) if !name.is_empty() && !self.store.runs(uid, name).is_empty() => {
                name.to_owned()
            }
            (None, _) => {
                let text = format!("pod \"{pod}\" does not run on this node");
                return Err(LogError::NotFound(text));
            }
            (_, name) => {
                let text = format!("container {name} is not valid for pod {pod}");
                return Err(LogError::NotFound(text));
            }
        };
        let run = self.choose_run(query, &container)?;
        let failed = |error: io::Error| {
            LogError::Failed(format!(
                "the log of container \"{container}\" in pod \"{pod}\" cannot be read: {error}"
            ))
        };
        let progress = self.store.progress(uid, &container, run);
        let folder = self.store.folder_of(uid, &container);
        let state = Reading::open(folder, run, progress, query).map_err(failed)?;
        Ok(futures::stream::unfold(state, |mut state| async move {
            let chunk = state.next().await?;
            Some((chunk, state))
        })
        .boxed())
    }

    /// Opens a log of a pod that was deleted.
    fn read_deleted(&self, mut query: LogRequest) -> Result<LogStream, LogError> {
        let (pod, uid) = (&query.pod, &query.uid);
        let kept = self.store.kept();
        // Permission to read the log depends on the name, so it must be the pod's.
        let record = kept.and_then(|kept| kept.find(uid, &query.namespace, pod));
        let gone = |why: &str| {
            LogError::NotFound(format!(
                "the logs of the deleted pod \"{pod}\" with the UID {uid} are gone: {why}"
            ))
        };
        let record = record.ok_or_else(|| gone("no record of the pod is kept"))?;
        if let Some(why) = &record.removed {
            return Err(gone(why));
        }
        if let ("", [only]) = (query.container.as_str(), record.containers.as_slice()) {
            query.container.clone_from(only);
        }
        let name = &query.container;
        let runs = self.store.runs(uid, name);
        let Some(run) = runs.last().filter(|_| record.containers.contains(name)) else {
            let text = format!("the container \"{name}\" of the deleted pod \"{pod}\" has no log");
            return Err(LogError::NotFound(text));
        };
        // The last lines may be written after the object was deleted.
        query.follow = !query.previous && self.store.progress(uid, name, *run).is_some();
        self.read(&query)
    }

    fn choose_run(&self, query: &LogRequest, container: &str) -> Result<u32, LogError> {
        let runs = self.store.runs(&query.uid, container);
        let waiting = self.store.waiting(&query.uid, container);
        let pod = &query.pod;
        let chosen = if query.previous {
            // While a container waits for its restart, the last run is the
            // previous one.
            let back = if waiting.is_some() { 1 } else { 2 };
            let run = runs.len().checked_sub(back).map(|at| runs[at]);
            run.ok_or_else(|| {
                format!("previous terminated container \"{container}\" in pod \"{pod}\" not found")
            })
        } else {
            runs.last().copied().ok_or_else(|| {
                let reason = waiting.unwrap_or_else(|| "ContainerCreating".to_owned());
                format!("container \"{container}\" in pod \"{pod}\" is waiting to start: {reason}")
            })
        };
        chosen.map_err(LogError::NotReady)
    }
}

impl NodeLogs for LogReader {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        let reader = self.clone();
        Box::pin(async move { reader.read(&request) })
    }

    fn open_deleted(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        let reader = self.clone();
        Box::pin(async move { reader.read_deleted(request) })
    }

    fn list(&self, namespace: &str) -> BoxFuture<'static, Option<Vec<PodLogs>>> {
        let (store, namespace) = (self.store.clone(), namespace.to_owned());
        Box::pin(async move {
            store.kept()?;
            let listing = tokio::task::spawn_blocking(move || Some(store.kept()?.list(&namespace)));
            listing.await.ok().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{
        logs::{LogLimits, LogWriter, Progress, capture},
        sandbox::Output,
        streams::Attachment,
    };
    use std::io::Write as _;
    use tokio::sync::watch;

    fn pipe(end: io::PipeReader) -> Option<Output> {
        Some(Output::pipe(end.into()).unwrap())
    }

    async fn run(store: &Arc<LogStore>, restart: u32, text: &[u8]) {
        let (sender, _) = watch::channel(Progress::default());
        let file = store.create("u", "c", restart, &sender).unwrap();
        let (output, mut end) = io::pipe().unwrap();
        let (errors, errors_end) = io::pipe().unwrap();
        end.write_all(text).unwrap();
        drop((end, errors_end));
        let (_keep, stop) = watch::channel(false);
        capture(
            LogWriter::new(file, sender),
            pipe(output),
            pipe(errors),
            &Attachment::default(),
            stop,
        )
        .await;
    }

    fn query() -> LogRequest {
        LogRequest {
            pod: "p".to_owned(),
            uid: "u".to_owned(),
            ..LogRequest::default()
        }
    }

    async fn read(reader: &LogReader, query: LogRequest) -> Result<String, LogError> {
        let mut stream = std::pin::pin!(reader.open(query).await?);
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk.unwrap());
        }
        Ok(String::from_utf8(all).unwrap())
    }

    #[tokio::test]
    async fn current_and_previous_runs() {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::new(folder.path().to_owned(), LogLimits::default());
        let reader = LogReader::new(store.clone());
        assert!(matches!(
            read(&reader, query()).await,
            Err(LogError::NotFound(_))
        ));
        store.add_pod("u", vec!["c".to_owned()]);
        store.set_waiting("u", "c", Some("ContainerCreating"));
        let error = read(&reader, query()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "container \"c\" in pod \"p\" is waiting to start: ContainerCreating"
        );
        run(&store, 0, b"first\n").await;
        let previous = LogRequest {
            previous: true,
            ..query()
        };
        assert!(matches!(
            read(&reader, previous.clone()).await,
            Err(LogError::NotReady(_))
        ));
        run(&store, 1, b"second\n").await;
        assert_eq!(read(&reader, query()).await.unwrap(), "second\n");
        assert_eq!(read(&reader, previous.clone()).await.unwrap(), "first\n");
        store.set_waiting("u", "c", Some("CrashLoopBackOff"));
        assert_eq!(read(&reader, previous).await.unwrap(), "second\n");

        let later = LogReader::new(LogStore::new(
            folder.path().to_owned(),
            LogLimits::default(),
        ));
        let named = LogRequest {
            container: "c".to_owned(),
            ..query()
        };
        assert_eq!(read(&later, named.clone()).await.unwrap(), "second\n");
        store.remove_pod("u");
        assert!(matches!(
            read(&later, named).await,
            Err(LogError::NotFound(_))
        ));
    }

    #[tokio::test]
    async fn following_ends_with_the_container() {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::new(folder.path().to_owned(), LogLimits::default());
        store.add_pod("u", vec!["c".to_owned()]);
        let (sender, _) = watch::channel(Progress::default());
        let file = store.create("u", "c", 0, &sender).unwrap();
        let (output, mut end) = io::pipe().unwrap();
        let (errors, errors_end) = io::pipe().unwrap();
        let (_keep, stop) = watch::channel(false);
        let writer = LogWriter::new(file, sender);
        let capturing = tokio::spawn(async move {
            let attachment = Attachment::default();
            capture(writer, pipe(output), pipe(errors), &attachment, stop).await
        });
        let reader = LogReader::new(store.clone());
        let mut stream = std::pin::pin!(
            reader
                .open(LogRequest {
                    follow: true,
                    ..query()
                })
                .await
                .unwrap()
        );
        end.write_all(b"one\ntw").unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "one\n");
        end.write_all(b"o\nend").unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "two\n");
        drop((end, errors_end));
        assert_eq!(stream.next().await.unwrap().unwrap(), "end\n");
        assert!(stream.next().await.is_none());
        assert!(capturing.await.unwrap().ends_with("end"));
    }

    #[tokio::test]
    async fn tails_of_long_logs() {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::new(folder.path().to_owned(), LogLimits::default());
        store.add_pod("u", vec!["c".to_owned()]);
        let text: String = (0..2000)
            .map(|line| format!("line {line} {}\n", "x".repeat(60)))
            .collect();
        // More than a pipe buffer: written in parts, as one run.
        for part in text.as_bytes().chunks(32 * 1024) {
            run(&store, 0, part).await;
        }
        let reader = LogReader::new(store);
        let tail = LogRequest {
            tail_lines: Some(1000),
            limit_bytes: Some(9),
            ..query()
        };
        let all = read(&reader, query()).await.unwrap();
        assert!(all.starts_with("line 0 ") && all.ends_with("x\n"));
        let tail = read(&reader, tail).await.unwrap();
        assert!(
            tail.starts_with("line 9") || tail.starts_with("line 1"),
            "{tail}"
        );
        let last = LogRequest {
            tail_lines: Some(1),
            ..query()
        };
        assert!(read(&reader, last).await.unwrap().starts_with("line 1999 "));
    }
}
