//! Declarations of JSON values for expressions: the part of a structural schema that decides types,
//! conversions and size limits.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use crate::escape::{escape, is_reserved};

/// The size of the largest request, which bounds all values.
pub(crate) const MAX_REQUEST_BYTES: u64 = 3 << 20;

/// The declaration of a value.
#[derive(Debug)]
pub struct Decl {
    pub(crate) shape: Shape,
    /// Maximum number of elements of a list or map, or of bytes in a string.
    pub(crate) max_elements: u64,
    /// Size of the shortest serialized value in bytes.
    pub(crate) min_size: u64,
}

/// The kind of a declared value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Any JSON value.
    Any,
    IntOrString,
    List {
        items: Arc<Decl>,
        kind: ListKind,
    },
    Map(Arc<Decl>),
    /// Fields by their identifiers.
    Object(BTreeMap<String, Field>),
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    Bool,
    Double,
    Int,
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name in JSON.
    pub(crate) name: String,
    pub(crate) decl: Arc<Decl>,
}

/// The semantics of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    /// Items are identified by the values of these fields.
    Map(Vec<String>),
}

impl Decl {
    /// The declaration of values without a schema.
    #[must_use]
    pub fn any() -> Arc<Self> {
        static ANY: OnceLock<Arc<Decl>> = OnceLock::new();
        ANY.get_or_init(|| Self::new(Shape::Any, 0, 1)).clone()
    }

    /// A reference to [`Decl::any`].
    pub(crate) fn any_ref() -> &'static Self {
        static ANY: Decl = Decl {
            shape: Shape::Any,
            max_elements: 0,
            min_size: 1,
        };
        &ANY
    }

    pub(crate) fn new(shape: Shape, max_elements: u64, min_size: u64) -> Arc<Self> {
        Arc::new(Self {
            shape,
            max_elements,
            min_size,
        })
    }

    /// An object with these fields, for variables that are not custom objects.
    #[must_use]
    pub fn object(fields: &[(&str, Arc<Self>)]) -> Arc<Self> {
        let fields = fields.iter().filter_map(|(name, decl)| {
            let field = Field {
                name: (*name).to_owned(),
                decl: decl.clone(),
            };
            Some((escape(name)?, field))
        });
        Self::new(Shape::Object(fields.collect()), 0, 2)
    }

    /// A string whose length is not limited.
    #[must_use]
    pub fn string() -> Arc<Self> {
        Self::new(Shape::String, MAX_REQUEST_BYTES - 2, 2)
    }

    /// A boolean.
    #[must_use]
    pub fn bool() -> Arc<Self> {
        Self::new(Shape::Bool, 0, 4)
    }

    /// An integer.
    #[must_use]
    pub fn int() -> Arc<Self> {
        Self::new(Shape::Int, 0, 1)
    }

    /// A number.
    #[must_use]
    pub fn double() -> Arc<Self> {
        Self::new(Shape::Double, 0, 1)
    }

    /// A time.
    #[must_use]
    pub fn time() -> Arc<Self> {
        Self::new(Shape::DateTime, 32, 21)
    }

    /// Bytes, encoded as base64.
    #[must_use]
    pub fn bytes() -> Arc<Self> {
        Self::new(Shape::Bytes, MAX_REQUEST_BYTES - 2, 2)
    }

    /// A number or a string.
    #[must_use]
    pub fn int_or_string() -> Arc<Self> {
        Self::new(Shape::IntOrString, MAX_REQUEST_BYTES - 2, 1)
    }

    /// Returns the object with other declarations for some of its fields.
    #[must_use]
    pub fn with_fields(&self, fields: Vec<(&str, Arc<Self>)>) -> Arc<Self> {
        let own = match &self.shape {
            Shape::Object(own) => own.iter(),
            _ => return Self::any(),
        };
        let mut all: BTreeMap<String, Field> = own
            .map(|(identifier, field)| {
                let (name, decl) = (field.name.clone(), field.decl.clone());
                (identifier.clone(), Field { name, decl })
            })
            .collect();
        for (name, decl) in fields {
            let name = name.to_owned();
            all.insert(name.clone(), Field { name, decl });
        }
        Self::new(Shape::Object(all), 0, self.min_size)
    }

    /// A list of values.
    #[must_use]
    pub fn list(items: Arc<Self>) -> Arc<Self> {
        let kind = ListKind::Atomic;
        Self::new(Shape::List { items, kind }, MAX_REQUEST_BYTES / 3, 2)
    }

    /// A map of strings to values.
    #[must_use]
    pub fn map(values: Arc<Self>) -> Arc<Self> {
        Self::new(Shape::Map(values), MAX_REQUEST_BYTES / 7, 2)
    }

    /// Reads a schema. Returns `None` for values that expressions cannot access, because their type
    /// is not known. The `root` of an object also has its type and name.
    #[must_use]
    pub fn of_schema(schema: &Value, root: bool) -> Option<Arc<Self>> {
        let text = |name: &str| schema[name].as_str().unwrap_or_default();
        let limit = |name: &str| integer(&schema[name]);
        if schema["x-kubernetes-int-or-string"] == true {
            let limit = limit("maxLength").map_or(MAX_REQUEST_BYTES - 2, four_times);
            return Some(Self::new(Shape::IntOrString, limit, 1));
        }
        Some(match text("type") {
            "array" => {
                let items = &schema["items"];
                let items = Self::of_schema(items, is_embedded(items))?;
                let most = (MAX_REQUEST_BYTES - 2) / items.min_size.saturating_add(1);
                let kind = match text("x-kubernetes-list-type") {
                    "set" => ListKind::Set,
                    "map" => ListKind::Map(strings(&schema["x-kubernetes-list-map-keys"])),
                    _ => ListKind::Atomic,
                };
                let limit = limit("maxItems").unwrap_or(most);
                Self::new(Shape::List { items, kind }, limit, 2)
            }
            "object" => {
                let values = &schema["additionalProperties"];
                if values.is_object() && !root {
                    let values = Self::of_schema(values, is_embedded(values))?;
                    let most = (MAX_REQUEST_BYTES - 2) / values.min_size.saturating_add(6);
                    let limit = limit("maxProperties").unwrap_or(most);
                    return Some(Self::new(Shape::Map(values), limit, 2));
                }
                Self::of_object(schema, root)
            }
            "string" => Self::of_string(schema, text("format"), limit("maxLength")),
            "boolean" => Self::new(Shape::Bool, 0, 4),
            "number" => Self::new(Shape::Double, 0, 1),
            "integer" => Self::new(Shape::Int, 0, 1),
            _ => return None,
        })
    }

    fn of_string(schema: &Value, format: &str, limit: Option<u64>) -> Arc<Self> {
        match format {
            "byte" => Self::new(Shape::Bytes, limit.unwrap_or(MAX_REQUEST_BYTES - 2), 2),
            "duration" => Self::new(Shape::Duration, 32, 3),
            "date" => Self::new(Shape::Date, 12, 12),
            "date-time" => Self::new(Shape::DateTime, 32, 21),
            _ => {
                let words = schema["enum"].as_array().filter(|words| !words.is_empty());
                let longest = words.map(|words| {
                    let lengths = words.iter().filter_map(Value::as_str).map(str::len);
                    lengths.max().unwrap_or_default() as u64
                });
                let limit = limit
                    .map(four_times)
                    .or(longest)
                    .unwrap_or(MAX_REQUEST_BYTES - 2);
                Self::new(Shape::String, limit, 2)
            }
        }
    }

    fn of_object(schema: &Value, root: bool) -> Arc<Self> {
        let mut fields = BTreeMap::new();
        let mut min_size = 2u64;
        let required = strings(&schema["required"]);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let Some(decl) = Self::of_schema(property, is_embedded(property)) else {
                continue;
            };
            if required.contains(name) && property["default"].is_null() {
                let size = decl.min_size.saturating_add(name.len() as u64 + 4);
                min_size = min_size.saturating_add(size);
            }
            if let Some(escaped) = escape(name) {
                let name = name.clone();
                fields.insert(escaped, Field { name, decl });
            }
        }
        if root {
            add_meta(schema, &mut fields);
        }
        Self::new(Shape::Object(fields), 0, min_size)
    }

    /// The declaration of a field, by its identifier. As in Kubernetes since 1.31,
    /// a reserved word also names its field without the escape.
    pub(crate) fn field(&self, identifier: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object(fields) => fields.get(identifier).or_else(|| {
                let is_reserved = is_reserved(identifier);
                is_reserved.then(|| fields.get(&format!("__{identifier}__")))?
            }),
            _ => None,
        }
    }

    /// The declaration of the value of a key in JSON.
    pub(crate) fn at_key(&self, name: &str) -> Option<&Arc<Self>> {
        match &self.shape {
            Shape::Map(values) => Some(values),
            Shape::Object(fields) => {
                let field = fields.get(&escape(name)?)?;
                (field.name == name).then_some(&field.decl)
            }
            _ => None,
        }
    }

    /// The declaration of the items of a list or the values of a map.
    pub(crate) fn element_decl(&self) -> Option<&Arc<Self>> {
        match &self.shape {
            Shape::List { items, .. } => Some(items),
            Shape::Map(values) => Some(values),
            _ => None,
        }
    }

    /// Like [`Decl::element_decl`], as a plain reference.
    pub(crate) fn element(&self) -> Option<&Self> {
        self.element_decl().map(|decl| &**decl)
    }
}

fn add_meta(schema: &Value, fields: &mut BTreeMap<String, Field>) {
    let mut add = |name: &str, decl: Arc<Decl>| {
        let name = name.to_owned();
        fields.insert(name.clone(), Field { name, decl });
    };
    let metadata = &schema["properties"]["metadata"]["properties"];
    let capped = |name: &str, most: u64| {
        let limit = integer(&metadata[name]["maxLength"]).map_or(most, |limit| limit.min(most));
        Decl::new(Shape::String, four_times(limit), 2)
    };
    add("kind", Decl::string());
    add("apiVersion", Decl::string());
    let names = [
        ("name", capped("name", 253)),
        ("generateName", capped("generateName", 252)),
    ];
    add("metadata", Decl::object(&names));
}

/// A character may take four bytes.
fn four_times(length: u64) -> u64 {
    length.saturating_mul(4)
}

fn is_embedded(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

/// A limit; a negative one counts as 0.
pub(crate) fn integer(value: &Value) -> Option<u64> {
    match value.as_i64() {
        Some(number) => Some(u64::try_from(number).unwrap_or_default()),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        None => value.as_f64().map(|number| number.max(0.0) as u64),
    }
}

fn strings(value: &Value) -> Vec<String> {
    let words = value.as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}
