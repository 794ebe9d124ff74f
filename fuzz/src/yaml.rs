//! YAML: documents within the limits are small after parsing, and rejected documents have
//! aliases or are deeply nested. Both are fast.

use longshore_model::yaml::{self, EXPANSION, LimitError};
use serde::Deserialize;
use serde_json::Value;

pub fn check(data: &[u8]) {
    match yaml::check(data) {
        Ok(()) => {
            let mut size = 0;
            for document in serde_yaml_ng::Deserializer::from_slice(data) {
                let Ok(value) = Value::deserialize(document) else {
                    break;
                };
                size += size_of(&value);
            }
            let most = 2 * data.len() + EXPANSION;
            assert!(
                size <= most,
                "{} bytes of text have size {size}",
                data.len()
            );
        }
        Err(LimitError::Aliases) => {
            assert!(data.contains(&b'*') && data.contains(&b'&'));
        }
        Err(LimitError::TooDeep) => {
            assert!(data.iter().any(|byte| matches!(byte, b'[' | b'{')));
        }
    }
}

/// The size of a value: the number of nodes and the bytes of its strings.
fn size_of(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| 1 + name.len() + size_of(value))
            .sum(),
        _ => 0,
    }
}
