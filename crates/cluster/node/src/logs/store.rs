//! The locations of log files and their current writers.

use std::{collections::HashMap, fs, io, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    kept::{Index, KeptPod},
    limits::LogLimits,
    log_file::LogFile,
    retention::{Retention, RetentionTimes},
    segments,
};

/// The position up to which a log has been written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The current segment.
    pub(crate) segment: u32,
    /// The number of bytes in the segment, always whole records.
    pub(crate) length: u64,
    /// True if the log is complete.
    pub(crate) ended: bool,
}

/// The state of a container for log readers.
#[derive(Debug, Clone, Default)]
struct Container {
    /// The waiting reason, if the container waits.
    waiting: Option<String>,
    /// The current run and its progress.
    current: Option<Current>,
}

/// A run that is being written.
#[derive(Debug, Clone)]
struct Current {
    restart: u32,
    progress: watch::Receiver<Progress>,
    retention: Retention,
}

#[derive(Debug, Default)]
struct Pod {
    /// The containers in the order of the pod's spec.
    containers: Vec<String>,
    state: HashMap<String, Container>,
}

/// The log directory and the state of its containers.
#[derive(Debug)]
pub(crate) struct LogStore {
    folder: PathBuf,
    limits: LogLimits,
    times: RetentionTimes,
    pods: Mutex<HashMap<String, Pod>>,
    /// The pods whose logs are kept when they are deleted; `None` to keep none.
    kept: Option<Arc<Index>>,
}

impl LogStore {
    pub(crate) fn new(folder: PathBuf, limits: LogLimits) -> Arc<Self> {
        Self::with_times(folder, limits, RetentionTimes::default())
    }

    /// Creates a store that keeps the logs of deleted pods until their Job is removed by [`keep`].
    /// `limit_file` is the file with the limit of their disk space.
    ///
    /// [`keep`]: super::keep
    pub(crate) fn keeping(
        folder: PathBuf,
        limits: LogLimits,
        limit_file: Option<PathBuf>,
    ) -> Arc<Self> {
        let kept = Some(Arc::new(Index::new(folder.clone(), limit_file)));
        Self::create_store(folder, limits, RetentionTimes::default(), kept)
    }

    pub(super) fn with_times(
        folder: PathBuf,
        limits: LogLimits,
        times: RetentionTimes,
    ) -> Arc<Self> {
        Self::create_store(folder, limits, times, None)
    }

    fn create_store(
        folder: PathBuf,
        limits: LogLimits,
        times: RetentionTimes,
        kept: Option<Arc<Index>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            folder,
            limits,
            times,
            pods: Mutex::default(),
            kept,
        })
    }

    /// Records a pod whose logs are kept when it is deleted.
    pub(crate) fn record(&self, pod: Option<KeptPod>) {
        if let (Some(kept), Some(pod)) = (&self.kept, pod) {
            kept.add(pod);
        }
    }

    /// Returns the pods whose logs are kept.
    pub(crate) fn kept(&self) -> Option<&Arc<Index>> {
        self.kept.as_ref()
    }

    /// Registers a pod's containers.
    pub(crate) fn add_pod(&self, uid: &str, containers: Vec<String>) {
        self.pods.lock().insert(
            uid.to_owned(),
            Pod {
                containers,
                state: HashMap::new(),
            },
        );
    }

    /// Registers a container that was added to a pod.
    pub(crate) fn add_container(&self, uid: &str, name: String) {
        if let Some(pod) = self.pods.lock().get_mut(uid) {
            pod.containers.push(name);
        }
    }

    /// Removes a pod, and its files unless they are kept.
    pub(crate) fn remove_pod(&self, uid: &str) {
        self.pods.lock().remove(uid);
        if self.kept.as_ref().is_some_and(|kept| kept.deleted(uid)) {
            return;
        }
        self.remove_files(uid);
    }

    fn remove_files(&self, uid: &str) {
        if let Err(error) = fs::remove_dir_all(self.folder.join(uid))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(uid, %error, "cannot remove the logs of a deleted pod");
        }
    }

    /// Removes the files of pods that are not in `present`, unless the logs of deleted pods are
    /// kept, and files of other pods that an earlier agent kept for readers.
    pub(crate) fn keep_only(&self, present: &dyn Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Some(uid) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let is_present = present(&uid);
            let kept = self.kept.as_ref();
            let is_kept = kept.is_some_and(|kept| kept.load(&uid, is_present));
            if !is_present && !is_kept {
                self.remove_files(&uid);
                continue;
            }
            for container in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                segments::keep_latest(&container.path(), self.limits);
            }
        }
    }

    /// Sets or clears the waiting reason of a container.
    pub(crate) fn set_waiting(&self, uid: &str, container: &str, reason: Option<&str>) {
        if let Some(pod) = self.pods.lock().get_mut(uid) {
            let state = pod.state.entry(container.to_owned()).or_default();
            state.waiting = reason.map(str::to_owned);
        }
    }

    /// Creates the log of a container's run. `progress` reports the written position to readers. A
    /// reader finds both the file and its progress, or neither.
    pub(crate) fn create(
        &self,
        uid: &str,
        container: &str,
        restart: u32,
        progress: &watch::Sender<Progress>,
    ) -> io::Result<LogFile> {
        // Held while the file is created, because a reader that found the file without its progress
        // would assume that it is complete.
        let mut pods = self.pods.lock();
        let file = LogFile::create(
            self.folder_of(uid, container),
            restart,
            self.limits,
            self.times,
        )?;
        let (segment, length) = file.end();
        progress.send_replace(Progress {
            segment,
            length,
            ended: false,
        });
        if let Some(pod) = pods.get_mut(uid) {
            let state = pod.state.entry(container.to_owned()).or_default();
            state.current = Some(Current {
                restart,
                progress: progress.subscribe(),
                retention: file.retention(),
            });
            state.waiting = None;
        }
        Ok(file)
    }

    /// Returns the containers of a pod in order; `None` if the pod is unknown.
    pub(super) fn containers(&self, uid: &str) -> Option<Vec<String>> {
        self.pods.lock().get(uid).map(|pod| pod.containers.clone())
    }

    /// Returns the waiting reason of a container.
    pub(super) fn waiting(&self, uid: &str, container: &str) -> Option<String> {
        self.pods
            .lock()
            .get(uid)?
            .state
            .get(container)?
            .waiting
            .clone()
    }

    /// Returns the directory of a container's files.
    pub(super) fn folder_of(&self, uid: &str, container: &str) -> PathBuf {
        self.folder.join(uid).join(container)
    }

    /// Returns the runs of a container that have a file, oldest first.
    pub(super) fn runs(&self, uid: &str, container: &str) -> Vec<u32> {
        let files = segments::files(&self.folder_of(uid, container)).into_iter();
        let mut runs: Vec<u32> = files.map(|(run, _)| run).collect();
        runs.dedup();
        runs
    }

    /// Returns the progress and the retention of a run that is being written.
    pub(super) fn progress(
        &self,
        uid: &str,
        container: &str,
        restart: u32,
    ) -> Option<(watch::Receiver<Progress>, Retention)> {
        let pods = self.pods.lock();
        let current = pods.get(uid)?.state.get(container)?.current.clone()?;
        (current.restart == restart).then_some((current.progress, current.retention))
    }
}
