//! The keys of ZenML 0.3's configs. Pure.

use serde_json::{Map, Value};

use super::{ZenmlError, values::wrong};
use longshore_launcher::suggest::nearest;

/// The version that ZenML 0.3 writes.
const VERSION: &str = "1";

/// A mapping with fixed keys.
struct Keys {
    /// The keys that ZenML requires.
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const CONFIG: Keys = Keys {
    required: &["artifact_store", "metadata", "pipeline"],
    // ZenML requires the backend, but this launcher does not need it.
    optional: &["version", "backend"],
};
const METADATA: Keys = Keys {
    required: &["type", "args"],
    optional: &[],
};
const BACKEND: Keys = Keys {
    required: &["source", "args"],
    optional: &["type"],
};
const PIPELINE: Keys = Keys {
    required: &["args", "source", "steps"],
    optional: &["datasource", "enable_cache"],
};
const DATASOURCE: Keys = Keys {
    required: &["id", "name", "source"],
    optional: &["args"],
};
const STEP: Keys = Keys {
    required: &["source", "args"],
    optional: &["backend", "name"],
};

/// Checks the keys of a config. Arguments of classes are not checked, because any class may be
/// named.
pub(super) fn check(config: &Value) -> Result<(), ZenmlError> {
    let config = CONFIG.check("", config)?;
    check_version(config)?;
    METADATA.check("metadata", &config["metadata"])?;
    if let Some(backend) = given(config, "backend") {
        check_backend("backend", backend)?;
    }
    let pipeline = PIPELINE.check("pipeline", &config["pipeline"])?;
    mapping("pipeline.args", &pipeline["args"])?;
    // An empty mapping stands for none.
    let source = given(pipeline, "datasource");
    if let Some(source) = source.filter(|source| **source != Value::Object(Map::new())) {
        DATASOURCE.check("pipeline.datasource", source)?;
    }
    for (name, step) in mapping("pipeline.steps", &pipeline["steps"])? {
        let path = format!("pipeline.steps.{name}");
        let step = STEP.check(&path, step)?;
        mapping(&format!("{path}.args"), &step["args"])?;
        if let Some(backend) = given(step, "backend") {
            check_backend(&format!("{path}.backend"), backend)?;
        }
    }
    Ok(())
}

fn check_version(config: &Map<String, Value>) -> Result<(), ZenmlError> {
    match given(config, "version") {
        None => Ok(()),
        Some(Value::String(version)) if version == VERSION => Ok(()),
        Some(Value::Number(version)) if version.to_string() == VERSION => Ok(()),
        Some(other) => Err(ZenmlError::Version {
            version: other.to_string(),
        }),
    }
}

fn check_backend(path: &str, backend: &Value) -> Result<(), ZenmlError> {
    let backend = BACKEND.check(path, backend)?;
    mapping(&format!("{path}.args"), &backend["args"])?;
    Ok(())
}

/// The value of a key; `null` counts as missing.
pub(super) fn given<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn mapping<'a>(path: &str, value: &'a Value) -> Result<&'a Map<String, Value>, ZenmlError> {
    value
        .as_object()
        .ok_or_else(|| wrong(path, "a mapping", value))
}

impl Keys {
    /// Checks that a value is a mapping with all required and no unknown keys.
    fn check<'a>(
        &self,
        path: &str,
        value: &'a Value,
    ) -> Result<&'a Map<String, Value>, ZenmlError> {
        let shown = if path.is_empty() { "config" } else { path };
        let map = mapping(shown, value)?;
        let known = || self.required.iter().chain(self.optional).copied();
        let unknown = map.keys().find(|key| !known().any(|known| known == *key));
        if let Some(key) = unknown {
            return Err(unknown_key(path, key, known()));
        }
        let missing = self.required.iter().find(|key| given(map, key).is_none());
        match missing {
            Some(key) => Err(ZenmlError::missing(&below(path, key))),
            None => Ok(map),
        }
    }
}

/// The error for an unknown key, with the most similar known key.
pub(super) fn unknown_key(
    path: &str,
    key: &str,
    known: impl Iterator<Item = &'static str>,
) -> ZenmlError {
    let known: Vec<&str> = known.collect();
    let remedy = match nearest(key, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("known keys are {}", known.join(", ")),
    };
    ZenmlError::UnknownKey {
        path: below(path, key),
        remedy,
    }
}

/// The path of a key.
pub(super) fn below(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}
