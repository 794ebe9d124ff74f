//! Locations in a document that paths refer to.

use serde_json::{Map, Value};

/// The value of a field that an object does not have.
static NULL: Value = Value::Null;

/// A location in a document: its parent object or list, and the last part of its path.
pub(super) struct Place<'a> {
    parent: Parent<'a>,
    key: String,
}

enum Parent<'a> {
    Object(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

impl<'a> Place<'a> {
    /// Finds the location of a path. Returns `None` if the path is empty, or if its object or list
    /// does not exist.
    pub(super) fn find(document: &'a mut Value, path: &str) -> Option<Self> {
        let mut parts = path.split('/').skip(1);
        let mut key = decoded(parts.next()?);
        let mut at = document;
        for part in parts {
            at = match at {
                Value::Object(fields) => fields.get_mut(&key)?,
                Value::Array(list) => {
                    let index = element(&key, list.len()).ok()?;
                    list.get_mut(index)?
                }
                _ => return None,
            };
            key = decoded(part);
        }
        let parent = match at {
            Value::Object(fields) => Parent::Object(fields),
            Value::Array(list) => Parent::List(list),
            _ => return None,
        };
        Some(Self { parent, key })
    }

    /// The last part of the path.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The number of elements that a removal or an addition shifts.
    pub(super) fn shifted(&self) -> usize {
        match &self.parent {
            Parent::Object(_) => 0,
            Parent::List(list) => {
                let index = inserted(&self.key, list.len()).unwrap_or(list.len());
                list.len().saturating_sub(index)
            }
        }
    }

    pub(super) fn get(&self) -> Result<&Value, String> {
        match &self.parent {
            Parent::Object(fields) => Ok(fields.get(&self.key).unwrap_or(&NULL)),
            Parent::List(list) => Ok(&list[element(&self.key, list.len())?]),
        }
    }

    /// Like [`Place::get`], for the whole life of the document.
    pub(super) fn into_value(self) -> Result<&'a Value, String> {
        match self.parent {
            Parent::Object(fields) => Ok(fields.get(&self.key).unwrap_or(&NULL)),
            Parent::List(list) => {
                let index = element(&self.key, list.len())?;
                Ok(&list[index])
            }
        }
    }

    /// Sets a field of an object, or an element that exists.
    pub(super) fn set(self, value: Value) -> Result<(), String> {
        match self.parent {
            Parent::Object(fields) => {
                fields.insert(self.key, value);
            }
            Parent::List(list) => {
                let index = element(&self.key, list.len())?;
                list[index] = value;
            }
        }
        Ok(())
    }

    /// Sets a field of an object, or inserts an element.
    pub(super) fn add(self, value: Value) -> Result<(), String> {
        match self.parent {
            Parent::Object(fields) => {
                fields.insert(self.key, value);
            }
            Parent::List(list) => {
                let index = inserted(&self.key, list.len())?;
                list.insert(index, value);
            }
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<Value, String> {
        match self.parent {
            Parent::Object(fields) => fields.remove(&self.key).ok_or_else(|| {
                let key = &self.key;
                format!("Unable to remove nonexistent key: {key}: missing value")
            }),
            Parent::List(list) => {
                let index = element(&self.key, list.len())?;
                Ok(list.remove(index))
            }
        }
    }
}

/// Decodes a part of a path: `~1` is a slash, `~0` is a tilde, and other tildes are literal.
fn decoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        text.push_str(before);
        let (char, length) = match after.as_bytes().first() {
            Some(b'1') => ('/', 1),
            Some(b'0') => ('~', 1),
            _ => ('~', 0),
        };
        text.push(char);
        rest = &after[length..];
    }
    text.push_str(rest);
    text
}

/// The index of an existing element.
fn element(key: &str, length: usize) -> Result<usize, String> {
    index(key, length)
}

/// The index at which an element is inserted.
fn inserted(key: &str, length: usize) -> Result<usize, String> {
    match key {
        "-" => Ok(length),
        key => index(key, length + 1).map_err(|problem| match key.parse::<i64>() {
            Ok(_) => problem,
            Err(_) => format!("value was not a proper array index: '{key}': {problem}"),
        }),
    }
}

/// Parses an index below `end`; negative indexes count from `end`.
fn index(key: &str, end: usize) -> Result<usize, String> {
    let number: i64 = key
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let distance = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let index = match number < 0 {
        true => end.checked_sub(distance),
        false => Some(distance),
    };
    index.filter(|index| *index < end).ok_or_else(|| {
        format!("Unable to access invalid index: {number}: invalid index referenced")
    })
}
