//! YAML: what passes the limits is small when it is read, and what is refused
//! has aliases or is nested deep. Neither takes long.

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
                size += weight(&value);
            }
            let most = 2 * data.len() + EXPANSION;
            assert!(size <= most, "{} bytes of text weigh {size}", data.len());
        }
        Err(LimitError::Aliases) => {
            assert!(data.contains(&b'*') && data.contains(&b'&'));
        }
        Err(LimitError::TooDeep) => {
            assert!(data.iter().any(|byte| matches!(byte, b'[' | b'{')));
        }
    }
}

/// Nodes, and bytes of texts.
fn weight(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| 1 + name.len() + weight(value))
            .sum(),
        _ => 0,
    }
}
