//! A journal that opens its file again after an I/O error, for example because the disk is full.
//! Until then, the database refuses all operations, even after space was freed. In the meantime,
//! writes fail at once and reads continue, because they use the state in memory.

#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use longshore_files::OpenMode;
use redb::{Database, DatabaseError, Durability};

use crate::{
    journal::{CommitError, Journal, Record},
    machine::message,
    store::{self, Store},
};

/// Delay before the first attempt to open the file again.
const MIN_DELAY: Duration = Duration::from_millis(50);
/// Maximum delay between attempts, unless an attempt takes long.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// The delay is at least this multiple of the duration of the last attempt, which
/// reads the whole file.
const DELAY_PER_ATTEMPT: u32 = 4;

/// Opens the database in a file. Tests inject I/O errors here.
type OpenDatabase = Box<dyn Fn(File) -> Result<Database, DatabaseError> + Send>;

/// A store that recovers from I/O errors.
pub(crate) struct RecoveringStore {
    path: PathBuf,
    /// The file after the last commit.
    file: Option<FileState>,
    open: OpenDatabase,
    min_delay: Duration,
    /// `None` after an I/O error.
    store: Option<Store>,
    /// The revision of the last commit.
    revision: u64,
    /// The revision of the last commit that is on the disk.
    durable: u64,
    durability: Durability,
    /// The batch whose commit failed, although the file may contain it. Later batches wait until
    /// this is decided.
    undecided: Option<(u64, Vec<Record>)>,
    outage: Option<Outage>,
}

/// A period in which writes cannot be stored.
struct Outage {
    begin: Instant,
    error: CommitError,
    delay: Duration,
    retry_at: Instant,
}

impl RecoveringStore {
    /// Takes over an open store and the revision that it contains. With `defer_sync`,
    /// commits are not durable until [`Journal::sync_commits`].
    pub(crate) fn new(path: &Path, store: Store, revision: u64, defer_sync: bool) -> Self {
        Self {
            path: path.to_owned(),
            file: path
                .symlink_metadata()
                .ok()
                .map(|file| FileState::of(&file)),
            open: Box::new(|file| store::builder().create_file(file)),
            min_delay: MIN_DELAY,
            store: Some(store),
            revision,
            durable: revision,
            durability: match defer_sync {
                true => Durability::None,
                false => Durability::Immediate,
            },
            undecided: None,
            outage: None,
        }
    }

    /// Opens the file again. The last batch, whose commit failed, is removed from it:
    /// its writes were answered with an error.
    fn reopen(&mut self) -> Result<Store, CommitError> {
        let found = self
            .path
            .symlink_metadata()
            .map_err(|error| unusable(&error))?;
        let known = self.file.map(|file| file.identity);
        if Some(FileState::of(&found).identity) != known {
            return Err(self.replaced());
        }
        let file = longshore_files::open(&self.path, OpenMode::ReadWrite)
            .map_err(|error| CommitError::new(error.to_string()))?;
        // After a failed sync, the cache may contain pages that are not on the disk.
        longshore_files::read_from_disk(&file).map_err(|error| unusable(&error))?;
        let database = (self.open)(file).map_err(|error| failed(error.into()))?;
        let store = Store::of(database);
        let found = store.revision().map_err(failed)?;
        if found != self.revision {
            match &self.undecided {
                Some((revision, records)) if *revision == found => {
                    let before = records.iter().rev();
                    let before = before.map(|record| (record, record.before.as_deref()));
                    store
                        .write(Durability::Immediate, self.revision, before)
                        .map_err(failed)?;
                }
                _ if found == self.durable => return Err(lost()),
                _ => return Err(self.replaced()),
            }
        }
        self.undecided = None;
        self.note_file()?;
        Ok(store)
    }

    /// Checks that the path still leads to the file, and that only this process has changed it.
    /// Writes to a file that was removed, or that lost its content, would be lost.
    fn check_file(&self) -> Result<(), CommitError> {
        let found = self.path.symlink_metadata().ok();
        match found.map(|file| FileState::of(&file)) == self.file {
            true => Ok(()),
            false => Err(self.replaced()),
        }
    }

    /// Records the state of the file after a commit, which can change its size.
    fn note_file(&mut self) -> Result<(), CommitError> {
        let found = self.path.symlink_metadata().ok();
        let found = found.map(|file| FileState::of(&file));
        let identity = |file: FileState| file.identity;
        if found.map(identity) != self.file.map(identity) {
            return Err(self.replaced());
        }
        self.file = found;
        Ok(())
    }

    fn replaced(&self) -> CommitError {
        CommitError::new(format!(
            "the file {} was removed, or changed by another process: restart the cluster",
            self.path.display()
        ))
    }

    /// Records a failure. The store stays closed until the next attempt.
    fn fail(&mut self, begin: Instant, error: CommitError) -> CommitError {
        let now = Instant::now();
        let (file, problem) = (self.path.display(), &error.problem);
        let outage = self.outage.get_or_insert_with(|| {
            if error.is_full {
                tracing::error!(
                    %file, problem,
                    "the disk is full: the cluster refuses changes until there is space; reads continue"
                );
            } else {
                tracing::error!(
                    %file, problem,
                    "changes cannot be stored: the cluster refuses them until the file can be written; reads continue"
                );
            }
            Outage {
                begin: now,
                error: error.clone(),
                delay: Duration::ZERO,
                retry_at: now,
            }
        });
        let slow = (now - begin).saturating_mul(DELAY_PER_ATTEMPT);
        outage.delay = (outage.delay * 2).clamp(self.min_delay, MAX_DELAY.max(self.min_delay));
        outage.retry_at = now + outage.delay.max(slow);
        outage.error = error.clone();
        error
    }

    /// Reports the end of an outage.
    fn succeed(&mut self) {
        if let Some(outage) = self.outage.take() {
            tracing::info!(
                file = %self.path.display(), after = ?outage.begin.elapsed(),
                problem = outage.error.problem,
                "changes are stored again; those that were refused in between are not stored"
            );
        }
    }
}

impl Journal for RecoveringStore {
    fn commit(&mut self, revision: u64, records: &[Record]) -> Result<(), CommitError> {
        let begin = Instant::now();
        let open = self.store.take();
        if open.is_some() {
            self.check_file().map_err(|error| self.fail(begin, error))?;
        }
        let store = match open {
            Some(store) => store,
            None => {
                if let Some(outage) = &self.outage
                    && begin < outage.retry_at
                {
                    return Err(outage.error.clone());
                }
                let reopened = without_panic(|| self.reopen());
                reopened.map_err(|error| self.fail(begin, error))?
            }
        };
        let durability = self.durability;
        let after = records.iter();
        let after = after.map(|record| (record, record.value.as_deref()));
        let written = without_panic(|| match store.write(durability, revision, after) {
            // The database stays usable.
            Err(redb::Error::ValueTooLarge(bytes)) => Ok(Some(bytes)),
            written => written.map(|()| None).map_err(failed),
        });
        let written = written.and_then(|written| self.note_file().map(|()| written));
        match written {
            Ok(None) => {
                self.store = Some(store);
                self.revision = revision;
                if matches!(durability, Durability::Immediate) {
                    self.durable = revision;
                }
                self.succeed();
                Ok(())
            }
            Ok(Some(bytes)) => {
                self.store = Some(store);
                let problem = format!("an object of {bytes} bytes is too large");
                Err(CommitError::new(problem))
            }
            Err(error) => {
                self.undecided = Some((revision, records.to_vec()));
                drop(store);
                Err(self.fail(begin, error))
            }
        }
    }

    fn sync_commits(&mut self) {
        self.durability = Durability::Immediate;
    }
}

impl Drop for RecoveringStore {
    fn drop(&mut self) {
        // A batch that was answered with an error should not be in the file at the next start.
        if self.undecided.is_some()
            && let Err(error) = without_panic(|| self.reopen())
            && error != lost()
        {
            tracing::warn!(
                file = %self.path.display(), %error,
                "the last refused changes may be stored nevertheless"
            );
        }
    }
}

/// Converts a panic of the database to an error.
fn without_panic<T>(work: impl FnOnce() -> Result<T, CommitError>) -> Result<T, CommitError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let panic = message(&*panic);
        Err(CommitError::new(format!("the store panicked: {panic}")))
    })
}

/// The error for a file that lacks all commits that were not synced.
fn lost() -> CommitError {
    CommitError::new(
        "the disk failed before the first changes of the cluster were on it: restart the cluster",
    )
}

/// Properties of a file that reveal changes by other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    /// The device and the inode.
    identity: (u64, u64),
    bytes: u64,
}

impl FileState {
    fn of(file: &std::fs::Metadata) -> Self {
        Self {
            identity: (file.dev(), file.ino()),
            bytes: file.len(),
        }
    }
}

fn unusable(error: &io::Error) -> CommitError {
    let full = [
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
        ErrorKind::FileTooLarge,
    ];
    CommitError {
        problem: error.to_string(),
        is_full: full.contains(&error.kind()),
    }
}

fn failed(error: redb::Error) -> CommitError {
    match error {
        redb::Error::Io(error) => unusable(&error),
        redb::Error::PreviousIo => CommitError::new("an I/O error of the file"),
        error => CommitError::new(error.to_string()),
    }
}
