//! The names and labels of a pipeline's Job. Pure.

use std::collections::BTreeMap;

use longshore_model::name::{self, to_dns_label, to_label_value};
use serde_json::Value;

use super::{OrchestratorKubernetesBackend, PipelineConfig, ZenmlError};
use longshore_launcher::names;

/// Annotation of the Job: the original values of labels that had to be changed, as a JSON
/// object.
pub const FULL_LABELS: &str = "longshore.dev/labels";

/// The pods of an Indexed Job are named `<job>-<index>`, which must fit 63 characters.
const JOB_NAME: usize = 61;
/// Letters and digits between the dashes of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The name of a pipeline's Job and of its run.
pub(super) fn job_name(prefix: &str, pipeline: &str) -> String {
    let whole = format!("{prefix}{pipeline}");
    let name = to_dns_label(&whole, JOB_NAME);
    // The container has the Job's name, which must differ from the init containers' names.
    match name.as_str() {
        names::FETCH | names::INSTALL => format!("{name}-pipeline"),
        _ => name,
    }
}

/// The first UUID in a text.
pub(super) fn uuid(text: &str) -> Option<&str> {
    let length = UUID.iter().sum::<usize>() + UUID.len() - 1;
    let is_uuid = |text: &&str| {
        let mut parts = text.split('-');
        let fits = |length: &usize| {
            let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
            let part = parts.next();
            part.is_some_and(|part| part.len() == *length && part.bytes().all(letter))
        };
        UUID.iter().all(fits)
    };
    let starts = 0..text.len().saturating_sub(length - 1);
    starts
        .filter_map(|start| text.get(start..start + length))
        .find(is_uuid)
}

/// The labels of a Job and its pods, and the original values of changed ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) full: BTreeMap<String, String>,
}

impl Labels {
    /// Adds ZenML's own labels, which override `extra_labels`.
    pub(super) fn of(
        backend: &OrchestratorKubernetesBackend,
        config: &PipelineConfig,
    ) -> Result<Self, ZenmlError> {
        let mut labels = Self::default();
        for (key, value) in &backend.extra_labels {
            name::label_key(key).map_err(|source| ZenmlError::Key {
                parameter: "extra_labels",
                source,
            })?;
            labels.put(key, value);
        }
        let own = [
            ("app", Some("zenml")),
            ("pipeline", Some(config.name())),
            ("datasource-id", config.datasource_id()?),
            ("pipeline-id", uuid(config.name())),
        ];
        for (key, value) in own {
            match value {
                Some(value) => labels.put(key, value),
                // A label of this key in `extra_labels` would be wrong.
                None => labels.remove(key),
            }
        }
        Ok(labels)
    }

    fn put(&mut self, key: &str, value: &str) {
        self.remove(key);
        let fits = to_label_value(value);
        if fits != value {
            self.full.insert(key.to_owned(), value.to_owned());
        }
        self.labels.insert(key.to_owned(), fits);
    }

    fn remove(&mut self, key: &str) {
        self.labels.remove(key);
        self.full.remove(key);
    }

    /// The corresponding annotations of the Job.
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let text = || {
            serde_json::to_value(&self.full)
                .unwrap_or(Value::Null)
                .to_string()
        };
        let changed = (!self.full.is_empty()).then(|| (FULL_LABELS.to_owned(), text()));
        changed.into_iter().collect()
    }
}
