//! A pipeline's config, and the parts of it that the launcher needs. Pure.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    ZenmlError, keys,
    values::{text_at, wrong},
    yaml,
};
use longshore_launcher::store::{self, Store};

/// The folder for code in the artifact store.
const STAGING: &str = "staging";
/// The extension of uploaded code. Its name is the sha256.
const ENDING: &str = ".tar.gz";

/// The config of a pipeline, as returned by ZenML's `pipeline.to_config()`, or as stored by ZenML
/// in a YAML file.
///
/// The original text is kept, so that the pod reads it unchanged: with the same order of keys, the
/// same digits of numbers, and the rules of ZenML's own YAML parser.
#[derive(Clone, PartialEq)]
pub struct PipelineConfig {
    text: String,
    format: Format,
    value: Value,
    name: String,
}

/// The format of a config's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
}

impl Format {
    /// The file with the config, in the run's Secret.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Json => "pipeline.json",
            Self::Yaml => "pipeline.yaml",
        }
    }
}

impl fmt::Debug for PipelineConfig {
    /// Only the name, because other fields may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PipelineConfig");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl PipelineConfig {
    /// Reads a config.
    ///
    /// # Errors
    /// [`ZenmlError::Json`]; [`ZenmlError::Missing`] and [`ZenmlError::Kind`] when
    /// there is no `pipeline.args.name`.
    ///
    /// ```
    /// use longshore_zenml::PipelineConfig;
    /// let config = r#"{"pipeline": {"args": {"name": "training_digits_1"}}}"#;
    /// assert_eq!(PipelineConfig::from_json(config).unwrap().name(), "training_digits_1");
    /// let problem = PipelineConfig::from_json("{}").unwrap_err().to_string();
    /// assert!(problem.contains("no \"pipeline.args.name\""));
    /// ```
    pub fn from_json(text: &str) -> Result<Self, ZenmlError> {
        let value = serde_json::from_str(text).map_err(ZenmlError::Json)?;
        Self::new(text.to_owned(), Format::Json, value)
    }

    /// Reads a config file of ZenML 0.3, as `zenml pipeline run` does, and checks all its keys.
    ///
    /// # Errors
    /// [`ZenmlError::Yaml`]; [`ZenmlError::UnknownKey`], [`ZenmlError::Missing`] and
    /// [`ZenmlError::Kind`] name the key.
    ///
    /// ```
    /// use longshore_zenml::PipelineConfig;
    /// let problem = PipelineConfig::from_yaml("pipelines: {}").unwrap_err().to_string();
    /// assert!(problem.contains("did you mean \"pipeline\"?"), "{problem}");
    /// ```
    pub fn from_yaml(text: &str) -> Result<Self, ZenmlError> {
        let value = yaml::read(text)?;
        keys::check(&value)?;
        Self::new(text.to_owned(), Format::Yaml, value)
    }

    /// Creates a config from a parsed value.
    ///
    /// # Errors
    /// The same as [`PipelineConfig::from_json`].
    pub fn from_value(value: Value) -> Result<Self, ZenmlError> {
        Self::new(value.to_string(), Format::Json, value)
    }

    fn new(text: String, format: Format, value: Value) -> Result<Self, ZenmlError> {
        let path = "pipeline.args.name";
        let name = text_at(&value, path)?.ok_or_else(|| ZenmlError::missing(path))?;
        Ok(Self {
            name: name.to_owned(),
            text,
            format,
            value,
        })
    }

    /// The pipeline's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The config as it was given, in JSON or YAML: the pod reads this text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// The config as a value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The id of the pipeline's data source, if it has one.
    pub(super) fn datasource_id(&self) -> Result<Option<&str>, ZenmlError> {
        text_at(&self.value, "pipeline.datasource.id")
    }

    /// The store for code: the folder `staging` of the artifact store.
    pub(super) fn staging(&self) -> Result<Store, ZenmlError> {
        let path = "artifact_store";
        let place = text_at(&self.value, path)?.ok_or_else(|| ZenmlError::missing(path))?;
        let store = store_at(place)?;
        Ok(match store {
            // The program resolves a relative path.
            Store::Folder(folder) => {
                Store::Folder(std::path::absolute(&folder).unwrap_or(folder).join(STAGING))
            }
            Store::Remote(_) => store_at(&format!("{}/{STAGING}", place.trim_end_matches('/')))?,
        })
    }

    /// The location of the code that `run` has uploaded, if the config contains it.
    pub(super) fn sent(&self) -> Result<Option<(Store, String)>, ZenmlError> {
        let Some(tar_path) = text_at(&self.value, "backend.args.tar_path")? else {
            return Ok(None);
        };
        let found = tar_path
            .rsplit_once('/')
            .and_then(|(_, file)| file.strip_suffix(ENDING))
            .filter(|sha256| is_sha256(sha256))
            .and_then(|sha256| {
                let root = tar_path.strip_suffix(&store::address(sha256))?;
                Some((
                    store_at(root.trim_end_matches('/')).ok()?,
                    sha256.to_owned(),
                ))
            });
        let found = found.filter(|(store, _)| match store {
            Store::Folder(folder) => folder.is_absolute(),
            Store::Remote(_) => true,
        });
        found.map(Some).ok_or_else(|| ZenmlError::TarPath {
            tar_path: tar_path.to_owned(),
        })
    }

    /// A copy of the config with the location of the code.
    pub(super) fn with_tar_path(&self, tar_path: &str) -> Result<Self, ZenmlError> {
        let mut value = self.value.clone();
        let mut inner = &mut value;
        for (key, path) in [("backend", "backend"), ("args", "backend.args")] {
            let map = inner;
            if map[key].is_null() {
                map[key] = json!({});
            }
            inner = &mut map[key];
            if !inner.is_object() {
                return Err(wrong(path, "a mapping", inner));
            }
        }
        inner["tar_path"] = json!(tar_path);
        Ok(Self {
            value,
            ..self.clone()
        })
    }
}

/// The location of a bundle in a store.
pub(super) fn tar_path(store: &Store, sha256: &str) -> String {
    match store {
        Store::Folder(root) => root.join(store::address(sha256)).display().to_string(),
        Store::Remote(remote) => remote.place(sha256),
    }
}

/// A store's URL, or the path of a folder.
fn store_at(place: &str) -> Result<Store, ZenmlError> {
    match place.contains("://") {
        true => Ok(Store::parse(place)?),
        false => Ok(Store::Folder(PathBuf::from(Path::new(place)))),
    }
}

fn is_sha256(text: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == 64 && text.bytes().all(digit)
}
