//! The handle of the engine: reads use the published state, writes go through
//! the queue of the writer.

mod definitions;
mod reads;
mod turns;
mod writes;

use std::{sync::Arc, thread::JoinHandle};

use arc_swap::ArcSwap;
use longshore_model::KindInfo;
use tokio::sync::{Semaphore, mpsc};

use crate::{
    CustomKind, Error, OpenError, Options, Snapshot, Storage, Written,
    journal::{Journal, NoJournal},
    kinds::Kinds,
    loader::Loader,
    machine::{self, Machine},
    offload::MAX_OFFLOADED,
    options::{Clock, Ids},
    state::{Limits, State},
    store::Store,
    store_recovery::RecoveringStore,
    view::View,
    writer::{self, MaxDuration, QueuedWrite, Shared},
};

/// The API machinery: objects, validation and history. Cheap to clone. Dropping
/// the last clone stops the writer and closes the store.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// A kind in a version in which it is served.
#[derive(Debug, Clone)]
pub struct Served {
    /// The kind.
    pub info: Arc<KindInfo>,
    /// The compiled definition, if this is a custom kind.
    pub custom: Option<Arc<CustomKind>>,
}

impl Served {
    fn of(view: &Arc<View>) -> Self {
        Self {
            info: view.info.clone(),
            custom: view.custom_kind().cloned(),
        }
    }
}

struct Inner {
    shared: Arc<Shared>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    queue: Option<mpsc::Sender<QueuedWrite>>,
    writer: Option<JoinHandle<()>>,
    /// Size limit, in bytes, of writes that the writer executes itself.
    inline_limit: usize,
    /// True if the state is stored in a file.
    is_durable: bool,
    /// Limits the number of writes that run outside the writer.
    offload_slots: Semaphore,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Closing the queue stops the writer. Joining the thread guarantees
        // that the store's file is unlocked when this returns.
        self.queue = None;
        if let Some(writer) = self.writer.take()
            && writer.thread().id() != std::thread::current().id()
            && writer.join().is_err()
        {
            tracing::error!("the writer thread panicked");
        }
    }
}

impl Engine {
    /// Opens the storage. A new store gets the namespaces that every cluster has.
    ///
    /// # Errors
    /// Returns an error if the file is in use, has another format version, or
    /// cannot be read or written.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let (journal, state): (Box<dyn Journal>, State) = match &options.storage {
            Storage::Memory => (Box::new(NoJournal), State::new(Kinds::builtin(), 0)),
            Storage::File(path) => {
                let mut loader = Loader::default();
                let (store, revision) =
                    Store::open(path, &mut |kind, key, json| loader.add(kind, key, json))?;
                (
                    Box::new(RecoveringStore::new(
                        path,
                        store,
                        revision,
                        options.defer_sync,
                    )),
                    loader.finish(revision)?,
                )
            }
        };
        Self::start(options, journal, state)
    }

    /// Opens an engine in memory that begins with the objects and kinds of a
    /// snapshot. `options.storage` has no effect. Takes the same time for any
    /// number of objects.
    ///
    /// # Errors
    /// The writer thread cannot be started.
    pub fn open_at(snapshot: &Snapshot, mut options: Options) -> Result<Self, OpenError> {
        options.storage = Storage::Memory;
        Self::start(options, Box::new(NoJournal), snapshot.detached())
    }

    fn start(
        options: Options,
        mut journal: Box<dyn Journal>,
        mut state: State,
    ) -> Result<Self, OpenError> {
        state.creates_accounts = options.default_accounts;
        let limits = Limits {
            events: options.history,
            bytes: options.history_bytes,
            time: options.history_time,
        };
        let (ids, inline_limit) = (options.ids.clone(), options.inline_limit);
        let clock = options.clock.clone();
        let mut machine = Machine::new(state, options.clock, options.ids, limits);
        machine::bootstrap(&mut machine).map_err(|error| match &options.storage {
            Storage::File(path) => OpenError::Storage {
                path: path.clone(),
                problem: error.to_string(),
            },
            Storage::Memory => OpenError::Corrupt {
                key: "namespaces".into(),
                problem: error.to_string(),
            },
        })?;
        let changes = machine.take_changes();
        if let (Storage::File(path), false) = (&options.storage, changes.records.is_empty()) {
            journal
                .commit(machine.state.revision, &changes.records)
                .map_err(|error| OpenError::Storage {
                    path: path.clone(),
                    problem: error.problem,
                })?;
        }
        let shared = Arc::new(Shared {
            current: ArcSwap::from_pointee(machine.state.clone()),
            longest_hold: MaxDuration::default(),
        });
        let is_durable = matches!(options.storage, Storage::File(_));
        let (queue, jobs) = mpsc::channel(writer::QUEUE_CAPACITY);
        let for_writer = shared.clone();
        let writer = std::thread::Builder::new()
            .name("longshore-writer".into())
            .spawn(move || writer::run(jobs, machine, journal, &for_writer))
            .map_err(OpenError::Thread)?;
        let inner = Inner {
            shared,
            ids,
            clock,
            queue: Some(queue),
            writer: Some(writer),
            inline_limit,
            is_durable,
            offload_slots: Semaphore::new(MAX_OFFLOADED),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.inner.shared.current.load_full()
    }

    /// The kinds that are served.
    #[must_use]
    pub fn kinds(&self) -> Vec<Arc<KindInfo>> {
        let state = self.state();
        state.kinds.views().map(|view| view.info.clone()).collect()
    }

    /// Finds a kind by its position in the API.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<KindInfo>> {
        self.served_at(group, version, plural)
            .map(|served| served.info)
    }

    /// Finds a kind by its position in the API, with its compiled definition.
    #[must_use]
    pub fn served_at(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        self.state()
            .kinds
            .find(group, version, plural)
            .map(Served::of)
    }

    /// All served kinds and versions.
    #[must_use]
    pub fn served(&self) -> Vec<Served> {
        self.state().kinds.views().map(Served::of).collect()
    }

    /// A counter that grows with every change of the served kinds.
    #[must_use]
    pub fn kinds_epoch(&self) -> u64 {
        self.state().kinds.epoch()
    }

    pub(crate) fn view(&self, kind: &KindInfo) -> Result<Arc<View>, Error> {
        let state = self.state();
        Ok(state.kinds.resolve(kind)?.1.clone())
    }

    /// Returns a written object in the requested version. The definition may
    /// have changed while the request was queued.
    pub(crate) fn presented(&self, view: &Arc<View>, written: Written) -> Written {
        let now = self.view(&view.info);
        Written {
            object: now.as_ref().unwrap_or(view).present(&written.object),
            ..written
        }
    }

    /// The current time of the engine's clock, which timestamps objects.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        self.inner.clock.now()
    }

    /// The clock that the cluster shares; `None` if the engine uses another clock.
    pub(crate) fn shared(&self) -> Option<&longshore_clock::Clock> {
        self.inner.clock.shared()
    }

    /// Removes the Events that have expired. Otherwise, writes of Events trigger this.
    pub(crate) async fn remove_expired_events(&self) {
        let removed = self.submit(false, |tx| {
            tx.expire_events();
            Ok(())
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "cannot remove expired Events");
        }
    }

    /// Returns a snapshot of all objects and kinds. Takes microseconds for any
    /// number of objects.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.state())
    }

    /// Returns to a snapshot of this engine or another one. The revision grows,
    /// and all watches and list pages expire, so that clients list again.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if the engine stores its state in a file.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        if self.inner.is_durable {
            return Err(Error::BadRequest(
                "only a cluster that keeps its objects in memory returns to a snapshot".into(),
            ));
        }
        let snapshot = snapshot.clone();
        self.submit(false, move |tx| {
            tx.restore(&snapshot);
            Ok(())
        })
        .await
    }

    /// Drops the history: lists and watches at older revisions expire.
    pub async fn expire_history(&self) {
        let dropped = self.submit(false, |tx| {
            tx.expire();
            Ok(())
        });
        if let Err(error) = dropped.await {
            tracing::warn!(%error, "cannot drop the history");
        }
    }

    pub(crate) fn ids(&self) -> Arc<dyn Ids> {
        self.inner.ids.clone()
    }
}
