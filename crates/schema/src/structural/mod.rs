//! Structural schemas: what a CustomResourceDefinition says of its objects.
//! Parsed once, then used to drop unknown fields, to fill in defaults and to
//! validate. CEL rules (`x-kubernetes-validations`) are kept in the definition
//! but not evaluated.

mod causes;
mod checks;
mod embedded;
mod formats;
mod lists;
mod owned;
mod patterns;
mod pruning;
pub mod rules;
mod validation;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::ListType;
use checks::Checks;

/// The type a schema declares.
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
    pub(crate) const WORDS: [&'static str; 6] =
        ["array", "boolean", "integer", "number", "object", "string"];

    fn from_word(word: &str) -> Option<Self> {
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

    fn word(self) -> &'static str {
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

/// What keys beside its properties an object may have.
#[derive(Debug, Clone, PartialEq)]
enum Additional {
    /// None.
    Undeclared,
    /// Any, of which nothing is said.
    Any,
    /// Any, with values of a type.
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
    /// An object with a type and metadata of its own, as the root is.
    embedded: bool,
    root: bool,
    int_or_string: bool,
    list_type: Option<ListType>,
    list_map_keys: Vec<String>,
    atomic: bool,
    checks: Checks,
}

impl Structural {
    /// Reads an `openAPIV3Schema`. What is no schema reads as one that says
    /// nothing, and patterns that are too large together match everything;
    /// [`rules::check`] tells what is wrong with a schema.
    #[must_use]
    pub fn parse(schema: &Value) -> Self {
        // A definition that was stored before patterns were bounded.
        let mut root = match patterns::fit(schema) {
            true => Self::node(schema),
            false => Self::node(&patterns::without(schema)),
        };
        root.embedded = true;
        root.root = true;
        root
    }

    fn node(schema: &Value) -> Self {
        let mut node = Self::read(schema);
        // So that filling in twice is filling in once.
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
            kind: text("type").and_then(Type::from_word),
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
            int_or_string: flag("x-kubernetes-int-or-string"),
            list_type: match text("x-kubernetes-list-type") {
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                Some("atomic") => Some(ListType::Atomic),
                _ => None,
            },
            list_map_keys: strings(fields.get("x-kubernetes-list-map-keys")),
            atomic: text("x-kubernetes-map-type") == Some("atomic"),
            checks: Checks::parse(fields),
        }
    }

    /// Bytes of memory that its patterns take.
    #[must_use]
    pub fn pattern_size(&self) -> usize {
        let checks = &self.checks;
        let own = checks.pattern.as_ref().and_then(|p| p.regex.as_ref());
        let additional = match &self.additional {
            Additional::Of(schema) => Some(&**schema),
            _ => None,
        };
        let below = self
            .properties
            .values()
            .chain(additional)
            .chain(self.items.as_deref())
            .chain(checks.not.as_deref())
            .chain(
                checks
                    .all_of
                    .iter()
                    .chain(&checks.any_of)
                    .chain(&checks.one_of),
            );
        own.map_or(0, |regex| regex.size()) + below.map(Self::pattern_size).sum::<usize>()
    }

    /// The schema of a property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name)
    }

    /// The schema of the value under a key.
    fn at_key(&self, key: &str) -> Option<&Self> {
        match (self.properties.get(key), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Of(schema)) => Some(schema),
            (None, _) => None,
        }
    }

    /// Whether it is a plain text, number or truth value, by which objects can
    /// be selected.
    #[must_use]
    pub fn is_selectable(&self) -> bool {
        matches!(
            self.kind,
            Some(Type::String | Type::Integer | Type::Boolean)
        )
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let words = value.and_then(Value::as_array).into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

/// Type and metadata, which every object has beside what its schema says.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests;
