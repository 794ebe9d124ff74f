//! Executes the actions of a plan.

use longshore_client::{Cache, Error, Patch, View, kinds::Any};
use serde_json::{Value, json};

use super::{
    action::Action,
    claims::{ClaimFacts, Member, has_other_controller, is_current, owners},
    facts::StatefulSet,
    identity::{
        INDEX_LABEL, NAME_LABEL, claim_object, claims, has_identity, has_storage, ordinal, pod,
        pod_name, volumes,
    },
};
use crate::{
    events::Severity,
    pod_facts::PodFacts,
    refusal::{is_terminating, message},
    workload::Requests,
};

/// The requests for the pods and claims of StatefulSets.
pub(super) struct SetRequests {
    pub(super) common: Requests<StatefulSet>,
    pub(super) claims: View<Any>,
    pub(super) known_claims: Cache<Any>,
}

/// The templates and names of the revision before the update and of the current
/// template.
pub(super) struct Templates<'a> {
    pub(super) old: (&'a Value, &'a str),
    pub(super) new: (&'a Value, &'a str),
}

impl SetRequests {
    /// Returns a claim that is in the cache.
    pub(super) fn claim(&self, namespace: &str, name: &str) -> Option<ClaimFacts> {
        let item = self.known_claims.get(Some(namespace), name)?;
        ClaimFacts::of(&item).ok()
    }

    pub(super) async fn act(
        &self,
        set: &StatefulSet,
        action: &Action,
        templates: &Templates<'_>,
    ) -> Result<(), Error> {
        match action {
            Action::Create {
                ordinal,
                old_revision,
            } => {
                let (template, revision) = if *old_revision {
                    templates.old
                } else {
                    templates.new
                };
                self.create(set, *ordinal, template, revision).await
            }
            Action::Claims(pod) => {
                if let Some(ordinal) = ordinal(pod) {
                    self.create_claims(set, ordinal).await?;
                }
                let done = self.retain(set, Member::of(set, pod)).await;
                self.report_failure(set, "Update", &pod.key.name, done)
            }
            Action::Retain(pod) => self.retain(set, Member::of(set, pod)).await,
            Action::Repair(pod) => {
                let done = self.repair(set, pod).await;
                self.report(set, "Update", &pod.key.name, done)
            }
            Action::Delete(pod) | Action::Update(pod) => {
                let done = self.common.delete_pod(pod).await;
                self.report(set, "Delete", &pod.key.name, done)
            }
        }
    }

    async fn create(
        &self,
        set: &StatefulSet,
        ordinal: u32,
        template: &Value,
        revision: &str,
    ) -> Result<(), Error> {
        let name = pod_name(set, ordinal);
        let created = self.create_claims(set, ordinal).await;
        self.report_failure(set, "Create", &name, created)?;
        let pod = pod(set, ordinal, template, revision);
        let created = self.common.create_pod(&set.meta, &pod).await;
        match created {
            Err(error) if error.is_already_exists() || is_terminating(&error) => Err(error),
            created => {
                let retained = self.retain(set, Member::not_created(&name)).await;
                self.report_failure(set, "Update", &name, retained)?;
                self.report(set, "Create", &name, created.map(|_| ()))
            }
        }
    }

    async fn create_claims(&self, set: &StatefulSet, ordinal: u32) -> Result<(), Error> {
        let namespace = &set.meta.key.namespace;
        let view = self.claims.clone().in_namespace(namespace)?;
        let pod = pod_name(set, ordinal);
        let mut outcome = Ok(());
        for claim in claims(set, ordinal) {
            let name = &claim.name;
            if let Some(known) = self.claim(namespace, name) {
                if known.deleting {
                    let problem = format!("pvc {name} is being deleted");
                    outcome = outcome.and(Err(Error::Invalid(problem)));
                }
                continue;
            }
            let set_name = &set.meta.key.name;
            match view.create(&claim_object(set, &claim)).await {
                Ok(_) => {
                    let text =
                        format!("Create Claim {name} Pod {pod} in StatefulSet {set_name} success");
                    self.normal(set, "SuccessfulCreate", &text);
                }
                Err(error) if error.is_already_exists() => {}
                Err(error) => {
                    let cause = message(&error);
                    let text = format!(
                        "Create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {cause}"
                    );
                    self.warning(set, "FailedCreate", &text);
                    outcome = outcome.and(Err(error));
                }
            }
        }
        outcome
    }

    /// Sets the owners of the claims of a pod by the retention policy.
    async fn retain(&self, set: &StatefulSet, pod: Member<'_>) -> Result<(), Error> {
        let namespace = &set.meta.key.namespace;
        let view = self.claims.clone().in_namespace(namespace)?;
        let Some(ordinal) = pod.ordinal() else {
            return Ok(());
        };
        for claim in claims(set, ordinal) {
            let Some(known) = self.claim(namespace, &claim.name) else {
                continue;
            };
            if has_other_controller(set, &known, pod) {
                let text = format!(
                    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim",
                    claim.name
                );
                self.warning(set, "ConflictingController", &text);
            }
            if is_current(set, &known, pod) {
                continue;
            }
            let patch = Patch::merge(json!({"metadata": {
                "uid": known.uid, "resourceVersion": known.version,
                "ownerReferences": owners(set, &known, pod),
            }}));
            match view.patch(&claim.name, &patch).await {
                Err(error) if error.is_not_found() => {}
                done => {
                    done?;
                }
            }
        }
        Ok(())
    }

    async fn repair(&self, set: &StatefulSet, pod: &PodFacts) -> Result<(), Error> {
        let Some(ordinal) = ordinal(pod) else {
            return Ok(());
        };
        let mut patch = json!({"metadata": {"uid": pod.uid}});
        if !has_identity(pod) {
            patch["metadata"]["labels"] = json!({
                NAME_LABEL: pod.key.name, INDEX_LABEL: ordinal.to_string(),
            });
        }
        if !has_storage(set, pod) {
            patch["spec"]["volumes"] = volumes(&claims(set, ordinal)).into();
            self.create_claims(set, ordinal).await?;
        }
        self.retain(set, Member::of(set, pod)).await?;
        self.common.patch_pod(pod, patch).await
    }

    /// Records the result of a change of a pod.
    fn report(
        &self,
        set: &StatefulSet,
        verb: &str,
        pod: &str,
        done: Result<(), Error>,
    ) -> Result<(), Error> {
        if done.is_ok() {
            let set_name = &set.meta.key.name;
            let text = format!("{verb} Pod {pod} in StatefulSet {set_name} successful");
            self.normal(set, &format!("Successful{verb}"), &text);
        }
        self.report_failure(set, verb, pod, done)
    }

    fn report_failure(
        &self,
        set: &StatefulSet,
        verb: &str,
        pod: &str,
        done: Result<(), Error>,
    ) -> Result<(), Error> {
        if let Err(error) = &done
            && !error.is_conflict()
            && !is_terminating(error)
        {
            let (set_name, cause) = (&set.meta.key.name, message(error));
            let text = format!("{verb} Pod {pod} in StatefulSet {set_name} failed error: {cause}");
            self.warning(set, &format!("Failed{verb}"), &text);
        }
        done
    }

    fn normal(&self, set: &StatefulSet, reason: &str, message: &str) {
        self.common
            .event(&set.meta, Severity::Normal, reason, message);
    }

    fn warning(&self, set: &StatefulSet, reason: &str, message: &str) {
        self.common
            .event(&set.meta, Severity::Warning, reason, message);
    }
}
