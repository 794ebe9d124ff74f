//! The loop: watches claims, volumes and classes, and executes decisions.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future;
use longshore_client::{Change, Cluster, Error, kinds::Any};
use parking_lot::Mutex;

use super::{
    super::facts::{ClaimFacts, ClassFacts, VolumeFacts},
    plan::{ClaimAction, Note, Reclaim, VolumeAction, claim_action, reclaim, volume_action},
    requests::Requests,
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity},
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "persistent volumes";
/// The name of the controller in events.
const COMPONENT: &str = "persistentvolume-controller";
/// The number of workers.
const WORKERS: usize = 2;
/// The delay before a decision is repeated because another client has changed the object.
const CONFLICT_DELAY: Duration = Duration::from_millis(5);

/// A claim or a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    Claim(Key),
    Volume(String),
}

struct Controller {
    requests: Requests,
    queue: Queue<Work>,
    /// The last event about each unbound claim, with the claim's UID.
    noted: Mutex<HashMap<Key, (String, Note)>>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let kinds = (
        caches.of("", "PersistentVolumeClaim"),
        caches.of("", "PersistentVolume"),
        caches.of("storage.k8s.io", "StorageClass"),
    );
    let (Some((claim, claims)), Some((volume, volumes)), Some((_, classes))) = kinds else {
        return;
    };
    let controller = Controller {
        requests: Requests {
            claims: cluster.view_of::<Any>(claim.clone()),
            volumes: cluster.view_of::<Any>(volume.clone()),
            events: events.named(COMPONENT),
            store: Mutex::default(),
        },
        queue: Queue::new(&caches.clock),
        noted: Mutex::default(),
    };
    let classes = feed(NAME, classes, |_, change| controller.put_class(change));
    let volumes = feed(NAME, volumes, |_, change| controller.put_volume(change));
    let claims = feed(NAME, claims, |key, change| {
        controller.put_claim(key, change)
    });
    let feeds = future::join3(classes, volumes, claims);
    let reconcile = |work| controller.reconcile(work);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn put_class(&self, change: &Change<Any>) {
        let mut store = self.requests.store.lock();
        match change {
            Change::Upsert(item) => match ClassFacts::of(item) {
                Ok(class) => {
                    if !store.put_class(class) {
                        return;
                    }
                }
                Err(error) => tracing::warn!(class = item.name(), %error, "cannot read a class"),
            },
            Change::Gone(item) => store.remove_class(item.name()),
        }
        let unbound = store.unbound_claims();
        drop(store);
        self.add_claims(unbound);
    }

    fn add_claims(&self, claims: Vec<Key>) {
        for claim in claims {
            self.queue.add(Work::Claim(claim));
        }
    }

    fn put_volume(&self, change: &Change<Any>) {
        let mut store = self.requests.store.lock();
        let name = change.item().name().to_owned();
        let mut affected = Vec::new();
        let before = store.volume(&name).cloned();
        let after = match change {
            Change::Upsert(item) => match VolumeFacts::of(item) {
                Ok(volume) => {
                    store.put_volume(volume);
                    store.volume(&name).cloned()
                }
                Err(error) => {
                    tracing::warn!(volume = name, %error, "cannot read a volume");
                    return;
                }
            },
            Change::Gone(item) => {
                store.remove_volume(&name, item.uid());
                None
            }
        };
        for volume in [&before, &after].into_iter().flatten() {
            affected.extend(volume.claim.as_ref().map(|claim| claim.key.clone()));
        }
        // The volume may fit claims that wait for a volume or name this one. The response to a
        // request may already have made it available in the store.
        if after
            .as_ref()
            .is_some_and(|volume| volume.phase == "Available")
        {
            affected.extend(store.unbound_claims());
        }
        drop(store);
        self.add_claims(affected);
        self.queue.add(Work::Volume(name));
    }

    fn put_claim(&self, key: Key, change: &Change<Any>) {
        let mut store = self.requests.store.lock();
        match change {
            Change::Upsert(item) => match ClaimFacts::of(item) {
                Ok(claim) => store.put_claim(claim),
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a claim");
                    return;
                }
            },
            Change::Gone(item) => {
                store.remove_claim(&key, item.uid());
                self.noted.lock().remove(&key);
            }
        }
        let mut volumes = store.volumes_of(&key);
        volumes.extend(store.claim(&key).map(|claim| claim.volume.clone()));
        drop(store);
        for volume in volumes.into_iter().filter(|name| !name.is_empty()) {
            self.queue.add(Work::Volume(volume));
        }
        self.queue.add(Work::Claim(key));
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        let done = match work {
            Work::Claim(key) => self.reconcile_claim(&key).await,
            Work::Volume(name) => self.reconcile_volume(&name).await,
        };
        match done {
            Ok(()) => Ok(Next::Done),
            // The object was deleted. The watch will report it.
            Err(error) if error.is_not_found() => Ok(Next::Done),
            Err(error) if error.is_conflict() => Ok(Next::Retry(CONFLICT_DELAY)),
            Err(error) => Err(error),
        }
    }

    async fn reconcile_claim(&self, key: &Key) -> Result<(), Error> {
        let (claim, action, volume) = {
            let store = self.requests.store.lock();
            let Some(claim) = store.claim(key).cloned() else {
                return Ok(());
            };
            let action = claim_action(&claim, &store);
            let volume = match &action {
                ClaimAction::Bind(name) => store.volume(name).cloned(),
                _ => None,
            };
            (claim, action, volume)
        };
        match action {
            ClaimAction::Bind(_) => match volume {
                Some(volume) => self.requests.bind(volume, claim).await,
                None => Ok(()),
            },
            ClaimAction::SetClass(class) => self.requests.set_class(&claim, &class).await,
            ClaimAction::Wait(note) => {
                self.requests.set_unbound(&claim, "Pending").await?;
                if let Some(note) = note {
                    self.note_once(&claim, note);
                }
                Ok(())
            }
            ClaimAction::Provision(provisioner) => {
                self.requests.request_volume(&claim, &provisioner).await?;
                let message = format!(
                    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
                );
                self.note_once(
                    &claim,
                    Note::new(Severity::Normal, "ExternalProvisioning", message),
                );
                Ok(())
            }
            ClaimAction::Lose(note) => {
                if self.requests.set_unbound(&claim, "Lost").await? {
                    self.requests.note_claim(&claim, &note);
                }
                Ok(())
            }
        }
    }

    /// Records an event about a claim unless it equals the last event.
    fn note_once(&self, claim: &ClaimFacts, note: Note) {
        let entry = (claim.uid.clone(), note.clone());
        let last = self.noted.lock().insert(claim.key.clone(), entry.clone());
        if last.as_ref() != Some(&entry) {
            self.requests.note_claim(claim, &note);
        }
    }

    async fn reconcile_volume(&self, name: &str) -> Result<(), Error> {
        let requests = &self.requests;
        let (volume, claim) = {
            let store = requests.store.lock();
            let Some(volume) = store.volume(name).cloned() else {
                return Ok(());
            };
            let reference = volume.claim.as_ref();
            let claim = reference.and_then(|reference| store.claim(&reference.key));
            let claim = claim.cloned();
            (volume, claim)
        };
        match volume_action(&volume, claim.as_ref()) {
            VolumeAction::Phase(phase) => requests.set_phase(&volume, phase, "").await.map(drop),
            VolumeAction::Claim => {
                if let Some(claim) = claim {
                    self.queue.add(Work::Claim(claim.key));
                }
                Ok(())
            }
            VolumeAction::ModeMismatch => {
                let Some(claim) = claim else { return Ok(()) };
                let mismatch =
                    |message: String| Note::new(Severity::Warning, "VolumeMismatch", message);
                requests.note_volume(&volume, &mismatch(format!(
                    "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible volumeMode.",
                    claim.key.name
                )));
                requests.note_claim(&claim, &mismatch(format!(
                    "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible volumeMode.",
                    volume.name
                )));
                Ok(())
            }
            VolumeAction::Reclaim => self.reclaim(volume).await,
            VolumeAction::Unbind => requests.unbind(&volume).await,
        }
    }

    async fn reclaim(&self, volume: VolumeFacts) -> Result<(), Error> {
        let requests = &self.requests;
        let mut volume = volume;
        if !matches!(volume.phase.as_str(), "Released" | "Failed") {
            // The watch of claims may be late. A volume must not be released while its claim
            // exists.
            if self.claim_exists(&volume).await? {
                return Err(Error::Invalid(format!(
                    "the claim of volume {:?} is not known yet",
                    volume.name
                )));
            }
            volume = requests.set_phase(&volume, "Released", "").await?;
        }
        if let Reclaim::Fail(note) = reclaim(&volume)
            && volume.phase != "Failed"
        {
            let failed = requests.set_phase(&volume, "Failed", &note.message).await?;
            requests.note_volume(&failed, &note);
        }
        Ok(())
    }

    /// Returns true if the server has the volume's claim and it is not bound to another volume.
    async fn claim_exists(&self, volume: &VolumeFacts) -> Result<bool, Error> {
        let Some(reference) = &volume.claim else {
            return Ok(false);
        };
        let view = self.requests.claims.clone();
        let view = view.in_namespace(&reference.key.namespace)?;
        let Some(item) = view.find(&reference.key.name).await? else {
            return Ok(false);
        };
        let claim = ClaimFacts::of(&item)?;
        let is_bound_elsewhere = !claim.volume.is_empty() && claim.volume != volume.name;
        Ok(claim.uid == reference.uid && !is_bound_elsewhere)
    }
}
