//! Custom kinds: CustomResourceDefinitions, compiled to the form that the
//! engine uses.

mod conditions;
mod deletion;
mod names;
mod scale;
mod summary;

use std::{
    collections::HashSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use longshore_builtin::{json, validate};
use longshore_cel::rules::{Rules, has_rules};
use longshore_model::{CauseList, KindInfo, StatusCause};
use longshore_schema::Structural;
use serde_json::Value;

pub(crate) use conditions::set_condition;
pub(crate) use deletion::{CLEANUP_FINALIZER, mark_for_deletion};
pub(crate) use names::accept;
pub(crate) use scale::{ScalePaths, builtin_scale};
pub(crate) use summary::DefinitionSummary;

/// API group of CustomResourceDefinition.
pub(crate) const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
/// Kind name of CustomResourceDefinition.
pub(crate) const DEFINITION_KIND: &str = "CustomResourceDefinition";

/// Returns true if a kind is CustomResourceDefinition.
pub(crate) fn is_definition(group: &str, kind: &str) -> bool {
    group == DEFINITION_GROUP && kind == DEFINITION_KIND
}

/// Size limit, in bytes of compiled patterns. Below it, validating a small object takes a few
/// milliseconds at most.
const MAX_CHEAP_PATTERN_BYTES: usize = 256 << 10;

/// Reasons of errors that prevent the evaluation of the schema's rules.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const NOT_CHECKED: &str = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// A printer column of a custom kind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrinterColumn {
    /// The column header.
    pub name: String,
    /// The type: `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: String,
    /// A format hint for clients.
    #[serde(default)]
    pub format: String,
    /// A description for users.
    #[serde(default)]
    pub description: String,
    /// Columns with priority 0 are always shown, others only in wide output.
    #[serde(default)]
    pub priority: i32,
    /// JSONPath of the value within an object.
    pub json_path: String,
}

/// The schema of a version, and the schema of the storage version if it is a different version.
pub(crate) struct Schemas {
    pub(crate) own: Arc<Structural>,
    pub(crate) storage: Option<Arc<Structural>>,
}

/// A version of a custom kind.
#[derive(Debug)]
pub struct CustomKind {
    pub(crate) schema: Arc<Structural>,
    /// The schema of the storage version, if that is another version.
    pub(crate) storage: Option<Arc<Structural>>,
    openapi: Value,
    columns: Vec<PrinterColumn>,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) has_status: bool,
    deprecation: Option<String>,
    /// The storage version as `group/version`.
    pub(crate) stored_as: String,
    /// Objects written after this revision conform to this version's schema,
    /// provided that `alone` is set.
    since: AtomicU64,
    pub(crate) is_only_version: bool,
    /// True if validation may take long even for a small object.
    pub(crate) is_costly: bool,
    /// The conversion webhook, if the definition has one.
    pub(crate) conversion: Option<Conversion>,
    /// The rules of the schema, compiled when they are first used.
    rules: OnceLock<Option<Rules>>,
    has_rules: bool,
}

/// The conversion webhook of a definition.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// `spec.conversion.webhook`.
    pub(crate) webhook: Arc<Value>,
    /// The storage version as `group/version`.
    pub(crate) stored_as: String,
}

impl CustomKind {
    /// Compiles a version of a definition. Its objects are stored as `stored`.
    pub(crate) fn of_version(
        version: &json::Object,
        info: &KindInfo,
        stored: &KindInfo,
        since: u64,
        is_only_version: bool,
        webhook: Option<Arc<Value>>,
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
        let has_rules = has_rules(&openapi);
        Self {
            is_costly: has_rules || schemas.own.pattern_size() > MAX_CHEAP_PATTERN_BYTES,
            rules: OnceLock::new(),
            has_rules,
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
            is_only_version,
            conversion: webhook.map(|webhook| Conversion {
                webhook,
                stored_as: stored.api_version(),
            }),
            openapi,
        }
    }

    /// The schema as written in the definition.
    #[must_use]
    pub fn openapi(&self) -> &Value {
        &self.openapi
    }

    /// `spec.conversion.webhook` of the definition, if its objects are converted
    /// by a webhook.
    #[must_use]
    pub fn conversion_webhook(&self) -> Option<&Value> {
        self.conversion
            .as_ref()
            .map(|conversion| &*conversion.webhook)
    }

    /// The printer columns after the name; empty if the definition has none.
    #[must_use]
    pub fn columns(&self) -> &[PrinterColumn] {
        &self.columns
    }

    /// The deprecation warning, if the version is deprecated.
    #[must_use]
    pub fn deprecation(&self) -> Option<&str> {
        self.deprecation.as_deref()
    }

    /// The revision after which all written objects conform to this version's
    /// schema, if it is the only version.
    pub(crate) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// Sets the revision that [`CustomKind::since`] returns. Only the writer calls this, before it
    /// publishes the kind.
    pub(crate) fn set_since(&self, revision: u64) {
        self.since.store(revision, Ordering::Relaxed);
    }

    /// Validates an object; `before` is its previous state. Adds errors that do
    /// not block the write to `warnings`.
    pub(crate) fn validate(
        &self,
        before: Option<&json::Object>,
        object: &json::Object,
        warnings: &mut Vec<String>,
    ) -> Vec<StatusCause> {
        let mut value = Value::Object(object.clone());
        let mut causes = self.schema.validate("", &value);
        if let Some(before) = before {
            // Ratcheting: errors that existed before are accepted as long as
            // the value at their path is unchanged.
            let before = Value::Object(before.clone());
            let old = self.schema.validate("", &before);
            let of = |cause: &StatusCause| {
                [&cause.reason, &cause.message, &cause.field].map(String::clone)
            };
            let old: HashSet<_> = old.iter().map(of).collect();
            causes.retain(|cause| {
                !old.contains(&of(cause)) || !is_unchanged_at(&before, &value, cause)
            });
        }
        if let Some(scale) = &self.scale {
            scale.check(object, &mut causes);
        }
        self.schema.visit_embedded(&mut value, &mut |path, inner| {
            let mut found = validate::embedded(inner);
            for cause in found.iter_mut() {
                cause.field = format!("{path}.{}", cause.field);
            }
            causes.merge(found);
        });
        let ratchets = before.is_some_and(|before| {
            !self
                .schema
                .duplicates(&Value::Object(before.clone()))
                .is_empty()
        });
        if !ratchets {
            causes.merge(self.schema.duplicates(&value));
        }
        self.evaluate_rules(before, object, &mut causes, warnings);
        causes.into_vec()
    }

    /// Evaluates the rules of the schema, unless the object has errors that the rules do not
    /// expect.
    fn evaluate_rules(
        &self,
        before: Option<&json::Object>,
        object: &json::Object,
        causes: &mut CauseList,
        warnings: &mut Vec<String>,
    ) {
        if !self.has_rules {
            return;
        }
        if causes
            .iter()
            .any(|cause| BLOCKING.contains(&&*cause.reason))
        {
            causes.push(StatusCause {
                reason: "FieldValueInvalid".to_owned(),
                message: NOT_CHECKED.to_owned(),
                field: "<nil>".to_owned(),
            });
            return;
        }
        let rules = self.rules.get_or_init(|| Rules::compile(&self.openapi));
        if let Some(rules) = rules {
            let before = before.map(|before| Value::Object(before.clone()));
            let object = Value::Object(object.clone());
            let findings = rules.validate(before.as_ref(), &object);
            causes.merge(findings.causes);
            let texts = findings.ratcheted.into_iter();
            warnings.extend(texts.map(|cause| format!("{}: {}", cause.field, cause.message)));
        }
    }

    /// Validates the status of an object; `before` is its previous state.
    pub(crate) fn validate_status(
        &self,
        before: &json::Object,
        object: &json::Object,
        warnings: &mut Vec<String>,
    ) -> Vec<StatusCause> {
        let mut causes = match (self.schema.property("status"), object.get("status")) {
            (Some(schema), Some(status)) => schema.validate("status", status),
            _ => CauseList::new(),
        };
        if let Some(scale) = &self.scale {
            scale.check_status(object, &mut causes);
        }
        self.evaluate_rules(Some(before), object, &mut causes, warnings);
        causes.into_vec()
    }
}

/// Returns true if the value at the path of a cause is unchanged.
fn is_unchanged_at(before: &Value, after: &Value, cause: &StatusCause) -> bool {
    let path = match (&*cause.field, &*cause.reason) {
        ("<nil>", _) => "",
        // A missing field is reported at the path of the field, but the error belongs to the parent
        // object.
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
