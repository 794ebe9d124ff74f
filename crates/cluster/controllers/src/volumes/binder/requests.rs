//! The controller's requests. The store keeps the responses.

use longshore_client::{Error, Item, Patch, View, kinds::Any};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    super::{
        facts::{ClaimFacts, VolumeFacts},
        names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, OLD_PROVISIONER, PROVISIONER},
        store::Store,
        subject::{claim_subject, volume_subject},
    },
    plan::Note,
};
use crate::events::Recorder;

pub(crate) struct Requests {
    pub(crate) claims: View<Any>,
    pub(crate) volumes: View<Any>,
    pub(crate) events: Recorder,
    pub(crate) store: Mutex<Store>,
}

/// Returns the UID and resource version, which make a patch fail if the object has changed.
fn unchanged(uid: &str, version: &str) -> Value {
    json!({"uid": uid, "resourceVersion": version})
}

impl Requests {
    fn view_of(&self, claim: &ClaimFacts) -> Result<View<Any>, Error> {
        self.claims.clone().in_namespace(&claim.key.namespace)
    }

    fn keep_claim(&self, item: &Item<Any>) -> Result<ClaimFacts, Error> {
        let claim = ClaimFacts::of(item)?;
        self.store.lock().put_claim_response(claim.clone());
        Ok(claim)
    }

    fn keep_volume(&self, item: &Item<Any>) -> Result<VolumeFacts, Error> {
        let volume = VolumeFacts::of(item)?;
        self.store.lock().put_volume_response(volume.clone());
        Ok(volume)
    }

    async fn patch_claim(&self, claim: &ClaimFacts, mut patch: Value) -> Result<ClaimFacts, Error> {
        let metadata = unchanged(&claim.uid, &claim.version);
        merge_metadata(&mut patch, metadata);
        let view = self.view_of(claim)?;
        let item = view.patch(&claim.key.name, &Patch::merge(patch)).await?;
        self.keep_claim(&item)
    }

    async fn patch_claim_status(
        &self,
        claim: &ClaimFacts,
        status: Value,
    ) -> Result<ClaimFacts, Error> {
        let metadata = unchanged(&claim.uid, &claim.version);
        let patch = Patch::merge(json!({"metadata": metadata, "status": status}));
        let view = self.view_of(claim)?;
        let item = view.patch_status(&claim.key.name, &patch).await?;
        self.keep_claim(&item)
    }

    async fn patch_volume(
        &self,
        volume: &VolumeFacts,
        mut patch: Value,
    ) -> Result<VolumeFacts, Error> {
        merge_metadata(&mut patch, unchanged(&volume.uid, &volume.version));
        let patch = Patch::merge(patch);
        let item = self.volumes.patch(&volume.name, &patch).await?;
        self.keep_volume(&item)
    }

    /// Sets the phase of a volume if it differs.
    pub(crate) async fn set_phase(
        &self,
        volume: &VolumeFacts,
        phase: &str,
        message: &str,
    ) -> Result<VolumeFacts, Error> {
        if volume.phase == phase {
            return Ok(volume.clone());
        }
        let metadata = unchanged(&volume.uid, &volume.version);
        let message = Some(message).filter(|message| !message.is_empty());
        let patch = Patch::merge(
            json!({"metadata": metadata, "status": {"phase": phase, "message": message}}),
        );
        let item = self.volumes.patch_status(&volume.name, &patch).await?;
        self.keep_volume(&item)
    }

    /// Binds a claim and a volume to each other, or completes the binding. Skips the steps that are
    /// done.
    pub(crate) async fn bind(&self, volume: VolumeFacts, claim: ClaimFacts) -> Result<(), Error> {
        let mut volume = volume;
        let is_for_claim = volume.is_for(&claim);
        let reference = volume.claim.as_ref();
        if reference
            .is_none_or(|reference| reference.key != claim.key || reference.uid != claim.uid)
        {
            let mut patch = json!({"spec": {"claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": claim.key.namespace, "name": claim.key.name,
                "uid": claim.uid, "resourceVersion": claim.version,
            }}});
            if !is_for_claim {
                patch["metadata"] = json!({"annotations": {BOUND_BY_CONTROLLER: "yes"}});
            }
            volume = self.patch_volume(&volume, patch).await?;
        }
        let volume = self.set_phase(&volume, "Bound", "").await?;
        let mut claim = claim;
        let is_chosen = claim.volume != volume.name;
        if is_chosen || !claim.is_bind_completed() {
            let mut annotations = json!({BIND_COMPLETED: "yes"});
            let mut patch = json!({});
            if is_chosen {
                patch["spec"] = json!({"volumeName": volume.name});
                if !claim.is_bound_by_controller() {
                    annotations[BOUND_BY_CONTROLLER] = "yes".into();
                }
            }
            patch["metadata"] = json!({"annotations": annotations});
            claim = self.patch_claim(&claim, patch).await?;
        }
        let is_new = claim.phase != "Bound";
        if !is_new && claim.status_modes == volume.modes {
            return Ok(());
        }
        let mut status = json!({"phase": "Bound", "accessModes": volume.modes});
        // The size of a bound claim is changed by an expansion, not by the volume.
        if is_new {
            status["capacity"] = json!({"storage": volume.size_text});
            if !volume.attributes_class.is_empty() {
                status["currentVolumeAttributesClassName"] =
                    volume.attributes_class.as_str().into();
            }
        }
        self.patch_claim_status(&claim, status).await.map(drop)
    }

    /// Sets the phase of a claim without a volume if it differs. Returns true if it differed.
    pub(crate) async fn set_unbound(&self, claim: &ClaimFacts, phase: &str) -> Result<bool, Error> {
        if claim.phase == phase && !(phase == "Pending" && claim.has_status) {
            return Ok(false);
        }
        let status = json!({
            "phase": phase, "accessModes": null, "capacity": null,
            "currentVolumeAttributesClassName": null,
        });
        self.patch_claim_status(claim, status).await?;
        Ok(true)
    }

    /// Sets the class of a claim without one.
    pub(crate) async fn set_class(&self, claim: &ClaimFacts, class: &str) -> Result<(), Error> {
        let patch = json!({"spec": {"storageClassName": class}});
        self.patch_claim(claim, patch).await.map(drop)
    }

    /// Requests a volume for a claim from a provisioner. Returns true if this was the first
    /// request.
    pub(crate) async fn request_volume(
        &self,
        claim: &ClaimFacts,
        provisioner: &str,
    ) -> Result<bool, Error> {
        let own = claim.annotations.get(PROVISIONER);
        if own.is_some_and(|own| own == provisioner) {
            return Ok(false);
        }
        let annotations = json!({PROVISIONER: provisioner, OLD_PROVISIONER: provisioner});
        self.patch_claim(claim, json!({"metadata": {"annotations": annotations}}))
            .await?;
        Ok(true)
    }

    /// Removes the claim of a volume, or only the UID if the user set it.
    pub(crate) async fn unbind(&self, volume: &VolumeFacts) -> Result<(), Error> {
        let patch = if volume.is_bound_by_controller() {
            json!({"metadata": {"annotations": {BOUND_BY_CONTROLLER: null}},
                   "spec": {"claimRef": null}})
        } else {
            json!({"spec": {"claimRef": {"uid": null}}})
        };
        let volume = self.patch_volume(volume, patch).await?;
        self.set_phase(&volume, "Available", "").await.map(drop)
    }

    /// Records an event about a claim.
    pub(crate) fn note_claim(&self, claim: &ClaimFacts, note: &Note) {
        let subject = claim_subject(claim);
        self.events
            .record_event(subject, note.severity, note.reason, &note.message);
    }

    /// Records an event about a volume.
    pub(crate) fn note_volume(&self, volume: &VolumeFacts, note: &Note) {
        self.events.record_event(
            volume_subject(volume),
            note.severity,
            note.reason,
            &note.message,
        );
    }
}

fn merge_metadata(patch: &mut Value, metadata: Value) {
    if let Value::Object(metadata) = metadata {
        for (name, value) in metadata {
            patch["metadata"][name] = value;
        }
    }
}
