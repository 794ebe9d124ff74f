//! Uploads the outputs of a task to the store of the run, or writes them to a claim: when the
//! command has ended, at intervals while it runs, and when a client requests it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    time::Duration,
};

use jiff::Timestamp;

use longshore_diagnosis::names::{self, Task};

use super::{BootstrapError, Places, messages::tell, task::this_task};
use crate::{
    outputs::{
        Manifest, OutputsError, is_full,
        packed::{MOST_PARTS, PART_LIMIT, Pack, PackReader, PackSource},
        uploads::{
            self, CLAIM_DIR, PART, RoleUploads, TaskUploads, UPLOADS_FILE, Uploads, folder, running,
        },
    },
    store::{PutError, RetryPolicy, SignedUrl, put},
};

/// The maximum number of excluded files in a report.
const NAMED: usize = 10;

/// An error of uploading outputs.
#[derive(Debug, thiserror::Error)]
pub(super) enum UploadError {
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    #[error(transparent)]
    Put(#[from] PutError),
    #[error("the folder of the code no longer exists")]
    NoFolder,
    #[error("cannot write {}: {source}{}", path.display(), remedy(source))]
    Write { path: PathBuf, source: io::Error },
}

/// The uploads of this task.
#[derive(Debug, Clone)]
pub(super) struct TaskOutputs {
    volume: PathBuf,
    run: String,
    task: Task,
    pod: String,
    uploads: RoleUploads,
    to: Destination,
}

/// The destination of the files.
#[derive(Debug, Clone)]
enum Destination {
    /// A store.
    Urls(TaskUploads),
    /// This folder of a claim.
    Claim(PathBuf),
}

impl TaskOutputs {
    /// Reads the run's Secret. `None` if this task does not upload outputs.
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
        let task = this_task(&variable)?;
        let Some(uploads) = uploads.roles.remove(&task.role) else {
            return Ok(None);
        };
        let config = places.read_config()?;
        let config = config.of_job(&task.role, &variable("LONGSHORE_JOB").unwrap_or_default());
        let to = match uploads.request.claim {
            Some(_) => {
                let namespace = variable("POD_NAMESPACE").unwrap_or_default();
                let folder = folder(&namespace, &config.run);
                Some(Destination::Claim(Path::new(CLAIM_DIR).join(folder)))
            }
            None => {
                let urls = uploads.tasks.get(task.index as usize);
                urls.cloned().map(Destination::Urls)
            }
        };
        let Some(to) = to else {
            tell(&format!(
                "the outputs of this task are not uploaded: the run was submitted with {} tasks",
                uploads.tasks.len()
            ));
            return Ok(None);
        };
        Ok(Some(Self {
            volume: places.home.clone(),
            run: config.run,
            pod: variable("POD_NAME").unwrap_or_default(),
            task,
            uploads,
            to,
        }))
    }

    /// Returns true if only the metrics file is requested, and the task has not written it.
    fn has_nothing(&self) -> bool {
        let work = self.volume.join(names::WORK_FOLDER);
        self.uploads.request.is_only_metrics()
            && work.join(names::METRICS_FILE).symlink_metadata().is_err()
    }

    /// Uploads the current files.
    pub(super) fn upload(&self, ended: bool) -> Result<Manifest, UploadError> {
        let limits = match &self.to {
            Destination::Urls(urls) if ended => {
                (PART_LIMIT, (urls.ended.len() as u64).min(MOST_PARTS))
            }
            Destination::Urls(_) => (PART_LIMIT, 1),
            Destination::Claim(_) => (u64::MAX, 1),
        };
        let source = PackSource {
            run: &self.run,
            role: &self.task.role,
            index: self.task.index,
            pod: &self.pod,
            request: &self.uploads.request,
        };
        let now = Timestamp::now();
        let pack = Pack::read(&self.volume, &source, ended, limits, now)?;
        let pack = pack.ok_or(UploadError::NoFolder)?;
        match &self.to {
            Destination::Urls(urls) => send(pack, urls, ended),
            Destination::Claim(folder) => {
                let (role, index) = (&self.task.role, self.task.index);
                let name = match ended {
                    true => uploads::ended(role, index, 0),
                    false => running(role, index),
                };
                let path = folder.join(name);
                write(pack, folder, &path).map_err(|source| UploadError::Write { path, source })
            }
        }
    }

    /// Uploads the files of the ended command, and reports errors in the task's log.
    pub(super) fn upload_ended(&self) {
        if self.has_nothing() {
            return;
        }
        match self.upload(true) {
            Ok(manifest) => report(&manifest),
            Err(error) => {
                // Clients read this line from the log.
                let line = format!("{}{error}", names::OUTPUTS_LOST);
                tell(line.trim_start_matches("longshore: "));
            }
        }
    }

    /// Uploads the files at intervals, if the run requests it, until the result is dropped.
    pub(super) fn upload_regularly(&self) -> Option<Sender<()>> {
        let every = Duration::from_secs(self.uploads.request.every?);
        let outputs = self.clone();
        let (running, ended) = channel();
        std::thread::spawn(move || {
            let mut problem = None;
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = outputs.upload(false).err().map(|error| error.to_string());
                // Report the same error only once.
                if let Some(error) = now.as_ref().filter(|_| now != problem) {
                    tell(&format!("the current outputs were not uploaded: {error}"));
                }
                problem = now;
            }
        });
        Some(running)
    }
}

/// Uploads a stream to a store.
fn send(pack: Pack, urls: &TaskUploads, ended: bool) -> Result<Manifest, UploadError> {
    let sizes = pack.sizes();
    let mut reader = PackReader::new(pack);
    let count = sizes.len();
    for (part, size) in sizes.into_iter().enumerate() {
        let begin = reader.clone();
        let url = url(urls, ended, part, count);
        let sent = put(url, size, RetryPolicy::default(), || begin.clone())?;
        reader = match part + 1 < count {
            true => sent.next_part(),
            false => sent,
        };
    }
    let list = reader.into_list().ok_or(UploadError::NoFolder)?;
    Ok(list.manifest)
}

/// The URL of a part. The last part contains the list, and is uploaded last.
fn url(urls: &TaskUploads, ended: bool, part: usize, count: usize) -> &SignedUrl {
    let own = match (ended, part + 1 == count) {
        (false, _) => None,
        (true, true) => urls.ended.first(),
        (true, false) => urls.ended.get(part + 1),
    };
    own.unwrap_or(&urls.running)
}

/// The recommended action if a claim cannot be written.
fn remedy(error: &io::Error) -> &'static str {
    match is_full(error) {
        true => "; the earlier files stay: free space in the claim, or use a larger one",
        false => "",
    }
}

/// Writes a stream to a file, which is replaced as a whole.
fn write(pack: Pack, folder: &Path, path: &Path) -> io::Result<Manifest> {
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{PART}{name}-");
    remove_leftovers(folder, &prefix);
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .tempfile_in(folder)?;
    // The lock prevents the file from counting as a leftover before it has its final name.
    let _ = file.as_file().try_lock();
    let mut reader = PackReader::new(pack);
    io::copy(&mut reader, file.as_file_mut())?;
    // Another user may fetch the files.
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    let list = reader.into_list();
    let list = list.ok_or_else(|| io::Error::other("the list of the files is missing"))?;
    Ok(list.manifest)
}

/// Removes the incomplete files of attempts that were killed, which would fill the claim.
fn remove_leftovers(folder: &Path, prefix: &str) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let is_part = entry.file_name().to_string_lossy().starts_with(prefix);
        if !is_part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        // If the file system has no locks, the files stay until the run is removed.
        let is_left = fs::File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if is_left {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Reports the first excluded files. The client reports all of them when it fetches the outputs.
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
/// The task does not upload outputs, or the store does not accept them.
pub fn upload_now() -> Result<(), BootstrapError> {
    let outputs = TaskOutputs::of(&Places::default(), |name| std::env::var(name).ok())?;
    let outputs = outputs.ok_or(BootstrapError::NoOutputs)?;
    if outputs.has_nothing() {
        return Ok(());
    }
    match outputs.upload(false) {
        Ok(_) => Ok(()),
        Err(error) => Err(BootstrapError::Outputs(error.to_string())),
    }
}
