//! Walks along the types of a kind. Rejects wrong types with the messages of
//! Go's decoder, finds unknown fields, and normalizes every value.

use base64::{Engine as _, alphabet, engine::GeneralPurpose, engine::GeneralPurposeConfig};
use longshore_model::{MessageList, Quantity, QuantityError, time};
use longshore_schema::{Shape, Structural, TypeRef, is_zero, registry};
use serde_json::{Map, Number, Value, json};

use super::json_type_name;

/// Go's standard base64 encoding: padded, and lenient about trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The first value that could not be decoded and its position: the fields from
/// the inside out, and the type that contains the innermost field.
#[derive(Debug)]
pub(super) struct WalkError {
    problem: Mismatch,
    fields: Vec<String>,
    owner: Option<&'static str>,
}

#[derive(Debug)]
enum Mismatch {
    /// The value does not have the declared type.
    Type {
        found: String,
        wanted: String,
        /// The message for strategic merge patches.
        restored: String,
    },
    /// The message of a type-specific decoder, which does not know the path.
    Own(String),
}

impl WalkError {
    pub(super) fn text(self) -> String {
        let (found, wanted) = match self.problem {
            Mismatch::Own(text) => return text,
            Mismatch::Type { found, wanted, .. } => (found, wanted),
        };
        let fields: Vec<&str> = self.fields.iter().rev().map(String::as_str).collect();
        match self.owner {
            Some(owner) => format!(
                "json: cannot unmarshal {found} into Go struct field {owner}.{} of type {wanted}",
                fields.join(".")
            ),
            None => format!("json: cannot unmarshal {found} into Go value of type {wanted}"),
        }
    }
}

impl WalkError {
    /// The message where Go converts a map to an object without encoding it as JSON first, as for
    /// strategic merge patches.
    pub(super) fn restored(&self) -> String {
        match &self.problem {
            Mismatch::Own(text) if text.starts_with("illegal base64") => {
                format!("error decoding from json: {text}")
            }
            Mismatch::Own(text) => text.clone(),
            Mismatch::Type { restored, .. } => restored.clone(),
        }
    }
}

/// Formats a wrong type the way Go formats values in memory.
fn restored(at: TypeRef, value: &Value) -> String {
    let found = match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match (at.shape(), found) {
        (Shape::Object, _) => format!("cannot restore struct from: {found}"),
        (Shape::Map, _) => format!("cannot restore map from {found}"),
        (Shape::List | Shape::Bytes, _) => format!("cannot restore slice from {found}"),
        (Shape::String, "int64") | (Shape::Integer, "int64" | "float64") => {
            format!("cannot convert {found} to {}", at.go_type())
        }
        (Shape::Boolean, _) => "unrecognized type: bool".into(),
        (Shape::Integer, _) if at.is_narrow() => "unrecognized type: int32".into(),
        (Shape::Integer, _) => "unrecognized type: int64".into(),
        (Shape::Number, _) => "unrecognized type: float64".into(),
        _ => "unrecognized type: string".into(),
    }
}

/// Returns true if a time has exactly six decimals.
fn has_micros(text: &str) -> bool {
    let decimals = text.get(19..).and_then(|rest| rest.strip_prefix('.'));
    decimals.is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() == 6)
}

/// Rounds a quantity in a resource list up to thousandths.
fn round_up(amount: &mut Value) {
    if let Value::String(text) = amount
        && let Ok(quantity) = text.parse::<Quantity>()
    {
        *text = quantity.canonical_milli();
    }
}

/// The zero value of an element before it is decoded.
fn zero(at: TypeRef) -> Value {
    match at.shape() {
        Shape::Object => json!({}),
        Shape::String | Shape::Bytes => json!(""),
        Shape::Quantity => json!("0"),
        Shape::Integer | Shape::Number | Shape::IntOrString => json!(0),
        Shape::Boolean => json!(false),
        _ => Value::Null,
    }
}

/// Returns true if a number is an integer within the range of its type.
fn fits(at: TypeRef, number: &Number) -> bool {
    let small = at.shape() == Shape::IntOrString || at.is_narrow();
    number
        .as_i64()
        .is_some_and(|number| !small || i32::try_from(number).is_ok())
}

/// Returns the rest of the text at which Go's time parser fails, and the expected layout element.
fn time_parse_failure<'a>(text: &'a str, layout: &'static str) -> (&'a str, &'static str) {
    const PARTS: [(&str, usize); 11] = [
        ("2006", 4),
        ("-", 1),
        ("01", 2),
        ("-", 1),
        ("02", 2),
        ("T", 1),
        ("15", 2),
        (":", 1),
        ("04", 2),
        (":", 1),
        ("05", 2),
    ];
    let mut at = 0;
    for (part, length) in PARTS {
        let next = text.get(at..at + length);
        let good = next.is_some_and(|next| {
            next == part || part.len() > 1 && next.bytes().all(|b| b.is_ascii_digit())
        });
        if !good {
            return (text.get(at..).unwrap_or_default(), part);
        }
        at += length;
    }
    let rest = text.get(at..).unwrap_or_default();
    if layout.contains(".000000") && !has_micros(text) {
        return (rest, ".000000");
    }
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    (zone, "Z07:00")
}

/// The index of the first byte that Go's base64 decoder rejects, in Go's
/// message.
pub(crate) fn illegal_base64(text: &str, error: &base64::DecodeError) -> String {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    let plain = match error {
        InvalidByte(at, _) | InvalidLastSymbol(at, _) => *at,
        InvalidLength(length) => length / 4 * 4,
        InvalidPadding => text.len() / 4 * 4,
    };
    let breaks = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '\r' | '\n'));
    let at = breaks.fold(plain, |at, (place, _)| at + usize::from(place <= at));
    format!("illegal base64 data at input byte {at}")
}

fn object_meta() -> Option<TypeRef> {
    registry().named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
}

/// Drops parts of the type and metadata of a stored embedded object that have the wrong types,
/// because the definition may have changed since.
pub(crate) fn drop_invalid(object: &mut Map<String, Value>) {
    object.retain(|name, value| value.is_string() || !matches!(&**name, "apiVersion" | "kind"));
    let meta = object_meta();
    let (Some(meta), Some(Value::Object(metadata))) = (meta, object.get_mut("metadata")) else {
        return;
    };
    metadata.retain(|name, value| {
        let mut one = Map::from_iter([(name.clone(), std::mem::take(value))]);
        let mut walk = Walk::default();
        walk.object(meta, &mut one);
        if let Some(decoded) = one.remove(name) {
            *value = decoded;
            return walk.wrong.is_none();
        }
        false
    });
}

#[derive(Debug, Default)]
pub(super) struct Walk {
    path: String,
    pub(super) unknown: MessageList,
    pub(super) wrong: Option<WalkError>,
}

impl Walk {
    /// Decodes an object of a custom kind: its metadata as `ObjectMeta`, the rest by its schema,
    /// which also supplies defaults.
    pub(super) fn custom(&mut self, schema: &Structural, object: &mut Map<String, Value>) {
        if let (Some(meta), Some(metadata)) = (object_meta(), object.get_mut("metadata")) {
            self.path.push_str("metadata");
            self.value(meta, metadata);
            self.path.clear();
        }
        let mut value = Value::Object(std::mem::take(object));
        let unknown = schema.prune(&mut value);
        let words = unknown.iter().map(|path| format!("unknown field {path:?}"));
        self.unknown.extend(words);
        schema.fill(&mut value);
        schema.visit_embedded(&mut value, &mut |path, inner| self.embedded(path, inner));
        if let Value::Object(filled) = value {
            *object = filled;
        }
    }

    /// Decodes the type and metadata of an object that is embedded in a custom object.
    fn embedded(&mut self, path: &str, object: &mut Map<String, Value>) {
        for field in ["apiVersion", "kind"] {
            if let Some(other) = object.get(field).filter(|value| !value.is_string()) {
                let text = format!("{path}.{field}: Invalid value: {other}: must be a string");
                self.fail(Mismatch::Own(text));
            }
        }
        let (Some(meta), Some(metadata)) = (object_meta(), object.get_mut("metadata")) else {
            return;
        };
        if metadata.is_null() {
            *metadata = json!({});
        }
        let earlier = self.wrong.take();
        let given = metadata.clone();
        self.path = format!("{path}.metadata");
        self.value(meta, metadata);
        self.path.clear();
        if let Some(wrong) = self.wrong.take() {
            let problem = wrong.text();
            let text = format!("{path}.metadata: Invalid value: {given}: {problem}");
            self.fail(Mismatch::Own(text));
        }
        if earlier.is_some() {
            self.wrong = earlier;
        }
    }

    pub(super) fn object(&mut self, at: TypeRef, fields: &mut Map<String, Value>) {
        let length = self.path.len();
        fields.retain(|name, value| {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
            let keep = match at.field(name) {
                // A map entry exists even if its value is null.
                Some(inner) if value.is_null() && at.shape() == Shape::Map => {
                    *value = zero(inner);
                    !value.is_null()
                }
                Some(_) if value.is_null() => false,
                Some(inner) => {
                    let before = self.wrong.is_some();
                    self.value(inner, value);
                    if let Some(wrong) = self.wrong.as_mut().filter(|_| !before)
                        && at.shape() == Shape::Object
                    {
                        wrong.fields.push(name.clone());
                        wrong.owner = wrong.owner.or(at.type_name());
                    }
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
                    // As in Go, null leaves a new element at its zero value.
                    if item.is_null() {
                        *item = zero(inner);
                        continue;
                    }
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
            (Shape::Integer | Shape::IntOrString, Value::Number(number)) if fits(at, number) => {}
            (Shape::Quantity, Value::Number(number)) => {
                *value = number.to_string().into();
                self.value(at, value);
            }
            (Shape::Quantity, Value::String(text)) => match text.trim().parse::<Quantity>() {
                Ok(quantity) => *text = quantity.canonical(),
                Err(error) => self.fail(Mismatch::Own(error.server_message().into())),
            },
            (Shape::Quantity, _) => self.fail(Mismatch::Own(QuantityError::FORM.into())),
            (Shape::Time | Shape::MicroTime, Value::String(text)) => {
                let layout = if shape == Shape::Time {
                    "2006-01-02T15:04:05Z07:00"
                } else {
                    "2006-01-02T15:04:05.000000Z07:00"
                };
                let strict = shape == Shape::Time || has_micros(text);
                match time::parse(text).filter(|_| strict) {
                    Some(at) if shape == Shape::Time => *text = time::seconds(at),
                    Some(at) => *text = time::micros(at),
                    None => {
                        let (rest, part) = time_parse_failure(text, layout);
                        self.fail(Mismatch::Own(format!(
                            "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"
                        )));
                    }
                }
            }
            (Shape::Time | Shape::MicroTime, other) => {
                let found = json_type_name(other);
                self.fail(Mismatch::Own(format!(
                    "json: cannot unmarshal {found} into Go value of type string"
                )));
            }
            (Shape::IntOrString, Value::Number(number)) => {
                let text =
                    format!("json: cannot unmarshal number {number} into Go value of type int32");
                self.fail(Mismatch::Own(text));
            }
            (Shape::IntOrString, other) => {
                let found = json_type_name(other);
                self.fail(Mismatch::Own(format!(
                    "json: cannot unmarshal {found} into Go value of type int32"
                )));
            }
            (Shape::Bytes, Value::String(text)) => {
                // Line breaks are accepted but dropped.
                let mut plain = std::borrow::Cow::Borrowed(text.as_str());
                if plain.contains(['\r', '\n']) {
                    plain = plain.replace(['\r', '\n'], "").into();
                }
                match BASE64.decode(plain.as_bytes()) {
                    Ok(bytes) => {
                        if plain.len() != text.len() || plain.ends_with('=') {
                            *text = BASE64.encode(bytes);
                        }
                    }
                    Err(error) => {
                        self.fail(Mismatch::Own(illegal_base64(text, &error)));
                    }
                }
            }
            (_, other) => {
                let found = match &*other {
                    Value::Number(number) if shape == Shape::Integer => format!("number {number}"),
                    other => json_type_name(other).to_owned(),
                };
                self.fail(Mismatch::Type {
                    found,
                    wanted: at.go_type(),
                    restored: restored(at, other),
                });
            }
        }
    }

    fn fail(&mut self, problem: Mismatch) {
        self.wrong.get_or_insert_with(|| WalkError {
            problem,
            fields: Vec::new(),
            owner: None,
        });
    }
}
