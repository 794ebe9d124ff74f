//! Custom kinds: what a CustomResourceDefinition says, brought to a form the
//! engine works with.

mod conditions;
mod deletion;
mod names;
mod outline;
mod scale;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use longshore_model::{KindInfo, StatusCause};
use longshore_schema::Structural;
use serde_json::Value;

pub(crate) use conditions::{holds, set_condition};
pub(crate) use deletion::{CLEANUP, begin_deletion};
pub(crate) use names::accept;
pub(crate) use outline::Outline;
pub(crate) use scale::{ScalePaths, builtin_scale};

use crate::json;

/// The group of definitions.
pub(crate) const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
/// The kind of definitions.
pub(crate) const DEFINITION_KIND: &str = "CustomResourceDefinition";

/// Whether a kind is that of definitions.
pub(crate) fn is_definition(group: &str, kind: &str) -> bool {
    group == DEFINITION_GROUP && kind == DEFINITION_KIND
}

/// Bytes of compiled patterns up to which a small object is validated in a few
/// milliseconds, whatever the patterns.
const COSTLY: usize = 256 << 10;

/// A column of a custom kind's tables.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrinterColumn {
    /// Its heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: String,
    /// A hint at how to show it.
    #[serde(default)]
    pub format: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// 0 is shown always, more only when there is place.
    #[serde(default)]
    pub priority: i32,
    /// Where its value stands in an object.
    pub json_path: String,
}

/// The schema of a version, and that of the version that is stored, if that is
/// another.
pub(crate) struct Schemas {
    pub(crate) own: Arc<Structural>,
    pub(crate) storage: Option<Arc<Structural>>,
}

/// A version of a custom kind.
#[derive(Debug)]
pub struct CustomKind {
    pub(crate) schema: Arc<Structural>,
    /// The schema of the version that objects are stored in, if that is another.
    pub(crate) storage: Option<Arc<Structural>>,
    openapi: Value,
    columns: Vec<PrinterColumn>,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) has_status: bool,
    deprecation: Option<String>,
    /// `group/version` of the stored objects.
    pub(crate) stored_as: String,
    /// Objects written after this revision are as the version wants them, if
    /// it is the only one.
    since: AtomicU64,
    pub(crate) alone: bool,
    /// Whether it may take long to validate even a small object.
    pub(crate) is_costly: bool,
    /// Why objects cannot be had in this version, if so.
    pub(crate) unconvertible: Option<String>,
}

impl CustomKind {
    /// What a version of a definition says; its objects are stored as `stored`.
    pub(crate) fn of_version(
        version: &json::Object,
        info: &KindInfo,
        stored: &KindInfo,
        since: u64,
        alone: bool,
        webhook: bool,
        schemas: Schemas,
    ) -> Self {
        let openapi = json::at(version, "schema.openAPIV3Schema")
            .cloned()
            .unwrap_or_default();
        let columns = version
            .get("additionalPrinterColumns")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|column| serde_json::from_value(column.clone()).ok());
        let deprecated = version.get("deprecated") == Some(&Value::Bool(true));
        let warning = json::text(version, "deprecationWarning");
        Self {
            is_costly: schemas.own.pattern_size() > COSTLY,
            schema: schemas.own,
            storage: schemas.storage,
            columns: columns.collect(),
            scale: json::at(version, "subresources.scale").map(ScalePaths::parse),
            has_status: info.has_subresource("status"),
            deprecation: deprecated.then(|| match warning {
                "" => format!("{} {} is deprecated", info.api_version(), info.gvk.kind),
                warning => warning.to_owned(),
            }),
            stored_as: stored.api_version(),
            since: AtomicU64::new(since),
            alone,
            unconvertible: (webhook && info.gvk != stored.gvk).then(|| {
                format!(
                    "conversion webhook for {}, Kind={} failed: this server calls no conversion webhooks: use version {}, or conversion strategy None",
                    stored.api_version(),
                    stored.gvk.kind,
                    stored.gvk.version,
                )
            }),
            openapi,
        }
    }

    /// The schema as the definition has it.
    #[must_use]
    pub fn openapi(&self) -> &Value {
        &self.openapi
    }

    /// Its tables' columns after the name; none when the definition names none.
    #[must_use]
    pub fn columns(&self) -> &[PrinterColumn] {
        &self.columns
    }

    /// What to warn the users of a deprecated version of.
    #[must_use]
    pub fn deprecation(&self) -> Option<&str> {
        self.deprecation.as_deref()
    }

    /// Objects written after this revision are as the version wants them, if
    /// it is the only one.
    pub(crate) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// Sets that revision: before the kind is published, by the writer alone.
    pub(crate) fn begin_at(&self, revision: u64) {
        self.since.store(revision, Ordering::Relaxed);
    }

    /// What is wrong with an object; `before` is what it was.
    pub(crate) fn validate(
        &self,
        before: Option<&json::Object>,
        object: &json::Object,
    ) -> Vec<StatusCause> {
        let value = Value::Object(object.clone());
        let mut causes = self.schema.validate("", &value);
        if let Some(before) = before {
            // What was wrong before and has not changed is let through.
            let before = Value::Object(before.clone());
            let old = self.schema.validate("", &before);
            let of = |cause: &StatusCause| {
                [&cause.reason, &cause.message, &cause.field].map(String::clone)
            };
            let old: HashSet<_> = old.iter().map(of).collect();
            causes.retain(|cause| !old.contains(&of(cause)) || !same_at(&before, &value, cause));
        }
        if let Some(scale) = &self.scale {
            scale.check(object, &mut causes);
        }
        causes.extend(self.schema.check_embedded(&value));
        let ratchets = before.is_some_and(|before| {
            !self
                .schema
                .duplicates(&Value::Object(before.clone()))
                .is_empty()
        });
        if !ratchets {
            causes.extend(self.schema.duplicates(&value));
        }
        causes
    }

    /// What is wrong with a status.
    pub(crate) fn validate_status(&self, object: &json::Object) -> Vec<StatusCause> {
        let mut causes = match (self.schema.property("status"), object.get("status")) {
            (Some(schema), Some(status)) => schema.validate("status", status),
            _ => Vec::new(),
        };
        if let Some(scale) = &self.scale {
            scale.check_status(object, &mut causes);
        }
        causes
    }
}

/// Whether nothing changed at a path of a cause.
fn same_at(before: &Value, after: &Value, cause: &StatusCause) -> bool {
    let path = match (&*cause.field, &*cause.reason) {
        ("<nil>", _) => "",
        // What is missing is missing from the object around it.
        (path, "FieldValueRequired") => path.rsplit_once('.').map_or("", |(around, _)| around),
        (path, _) => path,
    };
    at_path(before, path) == at_path(after, path)
}

/// The value at the path of a cause.
fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut at = value;
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        at = match at {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            value => value.get(part)?,
        };
    }
    Some(at)
}

/// The versions of a definition.
pub(crate) fn versions(definition: &json::Object) -> impl Iterator<Item = &json::Object> {
    json::at(definition, "spec.versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
}
