//! Data of tasks as written.

use std::{collections::BTreeMap, path::Path, str::FromStr};

use serde::{Deserialize, Deserializer};

use super::{ConfigError, Text, values::invalid};

/// Data of tasks: a folder of the client, or a prefix of a bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct DataEntry {
    /// The name of the data.
    pub name: Text,
    /// A folder, or the URL of a bucket.
    pub source: String,
    /// The path of the data in the tasks.
    pub path: Option<String>,
    /// The sha256 that the data must have.
    pub pin: Option<String>,
}

impl DataEntry {
    /// The entry with its folder, if it is relative, resolved against `folder`.
    pub(super) fn below(&self, folder: Option<&Path>) -> Self {
        let mut entry = self.clone();
        if let Some(folder) = folder.filter(|_| is_path(&entry.source)) {
            entry.source = folder.join(&entry.source).to_string_lossy().into_owned();
        }
        entry
    }
}

/// Returns true if a source is a path, not a URL.
fn is_path(source: &str) -> bool {
    !source.is_empty() && !source.contains("://")
}

/// The notation of `--data`: `cifar=./data/cifar`, `models=s3://bucket/prefix:/models`.
///
/// ```
/// use longshore_launcher::config::DataEntry;
///
/// let entry: DataEntry = "models=s3://bucket/prefix:/models".parse()?;
/// assert_eq!(entry.source, "s3://bucket/prefix");
/// assert_eq!(entry.path.as_deref(), Some("/models"));
/// # Ok::<(), longshore_launcher::config::ConfigError>(())
/// ```
impl FromStr for DataEntry {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let rule = "write NAME=SOURCE or NAME=SOURCE:PATH, as in cifar=./data/cifar or models=s3://bucket/prefix:/models";
        let refuse = || invalid("--data", text, rule);
        let (name, rest) = text.split_once('=').ok_or_else(refuse)?;
        // The last colon that does not belong to a URL.
        let path = rest
            .rmatch_indices(':')
            .map(|(at, _)| at)
            .find(|at| !rest[at + 1..].starts_with("//") && *at > 0);
        let (source, path) = match path {
            Some(at) => (&rest[..at], Some(rest[at + 1..].to_owned())),
            None => (rest, None),
        };
        if source.is_empty() {
            return Err(refuse());
        }
        Ok(Self {
            name: name.trim().into(),
            source: source.to_owned(),
            path,
            pin: None,
        })
    }
}

/// The value of a key of `[data]`.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a folder, the URL of a bucket, or a table with `source`, `path` and `pin`"
)]
enum Written {
    Source(String),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    source: String,
    path: Option<String>,
    pin: Option<String>,
}

/// Reads the table `data`.
pub(super) fn entries<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<DataEntry>, D::Error> {
    let table: BTreeMap<Text, Written> = Deserialize::deserialize(deserializer)?;
    let entries = table.into_iter().map(|(name, written)| match written {
        Written::Source(source) => DataEntry {
            name,
            source,
            path: None,
            pin: None,
        },
        Written::Table(Table { source, path, pin }) => DataEntry {
            name,
            source,
            path,
            pin,
        },
    });
    Ok(entries.collect())
}
