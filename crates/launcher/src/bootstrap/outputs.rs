//! Uploads the outputs of a task to the store of the run: when the command has ended, at intervals
//! while it runs, and when a client requests it.

use std::{
    path::PathBuf,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    time::Duration,
};

use jiff::Timestamp;

use super::{BootstrapError, Places, messages::tell, task::Task};
use crate::{
    outputs::{
        Manifest, OutputsError,
        packed::{MOST_PARTS, PART_LIMIT, Pack, PackReader, PackSource},
        uploads::{RoleUploads, TaskUploads, UPLOADS_FILE, Uploads},
    },
    store::{PutError, RetryPolicy, SignedUrl, put},
};

/// The maximum number of files to name that were left out.
const NAMED: usize = 10;

/// Why outputs are not uploaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum UploadError {
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    #[error(transparent)]
    Put(#[from] PutError),
    #[error("the folder of the code no longer exists")]
    NoFolder,
}

/// The uploads of this task.
#[derive(Debug, Clone)]
pub(super) struct TaskOutputs {
    volume: PathBuf,
    run: String,
    task: Task,
    pod: String,
    uploads: RoleUploads,
    urls: TaskUploads,
}

impl TaskOutputs {
    /// Reads the run's Secret. `None` if this task uploads no outputs.
    pub(super) fn of(
        places: &Places,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, BootstrapError> {
        let path = places.config.join(UPLOADS_FILE);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes,
        };
        let uploads = bytes.and_then(|bytes| Uploads::parse(&bytes));
        let mut uploads = uploads.map_err(|error| BootstrapError::Config {
            path,
            problem: error.to_string(),
        })?;
        let task = Task::of(&variable)?;
        let Some(uploads) = uploads.roles.remove(&task.role) else {
            return Ok(None);
        };
        let Some(urls) = uploads.tasks.get(task.index as usize).cloned() else {
            tell(&format!(
                "the outputs of this task are not uploaded: the run was submitted with {} tasks",
                uploads.tasks.len()
            ));
            return Ok(None);
        };
        Ok(Some(Self {
            volume: places.home.clone(),
            run: places.read_config()?.run,
            pod: variable("POD_NAME").unwrap_or_default(),
            task,
            uploads,
            urls,
        }))
    }

    /// Uploads the files as they are now.
    pub(super) fn upload(&self, ended: bool) -> Result<Manifest, UploadError> {
        let parts = match ended {
            true => (self.urls.ended.len() as u64).min(MOST_PARTS),
            false => 1,
        };
        let source = PackSource {
            run: &self.run,
            role: &self.task.role,
            index: self.task.index,
            pod: &self.pod,
            request: &self.uploads.request,
        };
        let now = Timestamp::now();
        let pack = Pack::read(&self.volume, &source, ended, (PART_LIMIT, parts), now)?;
        let pack = pack.ok_or(UploadError::NoFolder)?;
        let sizes = pack.sizes();
        let mut reader = PackReader::new(pack);
        let count = sizes.len();
        for (part, size) in sizes.into_iter().enumerate() {
            let url = self.url(ended, part, count);
            let begin = reader.clone();
            let sent = put(url, size, RetryPolicy::default(), || begin.clone())?;
            reader = match part + 1 < count {
                true => sent.next_part(),
                false => sent,
            };
        }
        let list = reader.into_list().ok_or(UploadError::NoFolder)?;
        Ok(list.manifest)
    }

    /// The URL of a part: the last one has the list, and is uploaded last.
    fn url(&self, ended: bool, part: usize, count: usize) -> &SignedUrl {
        let own = match (ended, part + 1 == count) {
            (false, _) => None,
            (true, true) => self.urls.ended.first(),
            (true, false) => self.urls.ended.get(part + 1),
        };
        own.unwrap_or(&self.urls.running)
    }

    /// Uploads the files of the ended command, and reports it in the task's log.
    pub(super) fn upload_ended(&self) {
        match self.upload(true) {
            Ok(manifest) => report(&manifest),
            Err(error) => tell(&format!("the outputs were not uploaded: {error}")),
        }
    }

    /// Uploads the files at intervals, if the run wants it, until the result is dropped.
    pub(super) fn upload_regularly(&self) -> Option<Sender<()>> {
        let every = Duration::from_secs(self.uploads.request.every?);
        let outputs = self.clone();
        let (running, ended) = channel();
        std::thread::spawn(move || {
            let mut problem = None;
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = outputs.upload(false).err().map(|error| error.to_string());
                // Once, not each time.
                if let Some(error) = now.as_ref().filter(|_| now != problem) {
                    tell(&format!("the current outputs were not uploaded: {error}"));
                }
                problem = now;
            }
        });
        Some(running)
    }
}

/// Names the files that were left out. The client reports all when it fetches the outputs.
fn report(manifest: &Manifest) {
    for file in manifest.left_out.iter().take(NAMED) {
        tell(&format!("not kept: {} {}", file.path, file.reason));
    }
    let more = manifest.left_out_count().saturating_sub(NAMED as u64);
    if more > 0 {
        tell(&format!("not kept: {more} more"));
    }
}

/// Uploads the current files of the running task in this container.
///
/// # Errors
/// The task uploads no outputs, or the store does not take them.
pub fn upload_now() -> Result<(), BootstrapError> {
    let outputs = TaskOutputs::of(&Places::default(), |name| std::env::var(name).ok())?;
    let outputs = outputs.ok_or(BootstrapError::NoOutputs)?;
    match outputs.upload(false) {
        Ok(_) => Ok(()),
        Err(error) => Err(BootstrapError::Outputs(error.to_string())),
    }
}
