//! Certificates of a pod. For each source `podCertificate` of its volumes, the node generates a
//! key, requests a certificate from the source's signer, and renews it, as the kubelet does.

mod key;
mod request;
mod state;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCertificateProjection};
use longshore_client::{Cluster, Error};
use parking_lot::Mutex;

use crate::{events::Note, pod_threads, tokens::account};
use key::KeyError;
use request::Requester;
pub(crate) use state::{CertificateError, Credentials};
use state::{Pending, State};

/// The maximum random delay of requests, so that the pods of a cluster do not send them at the same
/// time.
const MAX_DELAY_SECONDS: i64 = 5 * 60;
/// The maximum time between checks of the clock, because timers stop while the machine is
/// suspended.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The delays after a request that failed.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(20);

/// A source in a volume: the volume's name, and the index of the source.
pub(crate) type SourceKey = (String, usize);

/// The certificates of a pod's volumes, or the reasons why they are missing.
pub(crate) type Certificates = BTreeMap<SourceKey, Result<Credentials, CertificateError>>;

/// The reason why a certificate cannot be requested.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the generation of the key was interrupted")]
    Interrupted,
    #[error(transparent)]
    Api(#[from] Error),
}

/// The result of a step.
#[derive(Debug, Default)]
struct Progress {
    /// True if credentials were issued or refused.
    has_changed: bool,
    notes: Vec<Note>,
    /// True if a request failed.
    has_failed: bool,
}

/// The certificates of one pod.
#[derive(Debug)]
pub(crate) struct PodCertificates {
    requester: Requester,
    sources: BTreeMap<SourceKey, PodCertificateProjection>,
    states: Mutex<BTreeMap<SourceKey, State>>,
}

/// The sources of certificates of a pod's volumes.
fn sources(pod: &Pod) -> BTreeMap<SourceKey, PodCertificateProjection> {
    let spec = pod.spec.iter();
    let mut found = BTreeMap::new();
    for volume in spec.flat_map(|spec| spec.volumes.iter().flatten()) {
        let projected = volume.projected.iter();
        let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
        for (index, source) in sources.enumerate() {
            if let Some(source) = &source.pod_certificate {
                found.insert((volume.name.clone(), index), source.clone());
            }
        }
    }
    found
}

fn random_delay() -> SignedDuration {
    SignedDuration::from_secs(rand::random_range(0..MAX_DELAY_SECONDS))
}

impl PodCertificates {
    /// Returns the certificates of a pod on a node, or `None` if its volumes have none.
    pub(crate) fn new(cluster: Cluster, node: &str, pod: &Pod) -> Option<Self> {
        let sources = sources(pod);
        let metadata = &pod.metadata;
        if sources.is_empty() {
            return None;
        }
        let states = sources.keys().map(|key| (key.clone(), State::Initial));
        Some(Self {
            states: Mutex::new(states.collect()),
            requester: Requester {
                cluster,
                node: node.to_owned(),
                namespace: metadata.namespace.clone().unwrap_or_default(),
                pod: metadata.name.clone().unwrap_or_default(),
                uid: metadata.uid.clone().unwrap_or_default(),
                account: account(pod).to_owned(),
            },
            sources,
        })
    }

    /// Returns the current certificates.
    pub(crate) fn current(&self) -> Certificates {
        let states = self.states.lock();
        let all = states.iter();
        all.map(|(key, state)| (key.clone(), state.credentials()))
            .collect()
    }

    /// Requests and renews the certificates. Reports events to `note`, and calls `changed` after
    /// changes, until `changed` returns false because its receiver was dropped.
    pub(crate) async fn follow<F: Future<Output = bool>>(
        &self,
        note: impl Fn(Note),
        changed: impl Fn() -> F,
    ) {
        let mut delay = Duration::ZERO;
        loop {
            // The watch starts first, so that it reports requests that are created later.
            let mut watch = match self.requester.own() {
                Ok(view) => view.watch().await.ok(),
                Err(_) => None,
            };
            loop {
                let progress = self.step(Timestamp::now(), random_delay).await;
                progress.notes.into_iter().for_each(&note);
                if progress.has_changed && !changed().await {
                    return;
                }
                delay = match progress.has_failed || watch.is_none() {
                    true => (delay * 2).clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY),
                    false => Duration::ZERO,
                };
                let wait = match delay {
                    Duration::ZERO => self.time_to_request(Timestamp::now()),
                    delay => delay,
                };
                let Some(open) = &mut watch else {
                    tokio::time::sleep(wait).await;
                    break;
                };
                tokio::select! {
                    event = open.next(None) => if event.is_err() {
                        tokio::time::sleep(MIN_RETRY_DELAY).await;
                        break;
                    },
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }

    /// Returns the time until the next certificate must be requested, or until the clock is
    /// checked.
    fn time_to_request(&self, now: Timestamp) -> Duration {
        let states = self.states.lock();
        let next = states.values().filter_map(State::next_request).min();
        let wait = next.map(|next| Duration::try_from(next.duration_since(now)));
        match wait {
            Some(wait) => wait.unwrap_or_default().min(CLOCK_CHECK_INTERVAL),
            None => CLOCK_CHECK_INTERVAL,
        }
    }

    /// Executes the requests that are due.
    async fn step(&self, now: Timestamp, delay: impl Fn() -> SignedDuration) -> Progress {
        let mut progress = Progress::default();
        for (key, source) in &self.sources {
            if let Err(error) = self.step_of(key, source, now, &delay, &mut progress).await {
                let (pod, volume) = (&self.requester.pod, &key.0);
                tracing::warn!(pod, volume, %error, "cannot request a certificate");
                progress.has_failed = true;
            }
        }
        progress
    }

    async fn step_of(
        &self,
        key: &SourceKey,
        source: &PodCertificateProjection,
        now: Timestamp,
        delay: impl Fn() -> SignedDuration,
        progress: &mut Progress,
    ) -> Result<(), RequestError> {
        let pending = self.with(key, |state| state.pending().map(|one| one.name.clone()));
        if let Some(name) = pending.flatten() {
            let outcome = self.requester.outcome(&name).await?;
            let namespace = &self.requester.namespace;
            self.with(key, |state| {
                let before = state.credentials();
                let note = state.decide(outcome, namespace, now, delay());
                progress.notes.extend(note);
                progress.has_changed |= before != state.credentials();
            });
        }
        self.with(key, |state| progress.notes.extend(state.overdue(now)));
        if self.with(key, |state| state.is_request_due(now)) != Some(true) {
            return Ok(());
        }
        let kind = source.key_type.clone();
        let generated = pod_threads::run(move || key::generate(&kind)).await;
        let generated = generated.map_err(|_| RequestError::Interrupted)??;
        let (name, created) = self.requester.create(source, &generated.request).await?;
        let pending = Pending::new(name, generated.private, created, delay());
        self.with(key, |state| state.requested(pending));
        Ok(())
    }

    /// Calls a function with the state of a source.
    fn with<T>(&self, key: &SourceKey, then: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.states.lock().get_mut(key).map(then)
    }
}
