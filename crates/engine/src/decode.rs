//! Reading an object that was sent: one walk along the types of its kind that
//! refuses wrong types, finds and drops unknown fields, drops nulls, and
//! brings times and quantities to their usual form.

use longshore_model::{KindInfo, Quantity, time};
use longshore_schema::{Shape, Structural, TypeRef, is_zero, registry};
use serde_json::{Map, Value, map::Entry};

use crate::{Error, FieldValidation, view::View};

/// Puts in the fields that the kind's objects always have.
pub(crate) fn complete(kind: &KindInfo, object: &mut Map<String, Value>) {
    if let Some(root) = registry().root(&kind.gvk) {
        longshore_schema::complete(root, object);
    }
}

/// A readable object, and what to warn of.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) object: Map<String, Value>,
    /// `metadata.managedFields`, if it was sent.
    pub(crate) managed: Option<Value>,
    pub(crate) warnings: Vec<String>,
}

/// Why an object cannot be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Problem {
    /// It is of another type.
    Unreadable(String),
    /// It has fields that its kind does not have, and that is asked for.
    Strict(String),
}

impl Problem {
    fn text(self) -> String {
        match self {
            Self::Unreadable(text) | Self::Strict(text) => text,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::BadRequest(problem.text())
    }
}

/// Reads an object of a kind.
pub(crate) fn decode(
    view: &View,
    object: Value,
    validation: FieldValidation,
) -> Result<Decoded, Problem> {
    let kind = &*view.info;
    let (api_version, name) = (kind.api_version(), &kind.gvk.kind);
    let cannot = |problem: String| {
        format!(
            "{name} in version {:?} cannot be handled as a {name}: {problem}",
            kind.gvk.version
        )
    };
    let Value::Object(mut object) = object else {
        return Err(Problem::Unreadable(cannot(format!(
            "json: cannot unmarshal {} into Go value of type {name}",
            word(&object)
        ))));
    };
    for (field, expected) in [("apiVersion", api_version.as_str()), ("kind", name)] {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(given)) if given.is_empty() || given == expected => {}
            Some(given) => {
                let given = given
                    .as_str()
                    .map_or_else(|| given.to_string(), str::to_owned);
                let (what, expected) = if field == "kind" {
                    ("kind", expected)
                } else {
                    ("API version", expected)
                };
                return Err(Problem::Unreadable(format!(
                    "the {what} in the data ({given}) does not match the expected {what} ({expected})"
                )));
            }
        }
    }
    let reset = take_managed(&mut object, |list| match list.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    });
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), name.as_ref().into());
    let mut walk = Walk {
        path: String::new(),
        unknown: Vec::new(),
        wrong: None,
    };
    match view.custom_kind() {
        Some(custom) => walk.custom(&custom.schema, &mut object),
        None => {
            if let Some(root) = registry().root(&kind.gvk) {
                walk.object(root, &mut object);
            }
        }
    }
    if let Some(wrong) = walk.wrong {
        return Err(Problem::Unreadable(cannot(wrong)));
    }
    let managed = reset.or_else(|| take_managed(&mut object, |_| true));
    tidy_metadata(&mut object);
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => walk.unknown,
        FieldValidation::Strict if walk.unknown.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            return Err(Problem::Strict(cannot(format!(
                "strict decoding error: {}",
                walk.unknown.join(", ")
            ))));
        }
    };
    Ok(Decoded {
        object,
        managed,
        warnings,
    })
}

/// Takes `metadata.managedFields` out of an object, if it is such a list.
fn take_managed(
    object: &mut Map<String, Value>,
    is_such: impl Fn(&Vec<Value>) -> bool,
) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    match metadata.get("managedFields") {
        Some(Value::Array(list)) if is_such(list) => metadata.remove("managedFields"),
        _ => None,
    }
}

/// Metadata is always there; what the server keeps for itself, and what is
/// empty, is not.
fn tidy_metadata(object: &mut Map<String, Value>) {
    let metadata = match object.entry("metadata") {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Value::Object(Map::new())),
    };
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|name, value| {
            let empty = match value {
                Value::Object(map) => map.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::String(text) => text.is_empty(),
                _ => false,
            };
            !empty && !matches!(name.as_str(), "managedFields" | "selfLink")
        });
    }
}

/// JSON's types as the messages call them.
pub(crate) fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a time is written with six decimals, neither more nor fewer.
fn has_micros(text: &str) -> bool {
    let decimals = text.get(19..).and_then(|rest| rest.strip_prefix('.'));
    decimals.is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() == 6)
}

/// Lists of resources are kept in thousandths.
fn round_up(amount: &mut Value) {
    if let Value::String(text) = amount
        && let Ok(quantity) = text.parse::<Quantity>()
    {
        *text = quantity.canonical_milli();
    }
}

struct Walk {
    path: String,
    unknown: Vec<String>,
    wrong: Option<String>,
}

impl Walk {
    /// An object of a custom kind: its metadata as all metadata, the rest by
    /// its schema, which also fills in defaults.
    fn custom(&mut self, schema: &Structural, object: &mut Map<String, Value>) {
        let meta = registry().named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        if let (Some(meta), Some(metadata)) = (meta, object.get_mut("metadata")) {
            self.path.push_str("metadata");
            self.value(meta, metadata);
            self.path.clear();
        }
        let mut value = Value::Object(std::mem::take(object));
        let unknown = schema.prune(&mut value);
        let words = unknown.iter().map(|path| format!("unknown field {path:?}"));
        self.unknown.extend(words);
        schema.fill(&mut value);
        if let Value::Object(filled) = value {
            *object = filled;
        }
    }

    fn object(&mut self, at: TypeRef, fields: &mut Map<String, Value>) {
        let length = self.path.len();
        fields.retain(|name, value| {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
            let keep = match at.field(name) {
                // A map's entry is there, be its value null.
                Some(inner) if value.is_null() && at.shape() == Shape::Map => {
                    let text = matches!(inner.shape(), Shape::String | Shape::Bytes);
                    if text {
                        *value = "".into();
                    }
                    text
                }
                Some(_) if value.is_null() => false,
                Some(inner) => {
                    self.value(inner, value);
                    if at.shape() == Shape::Map && inner.shape() == Shape::Quantity {
                        round_up(value);
                    }
                    !(inner.omits_zero() && is_zero(value))
                }
                None => {
                    self.unknown
                        .push(format!("unknown field \"{}\"", self.path));
                    false
                }
            };
            self.path.truncate(length);
            keep
        });
    }

    fn value(&mut self, at: TypeRef, value: &mut Value) {
        let shape = at.shape();
        match (shape, &mut *value) {
            (Shape::Object | Shape::Map, Value::Object(fields)) => self.object(at, fields),
            (Shape::List, Value::Array(items)) => {
                let Some(inner) = at.items() else { return };
                let length = self.path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    self.value(inner, item);
                    self.path.truncate(length);
                }
            }
            (Shape::String, Value::String(_))
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::Number, Value::Number(_))
            | (Shape::IntOrString, Value::String(_))
            | (Shape::Any, _) => {}
            (Shape::Integer | Shape::IntOrString, Value::Number(number))
                if number.is_i64() || number.is_u64() => {}
            (Shape::Quantity, Value::Number(number)) => {
                *value = number.to_string().into();
                self.value(at, value);
            }
            (Shape::Quantity, Value::String(text)) => match text.parse::<Quantity>() {
                Ok(quantity) => *text = quantity.canonical(),
                Err(_) => {
                    self.fail("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".into());
                }
            },
            (Shape::MicroTime, Value::String(text)) if !has_micros(text) => {
                let problem = format!(
                    "parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse {:?} as \".000000\"",
                    text.get(19..).unwrap_or_default()
                );
                self.fail(problem);
            }
            (Shape::Time | Shape::MicroTime, Value::String(text)) => match time::parse(text) {
                Some(at) if shape == Shape::Time => *text = time::seconds(at),
                Some(at) => *text = time::micros(at),
                None => {
                    let problem = format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?}"
                    );
                    self.fail(problem);
                }
            },
            (Shape::Bytes, Value::String(text)) => {
                use base64::{Engine as _, engine::general_purpose::STANDARD};
                if let Err(error) = STANDARD.decode(text.as_bytes()) {
                    self.fail(format!("illegal base64 data: {error}"));
                }
            }
            (_, other) => {
                let problem = format!(
                    "json: cannot unmarshal {} into Go struct field {} of type {}",
                    word(other),
                    self.path,
                    format!("{shape:?}").to_lowercase()
                );
                self.fail(problem);
            }
        }
    }

    fn fail(&mut self, problem: String) {
        let path = &self.path;
        self.wrong.get_or_insert_with(|| {
            if problem.contains(path.as_str()) {
                problem
            } else {
                format!("{path}: {problem}")
            }
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::kind::builtin;
    use serde_json::json;

    use super::*;

    fn pod(value: Value, validation: FieldValidation) -> Result<Decoded, Problem> {
        let info = std::sync::Arc::new(builtin("", "Pod").unwrap().clone());
        let view = View::stored(info, crate::facts::of("", "Pod").into());
        decode(&view, value, validation)
    }

    #[test]
    fn unknown_fields_are_dropped_and_told_or_refused() {
        let value = json!({"metadata": {"name": "a"}, "spec": {"foo": 1, "containers": []}});
        let decoded = pod(value.clone(), FieldValidation::Warn).unwrap();
        assert_eq!(decoded.warnings, [r#"unknown field "spec.foo""#]);
        assert_eq!(
            Value::from(decoded.object)["spec"],
            json!({"containers": []})
        );
        assert!(
            pod(value.clone(), FieldValidation::Ignore)
                .unwrap()
                .warnings
                .is_empty()
        );
        let problem = pod(value, FieldValidation::Strict).unwrap_err();
        assert_eq!(
            problem,
            Problem::Strict(
                r#"Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo""#
                    .into()
            )
        );
    }

    #[test]
    fn nulls_and_what_the_server_keeps_are_dropped() {
        let decoded = pod(
            json!({"metadata": {"name": "a", "creationTimestamp": null, "labels": {},
                "managedFields": [{"manager": "me"}], "selfLink": "x"}}),
            FieldValidation::Strict,
        )
        .unwrap();
        assert_eq!(
            Value::from(decoded.object),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
        );
    }

    #[test]
    fn wrong_types_are_unreadable() {
        for value in [
            json!([]),
            json!({"kind": "Job"}),
            json!({"apiVersion": "v2"}),
            json!({"metadata": []}),
            json!({"metadata": {"labels": {"a": 1}}}),
            json!({"spec": {"containers": {}}}),
            json!({"spec": {"terminationGracePeriodSeconds": 1.5}}),
            json!({"metadata": {"creationTimestamp": "yesterday"}}),
        ] {
            assert!(
                matches!(
                    pod(value.clone(), FieldValidation::Warn),
                    Err(Problem::Unreadable(_))
                ),
                "{value}"
            );
        }
    }

    #[test]
    fn times_and_quantities_get_their_usual_form() {
        let decoded = pod(
            json!({"metadata": {"creationTimestamp": "2026-01-02T05:04:05.678+02:00"},
                "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}]}}),
            FieldValidation::Warn,
        )
        .unwrap();
        let value = Value::from(decoded.object);
        assert_eq!(
            value["metadata"]["creationTimestamp"],
            "2026-01-02T03:04:05Z"
        );
        assert_eq!(
            value["spec"]["containers"][0]["resources"]["limits"]["cpu"],
            "1"
        );
    }
}
