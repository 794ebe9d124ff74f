//! A table of the properties of each kind that the machinery needs. Kinds that
//! are not in the table use [`PLAIN`].

mod decode_selectable;
mod table;

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

/// How the names of a kind are validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    /// A DNS label that starts with a letter, as required for Services.
    ServiceLabel,
    /// Any valid path segment: roles and their bindings.
    PathSegment,
    /// An IP address in canonical form.
    Address,
}

/// What a create does with a status in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentStatus {
    /// Kept: nodes register with a status.
    Kept,
    Dropped,
}

/// Which changes increment `metadata.generation` (rule 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has no generation.
    Absent,
    /// The generation is always 1.
    Fixed,
    Spec,
    /// Changes of the spec; a new object has no generation.
    SpecFromNone,
    /// Changes of the spec or the annotations.
    SpecAndAnnotations,
    /// Changes of anything except the metadata.
    Content,
}

impl Generation {
    /// Whether a change increments the generation.
    pub(crate) fn counts(self, before: &Map<String, Value>, after: &Map<String, Value>) -> bool {
        let differ = |field: &str| before.get(field) != after.get(field);
        let annotations = |object| crate::json::at(object, "metadata.annotations");
        match self {
            Self::Absent | Self::Fixed => false,
            Self::Spec | Self::SpecFromNone => differ("spec"),
            Self::SpecAndAnnotations => differ("spec") || annotations(before) != annotations(after),
            Self::Content => {
                let mut fields = before.keys().chain(after.keys());
                // The storage version of a custom object may change without an
                // effect on the generation.
                let counts = |field: &str| !matches!(field, "metadata" | "apiVersion");
                fields.any(|field| counts(field) && differ(field))
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// Selectable fields besides `metadata.name` and `metadata.namespace`.
    pub(crate) fields: &'static [&'static str],
    pub(crate) name: NameRule,
    pub(crate) generation: Generation,
    pub(crate) sent_status: SentStatus,
    /// Whether an update may omit the resource version.
    pub(crate) unconditional_update: bool,
    /// Whether an update creates a missing object.
    pub(crate) create_on_update: bool,
    /// Whether a delete without a propagation policy orphans dependents.
    pub(crate) orphan_by_default: bool,
    /// Whether only the server may change the spec after creation.
    pub(crate) has_fixed_spec: bool,
    /// Metadata fields that a status update also changes.
    pub(crate) status_metadata: &'static [&'static str],
}

pub(crate) static PLAIN: Facts = Facts {
    group: "",
    kind: "",
    fields: &[],
    name: NameRule::Subdomain,
    generation: Generation::Absent,
    sent_status: SentStatus::Dropped,
    unconditional_update: true,
    create_on_update: false,
    orphan_by_default: false,
    has_fixed_spec: false,
    status_metadata: &["labels", "annotations", "finalizers", "ownerReferences"],
};

/// The properties of custom kinds.
static CUSTOM: Facts = Facts {
    generation: Generation::Content,
    unconditional_update: false,
    status_metadata: &[],
    ..PLAIN
};

/// The properties of kinds that are not in the table.
pub(crate) fn plain() -> &'static Facts {
    &PLAIN
}

/// The properties of custom kinds.
pub(crate) fn custom() -> &'static Facts {
    &CUSTOM
}

/// The properties of a kind.
pub(crate) fn of(group: &str, kind: &str) -> &'static Facts {
    table::TABLE
        .iter()
        .find(|facts| facts.group == group && facts.kind == kind)
        .unwrap_or(&PLAIN)
}

/// The properties of a kind as served: a row of the table, plus what its
/// definition or view adds.
#[derive(Debug, Clone)]
pub(crate) struct KindFacts {
    row: &'static Facts,
    /// Selectable fields of a custom kind's definition.
    own: Arc<[String]>,
    /// Selectable fields whose names differ from those in the stored objects.
    renamed: &'static [(&'static str, &'static str)],
}

impl From<&'static Facts> for KindFacts {
    fn from(row: &'static Facts) -> Self {
        static NONE: OnceLock<Arc<[String]>> = OnceLock::new();
        Self {
            row,
            own: NONE.get_or_init(|| Arc::new([])).clone(),
            renamed: &[],
        }
    }
}

impl std::ops::Deref for KindFacts {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.row
    }
}

impl KindFacts {
    /// Adds selectable fields of a custom kind.
    pub(crate) fn with_fields(row: &'static Facts, own: Arc<[String]>) -> Self {
        Self {
            own,
            ..Self::from(row)
        }
    }

    /// Renames the selectable fields: only the given fields remain selectable,
    /// each listed with its name in the row.
    pub(crate) fn with_names(
        row: &'static Facts,
        renamed: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            renamed,
            ..Self::from(row)
        }
    }

    /// Whether a field selector may use `path`.
    pub(crate) fn is_selectable(&self, path: &str) -> bool {
        matches!(path, "metadata.name" | "metadata.namespace")
            || self.own.iter().any(|own| own == path)
            || self.index_of(path).is_some()
    }

    /// Whether there are selectable fields besides name and namespace.
    pub(crate) fn has_own_fields(&self) -> bool {
        !self.own.is_empty() || !self.row.fields.is_empty()
    }

    /// Index of a selectable field within the result of `extract`.
    pub(crate) fn index_of(&self, path: &str) -> Option<usize> {
        let path = if self.renamed.is_empty() {
            path
        } else {
            let (_, stored) = self.renamed.iter().find(|(shown, _)| *shown == path)?;
            stored
        };
        self.row.fields.iter().position(|field| *field == path)
    }

    /// The value of a selectable field of a custom kind.
    pub(crate) fn own_field(&self, object: &Map<String, Value>, path: &str) -> Option<String> {
        let known = self.own.iter().any(|own| own == path);
        known.then(|| field(object, path))
    }
}

impl Facts {
    /// The values of the selectable fields, each terminated by a NUL.
    pub(crate) fn extract(&self, object: &Map<String, Value>) -> Box<str> {
        let mut text = String::new();
        for path in self.fields {
            text.push_str(&field(object, path).replace('\0', ""));
            text.push('\0');
        }
        text.into_boxed_str()
    }
}

fn field(object: &Map<String, Value>, path: &str) -> String {
    let at = |path: &str| {
        let mut parts = path.split('.');
        let first = object.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    };
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    match path {
        "spec.hostNetwork" | "spec.unschedulable" => at(path)
            .and_then(Value::as_bool)
            .unwrap_or_default()
            .to_string(),
        "status.podIPs" => text(at("status.podIPs").and_then(|ips| ips.get(0)?.get("ip"))),
        "status.successful" => at("status.succeeded")
            .and_then(Value::as_i64)
            .unwrap_or_default()
            .to_string(),
        "status.replicas" => at(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
            .to_string(),
        "source" => match text(at("source.component")) {
            component if component.is_empty() => text(at("reportingComponent")),
            component => component,
        },
        _ => text(at(path)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_describes_a_served_kind() {
        for facts in table::TABLE {
            assert!(
                longshore_model::kind::builtin(facts.group, facts.kind).is_some(),
                "{facts:?}"
            );
        }
    }

    #[test]
    fn computed_fields_have_their_defaults() {
        let empty = Map::new();
        assert_eq!(field(&empty, "spec.hostNetwork"), "false");
        assert_eq!(field(&empty, "status.successful"), "0");
        let event = serde_json::json!({"reportingComponent": "me"});
        assert_eq!(field(event.as_object().unwrap(), "source"), "me");
    }
}
