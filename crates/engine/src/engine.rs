//! The handle of the engine: reads use the published state, writes go through
//! the queue of the writer.

use std::{sync::Arc, thread::JoinHandle};

use arc_swap::ArcSwap;
use longshore_model::KindInfo;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{
    Bind, Create, CustomKind, Delete, DeleteCollection, Deleted, Error, Evict, ListRequest, Object,
    OpenError, Options, Page, Patch, ReadVersion, Snapshot, Storage, Subject, Subresource, Update,
    Watch, WatchRequest, Written,
    journal::{Journal, NoJournal},
    kinds::Kinds,
    list,
    loader::Loader,
    machine::{
        self, MAX_BYTES_PER_TURN, MAX_OBJECTS_PER_TURN, Machine, Prepared, Rebase, Reviews,
        RevisionShift, Transaction,
    },
    object,
    offload::{self, ListedObjects, MAX_ATTEMPTS, MAX_OFFLOADED, WriteCost},
    options::{Clock, Ids},
    state::{Limits, State, too_large},
    store::Store,
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

/// A kind in one of the versions in which it is served.
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
    /// Whether the state is stored in a file.
    is_durable: bool,
    /// Limits the number of writes that run outside the writer.
    offload_slots: Semaphore,
}

/// Splits objects into slices that the writer deletes in one turn each.
fn slices(objects: &[Arc<Object>]) -> impl Iterator<Item = &[Arc<Object>]> {
    let mut rest = objects;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |object: &&Arc<Object>| {
            let first = bytes == 0;
            bytes += object.bytes().len();
            first || bytes <= MAX_BYTES_PER_TURN
        };
        let count = rest
            .iter()
            .take(MAX_OBJECTS_PER_TURN)
            .take_while(fits)
            .count();
        let (slice, left) = rest.split_at(count);
        rest = left;
        (count > 0).then_some(slice)
    })
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
    /// Opens the storage. A new store gets the namespaces that every cluster
    /// has.
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
                (Box::new(store), loader.finish(revision)?)
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
                .map_err(|problem| OpenError::Storage {
                    path: path.clone(),
                    problem,
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

    /// Returns the `/scale` subresource of an object: a `Scale` of
    /// autoscaling/v1.
    ///
    /// # Errors
    /// As [`Engine::get`]; [`Error::NotFound`] for kinds without a scale.
    pub fn get_scale(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        name: &str,
        at: ReadVersion,
    ) -> Result<Arc<Object>, Error> {
        let view = self.view(kind)?;
        let object = self
            .stored(kind, namespace, name, at)
            .map_err(|error| match error {
                // For built-in kinds, the error names the subresource.
                Error::NotFound(subject) if view.custom_kind().is_none() => {
                    Error::NotFound(subject.subresource("scale"))
                }
                error => error,
            })?;
        machine::scale_of(&view, &object)
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

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.state().revision
    }

    /// Gets one object. An object of a definition with a conversion webhook is
    /// returned in the version in which it is stored, also by lists, watches and
    /// writes: the engine does not call webhooks.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::VersionTooLarge`] and [`Error::Expired`]
    /// if the requested version is not available.
    pub fn get(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        name: &str,
        at: ReadVersion,
    ) -> Result<Arc<Object>, Error> {
        let object = self.stored(kind, namespace, name, at)?;
        Ok(self.view(kind)?.present(&object))
    }

    fn stored(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        name: &str,
        at: ReadVersion,
    ) -> Result<Arc<Object>, Error> {
        let state = self.state();
        let id = state.kinds.id(kind)?;
        let key = object::key(namespace.filter(|_| kind.is_namespaced()), name);
        let missing = || Error::NotFound(Subject::new(kind, name));
        let object = match at {
            ReadVersion::AtLeast(asked) | ReadVersion::Exact(asked) if asked > state.revision => {
                return Err(too_large(asked, state.revision));
            }
            ReadVersion::Exact(asked) => state
                .at(id, asked)
                .ok_or_else(|| Error::Expired {
                    message: format!("The provided resource version is too old: {asked}"),
                    cursor: None,
                })?
                .get(&*key)
                .cloned(),
            _ => state.table(id).objects.get(&*key).cloned(),
        };
        object.ok_or_else(missing)
    }

    /// Lists a page of objects.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an unknown field in the selector or an invalid
    /// `continue` token; [`Error::Expired`], [`Error::VersionTooLarge`].
    pub fn list(&self, request: &ListRequest) -> Result<Page, Error> {
        Ok(self.listed(request)?.1)
    }

    /// The number of objects of a kind in all namespaces: an upper bound of
    /// what a list or the start of a watch has to scan.
    #[must_use]
    pub fn count(&self, kind: &KindInfo) -> usize {
        let state = self.state();
        let found = state.kinds.resolve(kind);
        found.map_or(0, |(id, _)| state.table(id).objects.len())
    }

    /// A number that grows with every change of an object of one of these kinds.
    /// It may also grow without a change.
    #[must_use]
    pub fn last_change(&self, kinds: &[Arc<KindInfo>]) -> u64 {
        let state = self.state();
        let ids = kinds.iter().filter_map(|kind| state.kinds.id(kind).ok());
        let changes = ids.map(|id| state.table(id).last_change());
        changes.max().unwrap_or_default()
    }

    /// Starts a watch.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an unknown field in the selector;
    /// [`Error::Expired`] if the start revision is compacted.
    pub fn watch(&self, request: &WatchRequest) -> Result<Watch, Error> {
        Watch::start(self.inner.shared.clone(), request)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// Returns the error of admission or validation.
    pub async fn create(&self, request: Create) -> Result<Written, Error> {
        let dry_run = request.options.dry_run;
        let view = self.view(&request.kind)?;
        let written = if request.is_large_request(self.inner.inline_limit) {
            self.prepare_and_commit(dry_run, request, |tx, request| {
                let draft = machine::admit(tx.state(), tx.ids(), request)?;
                machine::create(tx, draft)
            })
            .await?
        } else {
            // Everything that does not need the writer runs here, before the
            // write is queued.
            let draft = machine::admit(&self.state(), &*self.inner.ids, request)?;
            self.submit(dry_run, move |tx| machine::create(tx, draft))
                .await?
        };
        Ok(self.presented(&view, written))
    }

    /// Creates those of a few small objects that do not exist yet, in one
    /// transaction.
    ///
    /// # Errors
    /// Returns the error of admission or validation; no object is created then.
    pub async fn create_missing(&self, requests: Vec<Create>) -> Result<(), Error> {
        if requests.is_empty() {
            return Ok(());
        }
        let state = self.state();
        let drafts = requests
            .into_iter()
            .map(|request| machine::admit(&state, &*self.inner.ids, request));
        let drafts = drafts.collect::<Result<Vec<_>, _>>()?;
        self.submit(false, move |tx| {
            for draft in drafts {
                match machine::create(tx, draft) {
                    Ok(_) | Err(Error::AlreadyExists(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
        .await
    }

    /// Replaces an object or its status.
    ///
    /// # Errors
    /// Returns the error of the update rules or of validation.
    pub async fn update(&self, mut request: Update) -> Result<Written, Error> {
        let view = self.view(&request.target.kind)?;
        let scale = request.subresource == Subresource::Scale;
        let dry_run = request.options.dry_run;
        let written = if request.is_large_request(self.inner.inline_limit) {
            self.prepare_and_commit(dry_run, request, |tx, mut request| {
                let decoded = machine::decode_update(tx, &mut request)?;
                machine::update(tx, request, decoded)
            })
            .await?
        } else {
            let object = std::mem::take(&mut request.object);
            let validation = request.options.field_validation;
            let decoded = if scale {
                machine::scale_view().decode(object, validation)?
            } else {
                view.decode(object, validation)?
            };
            let read = machine::DecodedUpdate {
                request,
                decoded,
                view: view.clone(),
            };
            self.write(dry_run, read, machine::update_decoded).await?
        };
        Ok(if scale {
            written
        } else {
            self.presented(&view, written)
        })
    }

    /// Patches an object, its status or its scale.
    ///
    /// # Errors
    /// Returns an error if the patch cannot be applied, and every error of an
    /// update.
    pub async fn patch(&self, request: Patch) -> Result<Written, Error> {
        let view = self.view(&request.target.kind)?;
        let scale = request.subresource == Subresource::Scale;
        let dry_run = request.options.dry_run;
        let written = self.write(dry_run, request, machine::patch).await?;
        Ok(if scale {
            written
        } else {
            self.presented(&view, written)
        })
    }

    /// Deletes an object or marks it for deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], failed preconditions, protected namespaces.
    pub async fn delete(&self, request: Delete) -> Result<Deleted, Error> {
        let view = self.view(&request.target.kind)?;
        let dry_run = request.options.dry_run;
        let deleted = self
            .write(dry_run, request, |tx, request: Delete| {
                machine::delete(tx, &request.target, &request.options)
            })
            .await?;
        Ok(match deleted {
            Deleted::Gone(object) => Deleted::Gone(view.present(&object)),
            Deleted::Pending(object) => Deleted::Pending(view.present(&object)),
        })
    }

    /// Deletes all matching objects and returns their previous states. As in
    /// Kubernetes, other writes may be interleaved if there are many objects.
    ///
    /// # Errors
    /// As [`Engine::delete`]; some of the objects may already be deleted.
    pub async fn delete_collection(&self, request: DeleteCollection) -> Result<Page, Error> {
        let view = self.view(&request.list.kind)?;
        machine::check_options(&request.options)?;
        let dry_run = request.options.dry_run;
        let whole = request.clone();
        let few = self.submit(dry_run, move |tx| machine::delete_collection(tx, &whole));
        if let Some(mut page) = few.await? {
            for object in &mut page.items {
                *object = view.present(object);
            }
            return Ok(page);
        }
        let mut page = list::list(&self.state(), &request.list)?;
        for objects in slices(&page.items) {
            let listed = ListedObjects {
                kind: request.list.kind.clone(),
                objects: objects.to_vec(),
                options: request.options.clone(),
            };
            self.write(dry_run, listed, |tx, listed: ListedObjects| {
                machine::delete_listed(tx, &listed.kind, &listed.objects, &listed.options)
            })
            .await?;
        }
        for object in &mut page.items {
            *object = view.present(object);
        }
        Ok(page)
    }

    /// Assigns a pod to a node.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the pod is already assigned or is being deleted.
    pub async fn bind(&self, request: Bind) -> Result<(), Error> {
        self.write(request.dry_run, request, |tx, request: Bind| {
            machine::bind(tx, &request)
        })
        .await
    }

    /// Deletes a pod if its PodDisruptionBudget allows it.
    ///
    /// # Errors
    /// [`Error::TooManyDisruptions`] if the budget does not allow it;
    /// [`Error::SeveralBudgets`]; otherwise as [`Engine::delete`].
    pub async fn evict(&self, request: Evict) -> Result<(), Error> {
        self.write(request.options.dry_run, request, |tx, request: Evict| {
            machine::evict(tx, &request)
        })
        .await
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

    /// Returns how long the slowest write has blocked the writer since the last
    /// call, and resets the value. No other write proceeds during that time.
    #[allow(clippy::must_use_candidate, reason = "the call also resets the value")]
    pub fn longest_hold(&self) -> std::time::Duration {
        self.inner.shared.longest_hold.take()
    }

    /// Executes a write on the writer thread, or outside it if it may take
    /// long.
    async fn write<R, T>(
        &self,
        dry_run: bool,
        request: R,
        work: fn(&mut Transaction<'_>, R) -> Result<T, Error>,
    ) -> Result<T, Error>
    where
        R: WriteCost + Clone + Send + 'static,
        T: Rebase + Send + 'static,
    {
        let inline_limit = self.inner.inline_limit;
        if request.is_large_request(inline_limit)
            || request.affects_large_objects(&self.state(), inline_limit)
        {
            return self.prepare_and_commit(dry_run, request, work).await;
        }
        let done = self.submit(dry_run, move |tx| {
            // The objects may have grown since the first check.
            if request.affects_large_objects(tx.state(), inline_limit) {
                return Ok(Err(request));
            }
            work(tx, request).map(Ok)
        });
        match done.await? {
            Ok(done) => Ok(done),
            Err(request) => self.prepare_and_commit(dry_run, request, work).await,
        }
    }

    /// Prepares a write outside the writer thread and commits the result.
    async fn prepare_and_commit<R, T>(
        &self,
        dry_run: bool,
        request: R,
        work: fn(&mut Transaction<'_>, R) -> Result<T, Error>,
    ) -> Result<T, Error>
    where
        R: Clone + Send + 'static,
        T: Rebase + Send + 'static,
    {
        let closed = |_| Error::Storage("the engine is closed".to_owned());
        let _turn = self.inner.offload_slots.acquire().await.map_err(closed)?;
        for _ in 0..MAX_ATTEMPTS {
            let (clock, ids) = (self.inner.clock.clone(), self.inner.ids.clone());
            let request = request.clone();
            let work = move |tx: &mut Transaction<'_>| work(tx, request);
            let (done, prepared) = offload::prepare(
                State::clone(&self.state()),
                clock,
                ids,
                (dry_run, None),
                work,
            )
            .await?;
            if dry_run {
                return Ok(done);
            }
            if let Some(moved) = self.commit_prepared(prepared).await? {
                return Ok(done.rebased(moved));
            }
        }
        Err(Error::Conflict {
            subject: Subject::default(),
            reason: format!(
                "the object has been modified {MAX_ATTEMPTS} times while the change was made; please apply your changes to the latest version and try again"
            ),
        })
    }

    /// Commits a prepared write. Returns `None` if something that it read has
    /// changed since.
    pub(crate) async fn commit_prepared(
        &self,
        prepared: Prepared,
    ) -> Result<Option<RevisionShift>, Error> {
        // Keep a reference here so that the drop, which may be slow, does not
        // run on the writer thread.
        let prepared = Arc::new(prepared);
        let taken = prepared.clone();
        self.submit(false, move |tx| machine::commit(tx, &taken))
            .await
    }

    /// Prepares a reviewed write outside the writer thread.
    pub(crate) async fn prepare_aside<T: Send + 'static>(
        &self,
        (ids, clock): (Arc<dyn Ids>, Arc<dyn Clock>),
        dry_run: bool,
        reviews: Arc<Reviews>,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, Prepared), Error> {
        let closed = |_| Error::Storage("the engine is closed".to_owned());
        let _turn = self.inner.offload_slots.acquire().await.map_err(closed)?;
        let base = State::clone(&self.state());
        offload::prepare(base, clock, ids, (dry_run, Some(reviews)), work).await
    }

    pub(crate) fn ids(&self) -> Arc<dyn Ids> {
        self.inner.ids.clone()
    }

    /// Lists a page of objects as stored, and as presented.
    pub(crate) fn listed(&self, request: &ListRequest) -> Result<(Vec<Arc<Object>>, Page), Error> {
        let state = self.state();
        let mut page = list::list(&state, request)?;
        let (_, view) = state.kinds.resolve(&request.kind)?;
        let stored = page.items.clone();
        for object in &mut page.items {
            *object = view.present(object);
        }
        Ok((stored, page))
    }

    async fn submit<T: Send + 'static>(
        &self,
        dry_run: bool,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let closed = || Error::Storage("the engine is closed".to_owned());
        let (answer, answered) = oneshot::channel();
        let job: QueuedWrite = Box::new(move |machine| {
            let result = machine.execute(dry_run, work);
            Box::new(move |kept| {
                // The caller may have stopped waiting.
                let _ = answer.send(kept.and(result));
            })
        });
        self.inner
            .queue
            .as_ref()
            .ok_or_else(closed)?
            .send(job)
            .await
            .map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}
