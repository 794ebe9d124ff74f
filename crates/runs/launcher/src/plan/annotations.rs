//! The labels and annotations of a run's objects.

use std::collections::BTreeMap;

use longshore_diagnosis::{names, role::RunRole};
use serde::Serialize;

use super::{PlanError, Planner, run_role};
use crate::{config::RoleSpec, outputs::OutputRequest};

impl Planner<'_> {
    /// The labels of all objects, or of a role's objects.
    pub(super) fn labels(&self, role: Option<&str>) -> BTreeMap<String, String> {
        // Longshore's labels override the user's, because they identify the run.
        let mut labels = self.spec.labels.clone();
        labels.extend(texts([
            (names::MANAGED_BY, names::LONGSHORE),
            (names::RUN, self.run.as_str()),
        ]));
        let sweep = self.spec.sweep.as_ref();
        labels.extend(sweep.map(|_| (names::SWEEP.to_owned(), self.run.to_string())));
        labels.extend(role.map(|role| (names::ROLE.to_owned(), role.to_owned())));
        labels
    }

    /// The annotations of a role's Job and pods.
    pub(super) fn annotations(
        &self,
        role: &RoleSpec,
    ) -> Result<BTreeMap<String, String>, PlanError> {
        let mut annotations = self.spec.annotations.clone();
        let roles: Vec<RunRole> = self.spec.roles.iter().map(run_role).collect();
        annotations.extend(texts([
            (names::FULL_NAME, self.spec.name.as_str()),
            (names::COMMAND, &json(&role.command)?),
            (names::ROLES, &json(&roles)?),
        ]));
        let sha256 = self
            .bundle
            .map(|bundle| (names::BUNDLE.to_owned(), bundle.sha256.clone()));
        annotations.extend(sha256);
        if self.spec.restarts.whole_run.is_some() {
            annotations.extend(texts([(names::RESTART, names::WHOLE_RUN)]));
            if self.is_restarted_by_set() {
                let most = self.spec.retries.to_string();
                annotations.extend(texts([(names::MAX_RESTARTS, &most)]));
            }
        }
        if !self.spec.metrics.is_empty() {
            annotations.extend(texts([(names::METRICS, &json(&self.spec.metrics)?)]));
        }
        if !self.spec.excluded.is_empty() {
            annotations.extend(texts([(names::EXCLUDED, &json(&self.spec.excluded)?)]));
        }
        annotations.extend(self.data_annotation(role));
        if let Some(outputs) = &role.outputs {
            let outputs = OutputRequest {
                scheduled: self.is_scheduled(),
                ..outputs.clone()
            };
            let (key, value) = outputs.annotation().map_err(PlanError::Json)?;
            annotations.insert(key.to_owned(), value);
        }
        Ok(annotations)
    }

    /// The annotations that only Jobs have.
    pub(super) fn job_annotations(&self) -> Result<BTreeMap<String, String>, PlanError> {
        let note = self.spec.note.iter();
        let note = note.map(|note| (names::NOTE.to_owned(), note.clone()));
        let mut annotations: BTreeMap<String, String> = note.collect();
        if let Some(dev) = &self.spec.dev {
            annotations.insert(names::DEV.to_owned(), json(&dev.record)?);
        }
        Ok(annotations)
    }
}

/// JSON with sorted keys.
fn json(value: &impl Serialize) -> Result<String, PlanError> {
    let value = serde_json::to_value(value).map_err(PlanError::Json)?;
    Ok(value.to_string())
}

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
