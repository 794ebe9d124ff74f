//! The table of messages, which maps numbers to fields. It is read once from
//! `facts/messages.txt`, which `facts/generate.py` generates.
//!
//! A line `@package` starts a package. A line `Message name=number:type…`
//! describes a message. Types: `s` string, `b` boolean, `i` integer, `d`
//! floating-point number, `y` bytes, otherwise a message (of the same package,
//! or by full name). The prefix `*` denotes a list, `%` a map with string keys.
//! The name `^` denotes a message whose fields are inlined in the JSON of the
//! outer message. The suffix `?` denotes a field whose zero value is omitted
//! from JSON.

use std::{collections::HashMap, sync::OnceLock};

static MESSAGES: &str = include_str!("../facts/messages.txt");

/// A message and its fields, sorted by number.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: String,
    fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    number: u32,
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) cardinality: Cardinality,
    pub(super) value: Type,
    /// True if its fields are inlined in the JSON of the outer message.
    pub(super) is_inline: bool,
    /// True if the zero value is omitted from JSON.
    pub(super) omits_zero: bool,
}

/// The number of values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cardinality {
    One,
    List,
    /// With string keys.
    Map,
}

/// The type of a single value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    String,
    Boolean,
    Integer,
    Double,
    Bytes,
    /// A message, by its index in the table.
    Message(usize),
    /// A message with a special JSON format.
    Special(Special),
}

/// Messages whose JSON is not an object with their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON text as bytes.
    Json,
    /// A list in a separate message.
    Items,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStringArray,
}

impl Special {
    fn named(message: &str) -> Option<Self> {
        Some(match message.rsplit('.').next()? {
            "Time" => Self::Time,
            "MicroTime" => Self::MicroTime,
            "Quantity" => Self::Quantity,
            "IntOrString" => Self::IntOrString,
            "RawExtension" | "FieldsV1" | "JSON" => Self::Json,
            "Verbs" | "ExtraValue" => Self::Items,
            "JSONSchemaPropsOrArray" => Self::SchemaOrArray,
            "JSONSchemaPropsOrBool" => Self::SchemaOrBool,
            "JSONSchemaPropsOrStringArray" => Self::SchemaOrStringArray,
            _ => return None,
        })
    }
}

impl Message {
    /// The field with a number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let index = self
            .fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()?;
        self.fields.get(index)
    }
}

/// All messages.
#[derive(Debug)]
pub(super) struct Table {
    messages: Vec<Message>,
    names: HashMap<String, usize>,
}

/// The table; read on first use.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::read(MESSAGES))
}

impl Table {
    /// The message with a full name.
    pub(super) fn find(&self, name: &str) -> Option<&Message> {
        self.names.get(name).map(|index| &self.messages[*index])
    }

    /// The message at an index taken from the table itself.
    pub(super) fn at(&self, index: usize) -> &Message {
        &self.messages[index]
    }

    fn read(text: &'static str) -> Self {
        let mut lines = Vec::new();
        let mut package = "";
        let mut names = HashMap::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('@') {
                package = name;
            } else {
                let (name, fields) = line.split_once(' ').unwrap_or((line, ""));
                let name = format!("{package}.{name}");
                names.insert(name.clone(), lines.len());
                lines.push((package, name, fields));
            }
        }
        let messages = lines
            .into_iter()
            .map(|(package, name, fields)| {
                let mut fields: Vec<_> = fields
                    .split(' ')
                    .filter_map(|word| field(word, package, &names))
                    .collect();
                fields.sort_unstable_by_key(|field| field.number);
                Message { name, fields }
            })
            .collect();
        Self { messages, names }
    }
}

/// Parses `name=number:type`; `None` if the word is malformed.
fn field(word: &'static str, package: &str, names: &HashMap<String, usize>) -> Option<Field> {
    let (name, rest) = word.split_once('=')?;
    let (number, code) = rest.split_once(':')?;
    let (code, omits_zero) = match code.strip_suffix('?') {
        Some(code) => (code, true),
        None => (code, false),
    };
    let (cardinality, code) = match code.as_bytes().first()? {
        b'*' => (Cardinality::List, &code[1..]),
        b'%' => (Cardinality::Map, &code[1..]),
        _ => (Cardinality::One, code),
    };
    let value = match code {
        "s" => Type::String,
        "b" => Type::Boolean,
        "i" => Type::Integer,
        "d" => Type::Double,
        "y" => Type::Bytes,
        message => match Special::named(message) {
            Some(special) => Type::Special(special),
            None if message.contains('.') => Type::Message(*names.get(message)?),
            None => Type::Message(*names.get(&format!("{package}.{message}"))?),
        },
    };
    let is_inline = name == "^";
    Some(Field {
        number: number.parse().ok()?,
        name,
        cardinality,
        value,
        is_inline,
        omits_zero,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{definitions::kinds, graph::Shape, packages, registry};

    #[test]
    fn every_word_of_the_table_is_valid() {
        let words = MESSAGES
            .lines()
            .filter(|line| !line.starts_with('@'))
            .map(|line| line.split(' ').skip(1).count());
        let read = table().messages.iter().map(|message| message.fields.len());
        assert!(words.eq(read));
        for message in &table().messages {
            let numbers = message.fields.iter().map(|field| field.number);
            assert!(
                numbers.clone().zip(numbers.skip(1)).all(|(a, b)| a < b),
                "{}",
                message.name
            );
        }
    }

    /// The table has the fields of the schemas: every field that a client may send, and no field
    /// that a server does not know.
    #[test]
    fn messages_have_the_fields_of_the_schemas() {
        let mut todo: Vec<String> = kinds().map(|(name, _)| name.to_owned()).collect();
        todo.push(format!("{}.DeleteOptions", packages::META));
        let mut done = std::collections::HashSet::new();
        while let Some(name) = todo.pop() {
            if !done.insert(name.clone()) || Special::named(&name).is_some() {
                continue;
            }
            let message = table()
                .find(&name)
                .unwrap_or_else(|| panic!("no message {name}"));
            let mut ours = Vec::new();
            names_of(message, &mut ours);
            ours.sort_unstable();
            let mut theirs = Vec::new();
            for (field, mut at) in registry().named(&name).unwrap().fields() {
                if !["apiVersion", "kind"].contains(&field) || ours.contains(&field) {
                    theirs.push(field);
                }
                while at.definition().is_none()
                    && let Some(items) = at.items()
                {
                    at = items;
                }
                if let (Some(name), Shape::Object) = (at.definition(), at.shape()) {
                    todo.push(name.to_owned());
                }
            }
            assert_eq!(ours, theirs, "{name}");
        }
        assert!(done.len() > 300);
    }

    fn names_of(message: &Message, names: &mut Vec<&'static str>) {
        for field in &message.fields {
            match (field.is_inline, field.value) {
                (true, Type::Message(index)) => names_of(table().at(index), names),
                _ => names.push(field.name),
            }
        }
    }
}
