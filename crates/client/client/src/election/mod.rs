//! Leader election with a Lease: one of several processes leads. The protocol is the same as in
//! client-go's `leaderelection`, so programs that use either library can compete for the same
//! Lease.

mod options;
mod record;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout_at},
};

pub use options::ElectionOptions;
use record::Observed;

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    item::Item,
    kinds::Lease,
    view::View,
};

/// The leadership of this process. It is renewed in the background until it is resigned or
/// lost. If it is dropped, the Lease expires, and another process leads after
/// [`ElectionOptions::lease_duration`].
#[derive(Debug)]
pub struct Leadership {
    /// The leadership ends at this time unless it is renewed; `None` after it has ended.
    until: watch::Receiver<Option<Instant>>,
    /// Ends the renewal and releases the Lease if the value is sent.
    resign: Option<oneshot::Sender<()>>,
    renewal: JoinHandle<Result<()>>,
}

impl Cluster {
    /// Waits until this process leads: until it holds the Lease `name`, which is created if it
    /// does not exist.
    ///
    /// A process that stops, or cannot reach the server, loses the leadership before another
    /// process can get it, if the clocks of both run at the same speed. The clocks' times need
    /// not agree.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options that contradict each other, and errors for which waiting does
    /// not help, such as a missing permission. Other errors are logged, and the function tries
    /// again.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::ElectionOptions;
    ///
    /// let leadership = cluster
    ///     .lead("default", "painter", ElectionOptions::new("process-1"))
    ///     .await?;
    /// assert!(leadership.is_leading());
    /// // A loop of work ends when the leadership is lost:
    /// tokio::select! {
    ///     () = leadership.lost() => println!("another process leads"),
    ///     () = async { /* work */ } => {}
    /// }
    /// leadership.resign().await?;
    /// # Ok(()) });
    /// ```
    pub async fn lead(
        &self,
        namespace: &str,
        name: &str,
        options: ElectionOptions,
    ) -> Result<Leadership> {
        options.check()?;
        let mut elector = Elector {
            leases: self.leases().in_namespace(namespace)?,
            name: name.to_owned(),
            options,
            observed: None,
        };
        loop {
            // Other candidates count from the time at which they see the Lease, which may be before
            // the response.
            let deadline = Instant::now() + elector.options.renew_deadline;
            match timeout_at(deadline, elector.attempt()).await {
                Ok(Ok(true)) => return Ok(elector.start(deadline)),
                Ok(Ok(false)) => {}
                Err(_) => tracing::info!(name, "the server is too slow to acquire the lease"),
                Ok(Err(error)) if is_permanent(&error) => return Err(error),
                Ok(Err(error)) => tracing::info!(%error, name, "cannot acquire the lease"),
            }
            // Processes that started together do not stay together.
            sleep(
                elector
                    .options
                    .retry_interval
                    .mul_f64(1.0 + fastrand::f64() * 0.2),
            )
            .await;
        }
    }
}

/// Errors that remain if the same request is sent again.
fn is_permanent(error: &Error) -> bool {
    let is_refused = error.is_forbidden() || error.is_unauthorized() || error.is_not_found();
    is_refused || matches!(error, Error::Invalid(_) | Error::Config(_) | Error::Closed)
}

impl Leadership {
    /// Returns true if this process leads.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        // The renewal may be late: its thread may be blocked.
        self.until
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Waits until this process no longer leads.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut until = self.until.clone();
        async move {
            // The sender is dropped when the renewal ends.
            let _ = until.wait_for(Option::is_none).await;
        }
    }

    /// Releases the Lease, so that another process can lead at once.
    ///
    /// # Errors
    /// The server cannot be reached. The Lease then expires.
    pub async fn resign(mut self) -> Result<()> {
        if let Some(resign) = self.resign.take() {
            let _ = resign.send(());
        }
        match (&mut self.renewal).await {
            Ok(result) => result,
            // The task was cancelled with its runtime.
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// A process that leads or tries to become the leader.
struct Elector {
    leases: View<Lease>,
    name: String,
    options: ElectionOptions,
    /// The Lease as last read.
    observed: Option<Observed>,
}

impl Elector {
    /// Acquires or renews the Lease. Returns true if this process holds it.
    async fn attempt(&mut self) -> Result<bool> {
        let Some(item) = self.leases.find(&self.name).await? else {
            let spec = record::acquired(None, &self.options, jiff::Timestamp::now());
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.name},
                "spec": spec,
            });
            return lost_race(self.leases.create(&lease).await);
        };
        let now = Instant::now();
        let observed = Observed::new(&item, self.observed.take(), now);
        let may = observed.may_be_taken(&self.options.identity, now);
        self.observed = Some(observed);
        if !may {
            return Ok(false);
        }
        let mut lease = item.raw()?;
        lease["spec"] =
            record::acquired(Some(&lease["spec"]), &self.options, jiff::Timestamp::now());
        self.replace(&lease).await
    }

    /// Replaces the version that was read, and no newer one.
    async fn replace(&self, lease: &Value) -> Result<bool> {
        lost_race(self.leases.replace(&self.name, lease).await)
    }

    fn start(self, deadline: Instant) -> Leadership {
        let (until, receiver) = watch::channel(Some(deadline));
        let (resign, resigned) = oneshot::channel();
        let renewal = tokio::spawn(self.renew(deadline, until, resigned));
        Leadership {
            until: receiver,
            resign: Some(resign),
            renewal,
        }
    }

    async fn renew(
        mut self,
        mut deadline: Instant,
        until: watch::Sender<Option<Instant>>,
        mut resigned: oneshot::Receiver<()>,
    ) -> Result<()> {
        loop {
            let next = Instant::now() + self.options.retry_interval;
            tokio::select! {
                signal = &mut resigned => {
                    until.send_replace(None);
                    return match signal {
                        Ok(()) => self.release().await,
                        Err(_) => Ok(()),
                    };
                }
                () = sleep_until(next.min(deadline)) => {}
            }
            // Other candidates count from the time at which they see the renewal, which is later.
            let begin = Instant::now();
            match timeout_at(deadline, self.attempt()).await {
                Ok(Ok(true)) => {
                    deadline = begin + self.options.renew_deadline;
                    until.send_replace(Some(deadline));
                }
                // After a conflict, the next attempt sees who holds the Lease.
                Ok(Ok(false)) if !self.is_held_by_another() => {}
                Ok(Ok(false)) | Err(_) => break,
                Ok(Err(error)) => {
                    tracing::info!(%error, name = self.name, "cannot renew the lease")
                }
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        until.send_replace(None);
        Ok(())
    }

    fn is_held_by_another(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|observed| observed.is_of_another(&self.options.identity))
    }

    /// Empties the Lease if this process still holds it.
    async fn release(mut self) -> Result<()> {
        let Some(item) = self.leases.find(&self.name).await? else {
            return Ok(());
        };
        let observed = Observed::new(&item, self.observed.take(), Instant::now());
        if observed.is_of_another(&self.options.identity) {
            return Ok(());
        }
        let mut lease = item.raw()?;
        lease["spec"] = record::released(&lease["spec"], jiff::Timestamp::now());
        self.replace(&lease).await.map(drop)
    }
}

/// Another process was faster.
fn lost_race(result: Result<Item<Lease>>) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() || error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The duration of the lease of a process that has resigned, as in client-go.
const RELEASED: Duration = Duration::from_secs(1);
