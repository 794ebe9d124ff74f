//! The loop: watches claims and volumes, makes and removes directories.

use std::{collections::HashSet, io, path::PathBuf, sync::Arc, time::Duration};

use futures::future;
use longshore_client::{Change, Cluster, DeleteOptions, Error, Patch, View, kinds::Any};
use parking_lot::Mutex;
use serde_json::json;

use super::{
    super::{
        facts::{ClaimFacts, ClassFacts, VolumeFacts},
        store::Store,
        subject::{claim_subject, volume_subject},
    },
    LocalVolumes, PROVISIONER_NAME, folder, objects,
    plan::{Action, claim_action, is_to_be_removed},
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity},
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The provisioner's name in the log.
const NAME: &str = "local volumes";
/// The number of workers.
const WORKERS: usize = 2;
/// The delay before a removal is tried again while another one runs. A removal can take long, so
/// the other worker stays available for new volumes.
const REMOVAL_RETRY: Duration = Duration::from_millis(50);

/// A claim, a volume, or the directory of a deleted volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    Claim(Key),
    Volume(String),
    Folder(PathBuf),
}

struct Provisioner {
    local: LocalVolumes,
    claims: View<Any>,
    volumes: View<Any>,
    events: Recorder,
    store: Mutex<Store>,
    queue: Queue<Work>,
    /// The UIDs of claims whose refusal has been reported.
    refused: Mutex<HashSet<String>>,
    /// Held while a directory is being removed.
    removal: tokio::sync::Mutex<()>,
}

/// Runs the provisioner until its cluster is closed.
pub(crate) async fn run(
    cluster: Cluster,
    caches: Arc<Caches>,
    events: Recorder,
    local: LocalVolumes,
) {
    let kinds = (
        caches.of("", "PersistentVolumeClaim"),
        caches.of("", "PersistentVolume"),
        caches.of("storage.k8s.io", "StorageClass"),
    );
    let (Some((claim, claims)), Some((volume, volumes)), Some((_, classes))) = kinds else {
        return;
    };
    let provisioner = Provisioner {
        claims: cluster.view_of::<Any>(claim.clone()),
        volumes: cluster.view_of::<Any>(volume.clone()),
        events: events.named(PROVISIONER_NAME),
        local,
        store: Mutex::default(),
        queue: Queue::new(&caches.clock),
        refused: Mutex::default(),
        removal: tokio::sync::Mutex::default(),
    };
    let classes = feed(NAME, classes, |_, change| provisioner.put_class(change));
    let volumes = feed(NAME, volumes, |_, change| provisioner.put_volume(change));
    let claims = feed(NAME, claims, |key, change| {
        provisioner.put_claim(key, change)
    });
    let feeds = future::join3(classes, volumes, claims);
    let reconcile = |work| provisioner.reconcile(work);
    reconcile::run(NAME, WORKERS, &provisioner.queue, feeds, reconcile).await;
}

impl Provisioner {
    fn put_class(&self, change: &Change<Any>) {
        let mut store = self.store.lock();
        match change {
            Change::Upsert(item) => match ClassFacts::of(item) {
                Ok(class) => {
                    store.put_class(class);
                }
                Err(error) => tracing::warn!(class = item.name(), %error, "cannot read a class"),
            },
            Change::Gone(item) => store.remove_class(item.name()),
        }
        for claim in store.unbound_claims() {
            self.queue.add(Work::Claim(claim));
        }
    }

    fn put_claim(&self, key: Key, change: &Change<Any>) {
        let mut store = self.store.lock();
        match change {
            Change::Upsert(item) => match ClaimFacts::of(item) {
                Ok(claim) => store.put_claim(claim),
                Err(error) => tracing::warn!(?key, %error, "cannot read a claim"),
            },
            Change::Gone(item) => {
                store.remove_claim(&key, item.uid());
                self.refused.lock().remove(item.uid());
            }
        }
        self.queue.add(Work::Claim(key));
    }

    fn put_volume(&self, change: &Change<Any>) {
        let mut store = self.store.lock();
        let name = change.item().name().to_owned();
        match change {
            Change::Upsert(item) => match VolumeFacts::of(item) {
                Ok(volume) => {
                    if is_to_be_removed(&volume) {
                        self.queue.add(Work::Volume(name));
                    }
                    // A claim may have been expanded before its volume was known.
                    if let Some(reference) = &volume.claim {
                        self.queue.add(Work::Claim(reference.key.clone()));
                    }
                    store.put_volume(volume);
                }
                Err(error) => tracing::warn!(volume = name, %error, "cannot read a volume"),
            },
            Change::Gone(item) => {
                // A user may have deleted the object before it was released.
                let volume = store
                    .volume(&name)
                    .filter(|volume| is_to_be_removed(volume));
                if let Some(path) = volume.and_then(|volume| self.folder_of(volume)) {
                    self.queue.add(Work::Folder(path));
                }
                store.remove_volume(&name, item.uid());
            }
        }
    }

    /// Returns the directory of a volume if this provisioner made it.
    fn folder_of(&self, volume: &VolumeFacts) -> Option<PathBuf> {
        let path = folder::of_volume(&self.local.folder, &volume.name)?;
        let own = volume.local_path.as_ref().map(PathBuf::from);
        (own.as_ref() == Some(&path)).then_some(path)
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        match work {
            Work::Claim(key) => self.reconcile_claim(&key).await?,
            Work::Volume(name) => {
                let Ok(_only) = self.removal.try_lock() else {
                    return Ok(Next::Retry(REMOVAL_RETRY));
                };
                self.remove(&name).await?;
            }
            Work::Folder(path) => {
                let Ok(_only) = self.removal.try_lock() else {
                    return Ok(Next::Retry(REMOVAL_RETRY));
                };
                let removed = blocking(move || longshore_files::remove_tree(&path)).await;
                removed.map_err(|error| Error::Invalid(error.to_string()))?;
            }
        }
        Ok(Next::Done)
    }

    async fn reconcile_claim(&self, key: &Key) -> Result<(), Error> {
        let (claim, action) = {
            let store = self.store.lock();
            let Some(claim) = store.claim(key).cloned() else {
                return Ok(());
            };
            let action = claim_action(&claim, &store, &self.local.nodes);
            (claim, action)
        };
        match action {
            Action::Nothing => Ok(()),
            Action::Provision(class) => self.provision(&claim, &class).await,
            Action::Expand(volume) => self.expand(&claim, &volume).await,
            Action::Refuse(message) => {
                if self.refused.lock().insert(claim.uid.clone()) {
                    self.note(&claim, Severity::Warning, "ProvisioningFailed", &message);
                }
                Ok(())
            }
        }
    }

    async fn provision(&self, claim: &ClaimFacts, class: &ClassFacts) -> Result<(), Error> {
        let name = objects::volume_name(claim);
        if self.store.lock().volume(&name).is_some() {
            return Ok(());
        }
        let Key {
            namespace,
            name: of,
        } = &claim.key;
        let message =
            format!("External provisioner is provisioning volume for claim \"{namespace}/{of}\"");
        self.note(claim, Severity::Normal, "Provisioning", &message);
        let failed = |problem: String| {
            let message = format!(
                "failed to provision volume with StorageClass {:?}: {problem}",
                class.name
            );
            self.note(claim, Severity::Warning, "ProvisioningFailed", &message);
            Error::Invalid(message)
        };
        let path = folder::of_volume(&self.local.folder, &name)
            .ok_or_else(|| failed(format!("invalid name {name:?}")))?;
        let (parent, made) = (self.local.folder.clone(), path.clone());
        let made = blocking(move || {
            folder::create_parent(&parent)?;
            folder::create(&made)
        });
        made.await
            .map_err(|error| failed(format!("directory {}: {error}", path.display())))?;
        let volume = objects::volume(claim, class, &path, &self.local.nodes);
        match self.volumes.create(&volume).await {
            Ok(item) => {
                self.store.lock().put_volume(VolumeFacts::of(&item)?);
                let message = format!("Successfully provisioned volume {name}");
                self.note(claim, Severity::Normal, "ProvisioningSucceeded", &message);
                Ok(())
            }
            Err(error) if error.is_already_exists() => Ok(()),
            Err(error) => Err(failed(crate::refusal::message(&error))),
        }
    }

    /// Sets the sizes of the volume and the claim. The directory itself has no size limit.
    async fn expand(&self, claim: &ClaimFacts, volume: &VolumeFacts) -> Result<(), Error> {
        let size = json!({"storage": claim.size_text});
        if volume.size < claim.size {
            let message = format!("External resizer is resizing volume {}", volume.name);
            self.note(claim, Severity::Normal, "Resizing", &message);
            let patch = Patch::merge(json!({
                "metadata": {"uid": volume.uid}, "spec": {"capacity": size},
            }));
            self.volumes.patch(&volume.name, &patch).await?;
        }
        let patch = Patch::merge(json!({
            "metadata": {"uid": claim.uid, "resourceVersion": claim.version},
            "status": {"capacity": size},
        }));
        let view = self.claims.clone().in_namespace(&claim.key.namespace)?;
        view.patch_status(&claim.key.name, &patch).await?;
        let message = "Resize volume succeeded";
        self.note(claim, Severity::Normal, "VolumeResizeSuccessful", message);
        Ok(())
    }

    /// Removes the directory of a released volume, then the volume.
    async fn remove(&self, name: &str) -> Result<(), Error> {
        let volume = self.store.lock().volume(name).cloned();
        let Some(volume) = volume.filter(is_to_be_removed) else {
            return Ok(());
        };
        let removed = match self.folder_of(&volume) {
            Some(path) => {
                let shown = path.display().to_string();
                let removed = blocking(move || longshore_files::remove_tree(&path)).await;
                removed.map_err(|error| format!("cannot remove the directory {shown}: {error}"))
            }
            None => Err(format!(
                "its path is not in the directory {}, where this provisioner makes volumes",
                self.local.folder.display()
            )),
        };
        if let Err(message) = removed {
            let subject = volume_subject(&volume);
            self.events
                .record_event(subject, Severity::Warning, "VolumeFailedDelete", &message);
            return Err(Error::Invalid(message));
        }
        let options = DeleteOptions {
            uid: Some(volume.uid),
            ..DeleteOptions::default()
        };
        match self.volumes.delete(name, &options).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn note(&self, claim: &ClaimFacts, severity: Severity, reason: &str, message: &str) {
        self.events
            .record_event(claim_subject(claim), severity, reason, message);
    }
}

/// Runs file operations on a thread that may block.
async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}
