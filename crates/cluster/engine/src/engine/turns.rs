//! The execution of writes: on the thread of the writer, or prepared outside of it and committed
//! there.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Engine;
use crate::{
    Error, Subject, machine, machine::Machine, machine::Prepared, machine::Rebase,
    machine::Reviews, machine::RevisionShift, machine::Transaction, offload, offload::MAX_ATTEMPTS,
    offload::WriteCost, options::Clock, options::Ids, state::State, writer::QueuedWrite,
};

impl Engine {
    /// Returns how long the slowest write has blocked the writer since the last call, and resets
    /// the value. Other writes cannot proceed during that time.
    #[allow(clippy::must_use_candidate, reason = "the call also resets the value")]
    pub fn longest_hold(&self) -> std::time::Duration {
        self.inner.shared.longest_hold.take()
    }

    /// Executes a write on the writer thread, or outside it if it may take
    /// long.
    pub(super) async fn write<R, T>(
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
    pub(super) async fn prepare_and_commit<R, T>(
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

    /// Commits a prepared write. Returns `None` if data that it read has changed since.
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

    pub(super) async fn submit<T: Send + 'static>(
        &self,
        dry_run: bool,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.enqueue(move |machine| machine.execute(dry_run, work))
            .await
    }

    /// Runs work on the writer thread; returns its result when the batch is stored.
    async fn enqueue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Machine) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let closed = || Error::Storage("the engine is closed".to_owned());
        let (answer, answered) = oneshot::channel();
        let job: QueuedWrite = Box::new(move |machine| {
            let result = work(machine);
            Box::new(move |kept| {
                // The receiver may have stopped waiting.
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

    /// Makes all writes durable that were acknowledged so far. From now on, each write is durable
    /// before it is acknowledged. See [`Options::defer_sync`](crate::Options::defer_sync).
    ///
    /// # Errors
    /// The writes cannot be stored.
    pub async fn sync(&self) -> Result<(), Error> {
        self.enqueue(|machine| {
            machine.sync();
            Ok(())
        })
        .await
    }
}
