//! The data of tasks: checked, with their paths in the pods.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use longshore_diagnosis::names;
use longshore_model::Quantity;

use super::{
    ConfigError, DataEntry, Flags, RunOptions, TaskOptions, Text, code_path,
    layers::Layers,
    values::{Unit, invalid_at, quantity, subdomain},
};
use crate::store::{FORMS, Remote, Store, StoreError};

/// The maximum number of data of a role, so that their lists of URLs fit into the Secret of a run.
const MOST: usize = 16;
/// The maximum length of a name.
const LONGEST: usize = 40;

/// Data of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSpec {
    /// The name of the data.
    pub name: String,
    /// The source of the data.
    pub source: DataSource,
    /// The path of the data in the tasks: the value of its variable.
    pub path: String,
    /// An additional path of the data in the folder of the code.
    pub link: Option<String>,
    /// The sha256 that the data must have.
    pub pin: Option<String>,
}

impl DataSpec {
    /// The name of the variable with the path of the data: `LONGSHORE_DATA_CIFAR`.
    #[must_use]
    pub fn variable(&self) -> String {
        let name = self.name.to_ascii_uppercase().replace('-', "_");
        format!("LONGSHORE_DATA_{name}")
    }

    /// The given path.
    fn given(&self) -> PathBuf {
        match &self.link {
            Some(link) => Path::new(names::WORK).join(link),
            None => PathBuf::from(&self.path),
        }
    }
}

/// The source of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataSource {
    /// A folder of the client.
    Folder(PathBuf),
    /// The objects of a bucket below a prefix.
    Bucket(Remote),
}

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Bucket(remote) => remote.fmt(f),
        }
    }
}

/// The maximum size of a cache of data: 100 GiB.
pub const DATA_LIMIT: u64 = 100 << 30;

/// The cache for data that pods fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataCacheSpec {
    /// The volume.
    pub volume: CacheVolume,
    /// The maximum size in bytes.
    pub limit: u64,
}

/// The volume of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheVolume {
    /// A folder of each node.
    Host(String),
    /// A PersistentVolumeClaim.
    Claim(String),
}

/// The cache of data in the pods.
pub(super) fn cache<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<Option<DataCacheSpec>, ConfigError> {
    let limit = options.value(|run| &run.data_cache_limit);
    let bytes = limit.map(|text| {
        let bytes = quantity("data_cache_limit", text, Unit::Storage)?.parse::<Quantity>();
        let bytes = bytes.map(|quantity| quantity.value()).unwrap_or_default();
        if !(1.0..=1e18).contains(&bytes) {
            let rule = "use a size of at least 1 byte, as in 100Gi";
            return Err(invalid_at("data_cache_limit", text, rule));
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is in range"
        )]
        Ok(bytes as u64)
    });
    let bytes = bytes.transpose()?.unwrap_or(DATA_LIMIT);
    let Some(text) = options.value(|run| &run.data_cache) else {
        return Ok(None);
    };
    let rule = "write host:/absolute/path for a folder of each node, or claim:NAME";
    let refuse = || invalid_at("data_cache", text, rule);
    let volume = match text.split_once(':').ok_or_else(refuse)? {
        ("host", path) if is_absolute(path) => CacheVolume::Host(path.to_owned()),
        ("claim", name) => {
            subdomain("data_cache", &text.replaced(name.to_owned()))?;
            CacheVolume::Claim(name.to_owned())
        }
        _ => return Err(refuse()),
    };
    Ok(Some(DataCacheSpec {
        volume,
        limit: bytes,
    }))
}

/// Returns true if a path is absolute, without `..`, and not `/`.
fn is_absolute(path: &str) -> bool {
    path.len() > 1
        && path.starts_with('/')
        && path[1..]
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".."))
}

/// Merges the data of the file, which is in `folder`, of the role and of the flags. The last entry
/// of a name applies.
pub(super) fn resolve(
    file: &TaskOptions,
    role: &TaskOptions,
    flags: &Flags,
    folder: Option<&Path>,
) -> Result<Vec<DataSpec>, ConfigError> {
    let mut entries: BTreeMap<String, DataEntry> = BTreeMap::new();
    let sources = [(file, folder), (role, folder), (&flags.task, None)];
    for (options, folder) in sources {
        for entry in &options.data {
            entries.insert(entry.name.to_string(), entry.below(folder));
        }
    }
    let specs = entries.values().map(spec);
    let specs: Vec<DataSpec> = specs.collect::<Result<_, _>>()?;
    for (spec, entry) in specs.iter().zip(entries.values()) {
        let others = || specs.iter().filter(|other| other.name != spec.name);
        if others().any(|other| other.variable() == spec.variable()) {
            let rule = format!("other data has the same variable {}", spec.variable());
            return Err(invalid_at("data", &entry.name, rule));
        }
        let is_within = |other: &DataSpec| spec.given().starts_with(other.given());
        if others().any(is_within) {
            let path = entry.name.replaced(spec.given().display().to_string());
            return Err(invalid_at(
                "data path",
                &path,
                "it is within the path of other data, or the same",
            ));
        }
    }
    if let Some(entry) = entries.values().nth(MOST) {
        let rule = format!("use at most {MOST} data");
        return Err(invalid_at("data", &entry.name, rule));
    }
    Ok(specs)
}

fn spec(entry: &DataEntry) -> Result<DataSpec, ConfigError> {
    let name = &entry.name;
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(is_usual)
        || name.len() > LONGEST
    {
        let rule = format!(
            "use a letter, followed by letters, digits, `-` and `_`, at most {LONGEST} characters"
        );
        return Err(invalid_at("data name", name, rule));
    }
    let own = || format!("{}/{}", names::DATA_DIR, name.as_str());
    let (path, link) = match &entry.path {
        None => (own(), None),
        Some(path) => match place(name, path)? {
            Place::Absolute(path) => (path, None),
            Place::InCode(link) => (own(), Some(link)),
        },
    };
    if let Some(pin) = &entry.pin {
        let is_sha256 = pin.len() == 64 && pin.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_sha256 {
            let rule = "use the sha256 of the data that `longshore run --dry-run` prints";
            return Err(invalid_at("data pin", &name.replaced(pin), rule));
        }
    }
    Ok(DataSpec {
        name: name.to_string(),
        source: source(entry)?,
        path,
        link,
        pin: entry.pin.as_ref().map(|pin| pin.to_ascii_lowercase()),
    })
}

/// The location of data in the tasks of a role.
enum Place {
    Absolute(String),
    /// A path in the folder of the code.
    InCode(String),
}

fn place(name: &Text, path: &str) -> Result<Place, ConfigError> {
    let refuse = |rule: &str| invalid_at("data path", &name.replaced(path.to_owned()), rule);
    if let Some(link) = code_path::in_code(path).map_err(refuse)? {
        return Ok(Place::InCode(link));
    }
    let path = path.trim_end_matches('/');
    if !is_absolute(path) || path.contains(':') {
        return Err(refuse(code_path::RULE));
    }
    if Path::new(path).starts_with(names::HOME) {
        let rule = "/longshore is reserved for the run's own files: choose another path, or none";
        return Err(refuse(rule));
    }
    Ok(Place::Absolute(path.to_owned()))
}

fn source(entry: &DataEntry) -> Result<DataSource, ConfigError> {
    let text = &entry.source;
    if text.is_empty() {
        let rule = "give a folder, or the URL of a bucket";
        return Err(invalid_at("data source", &entry.name, rule));
    }
    if !text.contains("://") {
        return Ok(DataSource::Folder(text.into()));
    }
    match Store::parse(text) {
        Ok(Store::Remote(remote)) => Ok(DataSource::Bucket(remote)),
        Ok(Store::Folder(path)) => Ok(DataSource::Folder(path)),
        // The URL of the error contains no secrets.
        Err(StoreError::Url { url, problem }) => {
            let rule = format!("it {problem}; use a folder, {FORMS}");
            Err(invalid_at("data source", &entry.name.replaced(url), rule))
        }
        Err(other) => {
            let shown = entry.name.replaced("");
            Err(invalid_at("data source", &shown, other.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::Settings;

    fn of(file: &str, flags: &[&str]) -> Result<Vec<DataSpec>, String> {
        let path = Path::new("train/longshore.toml");
        let settings = Settings::parse(file, path).map_err(|error| error.to_string())?;
        let data = flags.iter().map(|flag| flag.parse().unwrap());
        let flags = Flags {
            task: TaskOptions {
                data: data.collect(),
                ..TaskOptions::default()
            },
            ..Flags::default()
        };
        let role = settings.roles.get("worker").cloned().unwrap_or_default();
        let found = resolve(&settings.task, &role.task, &flags, path.parent());
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn data_of_the_file_of_roles_and_of_flags_are_merged() {
        let file = "[data]\ncifar = 'data/cifar'\nlost = 'x'\n\
            [roles.worker.data]\nmodels = {source = 's3://b/p', path = '/models/'}\nlost = 'y'";
        let found = of(file, &["lost=/z:/lost", "c-d=gs://b:/data"]).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|data| format!("{} {} {}", data.variable(), data.source, data.path))
            .collect();
        assert_eq!(
            shown,
            [
                "LONGSHORE_DATA_C_D gs://b /data",
                "LONGSHORE_DATA_CIFAR train/data/cifar /longshore/data/cifar",
                "LONGSHORE_DATA_LOST /z /lost",
                "LONGSHORE_DATA_MODELS s3://b/p /models",
            ]
        );
    }

    #[test]
    fn a_relative_path_is_in_the_folder_of_the_code() {
        let flags = [
            "a=./data/raw:data/raw",
            "b=s3://bucket/prefix:./models",
            "c=/z:/longshore/work/c",
        ];
        let found = of("", &flags).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|data| format!("{} {} {:?}", data.source, data.path, data.link))
            .collect();
        assert_eq!(
            shown,
            [
                "./data/raw /longshore/data/a Some(\"data/raw\")",
                "s3://bucket/prefix /longshore/data/b Some(\"models\")",
                "/z /longshore/data/c Some(\"c\")",
            ]
        );
    }

    #[test]
    fn a_cache_is_a_folder_of_nodes_or_a_claim() {
        let of = |text: &str, limit: Option<&str>| {
            let options = RunOptions {
                data_cache: Some(text.into()),
                data_cache_limit: limit.map(Into::into),
                ..RunOptions::default()
            };
            cache(Layers([&options])).map_err(|error| error.to_string())
        };
        let found = of("host:/var/cache", None).unwrap().unwrap();
        assert_eq!(found.volume, CacheVolume::Host("/var/cache".to_owned()));
        assert_eq!(found.limit, DATA_LIMIT);
        let found = of("claim:data", Some("1Ki")).unwrap().unwrap();
        assert_eq!(found.volume, CacheVolume::Claim("data".to_owned()));
        assert_eq!(found.limit, 1024);
        for text in [
            "host:",
            "host:/",
            "host:a",
            "host:/a/../b",
            "claim:",
            "x",
            "nfs:/a",
        ] {
            assert!(of(text, None).is_err(), "{text}");
        }
        for limit in ["0", "-1", "much"] {
            let error = of("claim:data", Some(limit)).unwrap_err();
            assert!(error.contains("data_cache_limit"), "{error}");
        }
    }

    #[test]
    fn invalid_data_is_refused_with_the_rule() {
        for (file, rule) in [
            ("1a = 'x'", "use a letter"),
            ("a = ''", "give a folder"),
            ("a = 3", "a folder, the URL of a bucket"),
            ("a = {path = '/x'}", "a table with `source`"),
            ("a = {source = 'x', path = '../y'}", "folder of the code"),
            ("a = {source = 'x', path = '.'}", "folder of the code"),
            (
                "a = {source = 'x', path = 'y'}\nb = {source = 'x', path = './y/z'}",
                "within the path",
            ),
            ("a = {source = 'x', path = '/y/../z'}", "absolute path"),
            ("a = {source = 'x', path = '/longshore/x'}", "reserved"),
            ("a = {source = 'x', pin = 'abc'}", "--dry-run"),
            ("a = 'ftp://x'", "unknown scheme"),
            ("a = 's3://key:hush@b'", "credentials are read from"),
            ("a-b = 'x'\na_b = 'y'", "same variable LONGSHORE_DATA_A_B"),
            (
                "a = {source = 'x', path = '/y'}\nb = {source = 'x', path = '/y/z'}",
                "within the path",
            ),
        ] {
            let error = of(&format!("[data]\n{file}"), &[]).unwrap_err();
            assert!(error.contains(rule), "{file}: {error}");
            assert!(!error.contains("hush"), "{error}");
        }
        for text in ["a", "a=", "=x:/y"] {
            let found = text.parse::<DataEntry>();
            assert!(found.is_err() || text.starts_with('='), "{text}");
        }
    }
}
