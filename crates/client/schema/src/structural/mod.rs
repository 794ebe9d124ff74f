//! Structural schemas: how a CustomResourceDefinition describes its objects.
//! They are parsed once and then used to prune unknown fields, to set defaults
//! and to validate. The crate `cel` evaluates their rules
//! (`x-kubernetes-validations`).

mod causes;
mod constraints;
mod embedded;
mod formats;
mod lists;
mod ownership;
mod patterns;
mod pruning;
pub mod rules;
mod validation;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::ListType;
use constraints::Constraints;

/// The type that a schema declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(crate) const NAMES: [&'static str; 6] =
        ["array", "boolean", "integer", "number", "object", "string"];

    fn from_name(word: &str) -> Option<Self> {
        Some(match word {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The keys that an object may have in addition to its properties.
#[derive(Debug, Clone, PartialEq)]
enum Additional {
    /// No additional keys.
    Undeclared,
    /// Any keys with arbitrary values.
    Any,
    /// Any keys with values of a type.
    Of(Box<Structural>),
}

/// A node of a structural schema.
///
/// ```
/// use longshore_schema::Structural;
/// let schema = Structural::parse(&serde_json::json!({
///     "type": "object",
///     "properties": {"spec": {"type": "object", "properties": {
///         "replicas": {"type": "integer", "default": 1},
///     }}},
/// }));
/// let mut object = serde_json::json!({"spec": {"colour": "red"}});
/// assert_eq!(schema.prune(&mut object), ["spec.colour"]);
/// schema.fill(&mut object);
/// assert_eq!(object, serde_json::json!({"spec": {"replicas": 1}}));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Structural {
    kind: Option<Type>,
    nullable: bool,
    properties: BTreeMap<String, Structural>,
    additional: Additional,
    items: Option<Box<Structural>>,
    default: Option<Value>,
    preserves_unknown: bool,
    /// True if this is an object with its own type and metadata, like the root.
    embedded: bool,
    root: bool,
    /// True if objects within objects are possible here or below.
    has_embedded: bool,
    int_or_string: bool,
    list_type: Option<ListType>,
    list_map_keys: Vec<String>,
    atomic: bool,
    constraints: Constraints,
}

impl Structural {
    /// Parses an `openAPIV3Schema`. A malformed schema is parsed as an empty
    /// one, and patterns that exceed the size limit together match everything;
    /// [`rules::check`] reports the errors of a schema.
    #[must_use]
    pub fn parse(schema: &Value) -> Self {
        // A definition may have been stored before the size of patterns was
        // limited.
        let mut root = match patterns::fit_size_limit(schema) {
            true => Self::node(schema),
            false => Self::node(&patterns::without_patterns(schema)),
        };
        root.embedded = true;
        root.root = true;
        root
    }

    fn node(schema: &Value) -> Self {
        let mut node = Self::read(schema);
        node.has_embedded = node.find_embedded();
        // Makes setting defaults idempotent.
        if let Some(mut default) = node.default.take() {
            node.drop_nulls(&mut default);
            node.default = Some(default);
        }
        node
    }

    fn read(schema: &Value) -> Self {
        let nothing = Map::new();
        let fields = schema.as_object().unwrap_or(&nothing);
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let flag = |name: &str| fields.get(name).and_then(Value::as_bool) == Some(true);
        let properties = fields.get("properties").and_then(Value::as_object);
        Self {
            kind: text("type").and_then(Type::from_name),
            nullable: flag("nullable"),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), Self::node(schema)))
                .collect(),
            additional: match fields.get("additionalProperties") {
                Some(schema @ Value::Object(_)) => Additional::Of(Box::new(Self::node(schema))),
                Some(Value::Bool(_)) => Additional::Any,
                _ => Additional::Undeclared,
            },
            items: fields
                .get("items")
                .filter(|items| items.is_object())
                .map(|items| Box::new(Self::node(items))),
            default: fields.get("default").filter(|v| !v.is_null()).cloned(),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            root: false,
            has_embedded: false,
            int_or_string: flag("x-kubernetes-int-or-string"),
            list_type: match text("x-kubernetes-list-type") {
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                Some("atomic") => Some(ListType::Atomic),
                _ => None,
            },
            list_map_keys: strings(fields.get("x-kubernetes-list-map-keys")),
            atomic: text("x-kubernetes-map-type") == Some("atomic"),
            constraints: Constraints::parse(fields),
        }
    }

    /// The memory that the patterns use, in bytes.
    #[must_use]
    pub fn pattern_size(&self) -> usize {
        let constraints = &self.constraints;
        let own = constraints.pattern.as_ref().and_then(|p| p.regex.as_ref());
        let additional = match &self.additional {
            Additional::Of(schema) => Some(&**schema),
            _ => None,
        };
        let below = self
            .properties
            .values()
            .chain(additional)
            .chain(self.items.as_deref())
            .chain(constraints.not.as_deref())
            .chain(
                constraints
                    .all_of
                    .iter()
                    .chain(&constraints.any_of)
                    .chain(&constraints.one_of),
            );
        own.map_or(0, |regex| regex.size()) + below.map(Self::pattern_size).sum::<usize>()
    }

    /// The schema of a property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name)
    }

    /// The schema of the value of a key.
    fn at_key(&self, key: &str) -> Option<&Self> {
        match (self.properties.get(key), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Of(schema)) => Some(schema),
            (None, _) => None,
        }
    }

    /// Returns true if the type is a string, number or boolean, which field selectors support.
    #[must_use]
    pub fn is_selectable(&self) -> bool {
        matches!(
            self.kind,
            Some(Type::String | Type::Integer | Type::Boolean)
        )
    }
}

/// Converts a regular expression of Go so that the crate `regex` reads it in the
/// same way.
#[must_use]
pub fn as_go_reads(pattern: &str) -> String {
    patterns::as_go_reads(pattern)
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let words = value.and_then(Value::as_array).into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

/// Returns true if the field is part of the type or the metadata, which every object has in
/// addition to its schema.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests;
