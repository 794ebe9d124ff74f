//! Conversions of a cluster spec: JSON values, TensorFlow's `ClusterDef` message,
//! and serde.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Visitor},
};
use serde_json::{Map, Value};

use super::{ClusterSpec, SpecError};

impl ClusterSpec {
    /// Reads a map of jobs whose tasks are lists of addresses or maps from index to
    /// address.
    ///
    /// # Errors
    /// The error names the job and the invalid index or address.
    pub fn from_value(value: &Value) -> Result<Self, SpecError> {
        let jobs = value
            .as_object()
            .ok_or_else(|| SpecError::Shape(value.to_string()))?;
        let mut spec = Self::new();
        for (job, tasks) in jobs {
            spec.add_job(job);
            let address = |index: &str, value: &Value| match value {
                Value::String(address) => Ok(address.clone()),
                value => Err(SpecError::Address {
                    job: job.clone(),
                    index: index.to_owned(),
                    value: value.to_string(),
                }),
            };
            match tasks {
                Value::Array(list) => {
                    for (index, value) in (0..).zip(list) {
                        spec.set(job, index, address(&index.to_string(), value)?);
                    }
                }
                Value::Object(map) => {
                    for (key, value) in map {
                        let index = index(key).ok_or_else(|| SpecError::Index {
                            job: job.clone(),
                            index: key.clone(),
                        })?;
                        spec.set(job, index, address(key, value)?);
                    }
                }
                other => {
                    return Err(SpecError::Tasks {
                        job: job.clone(),
                        value: other.to_string(),
                    });
                }
            }
        }
        Ok(spec)
    }

    /// Returns the spec as a map: jobs with consecutive indices as lists, others as
    /// maps. A job without tasks is an empty list; in TensorFlow it is an empty
    /// map.
    #[must_use]
    pub fn as_dict(&self) -> Value {
        let jobs = self.jobs.iter().map(|(job, tasks)| {
            let dense = tasks
                .keys()
                .copied()
                .eq(0..u32::try_from(tasks.len()).unwrap_or(u32::MAX));
            let tasks = if dense {
                tasks.values().cloned().map(Value::String).collect()
            } else {
                let map = tasks
                    .iter()
                    .map(|(i, address)| (i.to_string(), address.clone().into()));
                Value::Object(map.collect())
            };
            (job.clone(), tasks)
        });
        Value::Object(jobs.collect::<Map<_, _>>())
    }

    /// Returns the spec in the shape of TensorFlow's `ClusterDef` message, as JSON.
    /// Jobs and tasks are sorted.
    #[must_use]
    pub fn as_cluster_def(&self) -> Value {
        let jobs: Vec<Value> = self
            .jobs
            .iter()
            .map(|(name, tasks)| {
                let tasks: Map<_, _> = tasks
                    .iter()
                    .map(|(i, address)| (i.to_string(), address.clone().into()))
                    .collect();
                serde_json::json!({"name": name, "tasks": tasks})
            })
            .collect();
        serde_json::json!({"job": jobs})
    }
}

/// Accepts only the canonical form of an index. Otherwise two keys could be the
/// same index.
fn index(text: &str) -> Option<u32> {
    let index = text.parse::<u32>().ok()?;
    (index.to_string() == text).then_some(index)
}

/// Serializes the result of [`ClusterSpec::as_dict`].
impl Serialize for ClusterSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_dict().serialize(serializer)
    }
}

/// Accepts the same values as [`ClusterSpec::from_value`]. In formats with integer
/// keys, indices may be integers.
impl<'de> Deserialize<'de> for ClusterSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let jobs = BTreeMap::<String, Tasks>::deserialize(deserializer)?;
        let jobs = jobs.into_iter().map(|(job, tasks)| {
            let tasks = match tasks {
                Tasks::Map(map) => map.into_iter().map(|(key, value)| (key.0, value)).collect(),
                Tasks::Other(value) => value,
            };
            (job, tasks)
        });
        Self::from_value(&jobs.collect()).map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tasks {
    Map(BTreeMap<Key, Value>),
    Other(Value),
}

/// A map key as text.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyKey)
    }
}

struct AnyKey;

impl Visitor<'_> for AnyKey {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a task index")
    }

    fn visit_str<E>(self, text: &str) -> Result<Key, E> {
        Ok(Key(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Key, E> {
        Ok(Key(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Key, E> {
        Ok(Key(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Key, E> {
        Ok(Key(number.to_string()))
    }
}
