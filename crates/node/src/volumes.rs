//! Prepares a pod's volumes as folders on the machine (api-semantics rule 37).
//!
//! Files of ConfigMaps, Secrets, the downward API and projections are written
//! into a folder of their own, to which the link `..data` leads; an update makes
//! a new folder and swaps the link, so that no reader sees half of it.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, KeyToPath, Pod, SecretVolumeSource, Volume,
    VolumeProjection,
};

use crate::{
    downward::{self, FieldError},
    environment::Lookup,
};

/// Why a volume cannot be made; the pod waits and it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum VolumeError {
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {kind} \"{name}\" not found")]
    Missing {
        volume: String,
        kind: &'static str,
        name: String,
    },
    #[error(
        "MountVolume.SetUp failed for volume \"{volume}\" : references non-existent config key: {key}"
    )]
    NoKey { volume: String, key: String },
    #[error(
        "MountVolume.SetUp failed for volume \"{volume}\" : path {path:?} must be relative and without \"..\""
    )]
    BadPath { volume: String, path: String },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : hostPath {path:?}: {reason}")]
    HostPath {
        volume: String,
        path: String,
        reason: String,
    },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {source}")]
    Field { volume: String, source: FieldError },
    #[error(
        "volume \"{volume}\" is of a type that this node does not offer; use configMap, secret, emptyDir, hostPath, downwardAPI or projected"
    )]
    Unsupported { volume: String },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {source}")]
    System { volume: String, source: io::Error },
}

/// A file to be in a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileToBe {
    bytes: Vec<u8>,
    mode: u32,
}

/// Files by path below the volume.
type Files = BTreeMap<PathBuf, FileToBe>;

/// A volume, ready to be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// The folder (or file, of a hostPath) on the machine.
    pub(crate) path: PathBuf,
    /// Whether containers may never write to it.
    pub(crate) read_only: bool,
}

/// The names of the ConfigMaps and of the Secrets that the pod's volumes need.
pub(crate) fn references(pod: &Pod) -> (Vec<String>, Vec<String>) {
    let (mut config_maps, mut secrets) = (Vec::new(), Vec::new());
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    for volume in volumes {
        config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
        secrets.extend(
            volume
                .secret
                .iter()
                .filter_map(|source| source.secret_name.clone()),
        );
        let sources = volume
            .projected
            .iter()
            .flat_map(|projected| &projected.sources);
        for source in sources.flatten() {
            config_maps.extend(source.config_map.iter().map(|source| source.name.clone()));
            secrets.extend(source.secret.iter().map(|source| source.name.clone()));
        }
    }
    (config_maps, secrets)
}

/// Makes or updates all volumes of a pod in `folder`.
pub(crate) fn prepare(
    pod: &Pod,
    folder: &Path,
    lookup: &dyn Lookup,
    facts: &downward::Facts,
) -> Result<BTreeMap<String, Prepared>, VolumeError> {
    let inputs = Inputs { pod, lookup, facts };
    let mut prepared = BTreeMap::new();
    for volume in pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten())
    {
        prepared.insert(volume.name.clone(), inputs.volume(volume, folder)?);
    }
    Ok(prepared)
}

struct Inputs<'a> {
    pod: &'a Pod,
    lookup: &'a dyn Lookup,
    facts: &'a downward::Facts,
}

impl Inputs<'_> {
    fn volume(&self, volume: &Volume, folder: &Path) -> Result<Prepared, VolumeError> {
        let name = &volume.name;
        let system = |source| VolumeError::System {
            volume: name.clone(),
            source,
        };
        if let Some(source) = &volume.host_path {
            let kind = source.type_.as_deref().unwrap_or_default();
            return host_path(name, &source.path, kind);
        }
        let path = folder.join(name);
        if volume.empty_dir.is_some() {
            make_folder(&path, 0o777).map_err(system)?;
            return Ok(Prepared {
                path,
                read_only: false,
            });
        }
        let files = self.files(volume)?;
        publish(&path, &files).map_err(system)?;
        Ok(Prepared {
            path,
            read_only: true,
        })
    }

    fn files(&self, volume: &Volume) -> Result<Files, VolumeError> {
        let name = &volume.name;
        let mut files = Files::new();
        if let Some(source) = &volume.config_map {
            let mode = mode(source.default_mode, 0o644);
            self.config_map(name, source, mode, &mut files)?;
        } else if let Some(source) = &volume.secret {
            let mode = mode(source.default_mode, 0o644);
            self.secret(name, source, mode, &mut files)?;
        } else if let Some(source) = &volume.downward_api {
            let mode = mode(source.default_mode, 0o644);
            self.downward(name, source.items.as_deref(), mode, &mut files)?;
        } else if let Some(projected) = &volume.projected {
            let mode = mode(projected.default_mode, 0o644);
            for source in projected.sources.iter().flatten() {
                self.projection(name, source, mode, &mut files)?;
            }
        } else {
            return Err(VolumeError::Unsupported {
                volume: name.clone(),
            });
        }
        Ok(files)
    }

    fn config_map(
        &self,
        volume: &str,
        source: &ConfigMapVolumeSource,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        let found = self.lookup.config_map(&source.name);
        let optional = source.optional == Some(true);
        let what = Reference {
            volume,
            kind: "configmap",
            name: &source.name,
            optional,
        };
        add_values(&what, found, source.items.as_deref(), mode, files)
    }

    fn secret(
        &self,
        volume: &str,
        source: &SecretVolumeSource,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let optional = source.optional == Some(true);
        let what = Reference {
            volume,
            kind: "secret",
            name,
            optional,
        };
        add_values(
            &what,
            self.lookup.secret(name),
            source.items.as_deref(),
            mode,
            files,
        )
    }

    fn downward(
        &self,
        volume: &str,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        for item in items.unwrap_or_default() {
            let field = |source| VolumeError::Field {
                volume: volume.to_owned(),
                source,
            };
            let text = if let Some(reference) = &item.field_ref {
                downward::field(self.pod, self.facts, &reference.field_path).map_err(field)?
            } else if let Some(reference) = &item.resource_field_ref {
                downward::resource(self.pod, self.facts, "", reference).map_err(field)?
            } else {
                continue;
            };
            let path = relative(volume, &item.path)?;
            let mode = self::mode(item.mode, mode);
            files.insert(
                path,
                FileToBe {
                    bytes: text.into_bytes(),
                    mode,
                },
            );
        }
        Ok(())
    }

    fn projection(
        &self,
        volume: &str,
        source: &VolumeProjection,
        mode: u32,
        files: &mut Files,
    ) -> Result<(), VolumeError> {
        if let Some(source) = &source.config_map {
            let found = self.lookup.config_map(&source.name);
            let optional = source.optional == Some(true);
            let what = Reference {
                volume,
                kind: "configmap",
                name: &source.name,
                optional,
            };
            add_values(&what, found, source.items.as_deref(), mode, files)
        } else if let Some(source) = &source.secret {
            let found = self.lookup.secret(&source.name);
            let optional = source.optional == Some(true);
            let what = Reference {
                volume,
                kind: "secret",
                name: &source.name,
                optional,
            };
            add_values(&what, found, source.items.as_deref(), mode, files)
        } else if let Some(source) = &source.downward_api {
            self.downward(volume, source.items.as_deref(), mode, files)
        } else {
            Err(VolumeError::Unsupported {
                volume: volume.to_owned(),
            })
        }
    }
}

struct Reference<'a> {
    volume: &'a str,
    kind: &'static str,
    name: &'a str,
    optional: bool,
}

fn add_values(
    what: &Reference<'_>,
    found: Option<&BTreeMap<String, Vec<u8>>>,
    items: Option<&[KeyToPath]>,
    mode: u32,
    files: &mut Files,
) -> Result<(), VolumeError> {
    let volume = || what.volume.to_owned();
    let Some(values) = found else {
        if what.optional {
            return Ok(());
        }
        let name = what.name.to_owned();
        return Err(VolumeError::Missing {
            volume: volume(),
            kind: what.kind,
            name,
        });
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        for (key, bytes) in values {
            let path = relative(what.volume, key)?;
            files.insert(
                path,
                FileToBe {
                    bytes: bytes.clone(),
                    mode,
                },
            );
        }
        return Ok(());
    };
    for item in items {
        match values.get(&item.key) {
            Some(bytes) => {
                let path = relative(what.volume, &item.path)?;
                let mode = self::mode(item.mode, mode);
                files.insert(
                    path,
                    FileToBe {
                        bytes: bytes.clone(),
                        mode,
                    },
                );
            }
            None if what.optional => {}
            None => {
                return Err(VolumeError::NoKey {
                    volume: volume(),
                    key: item.key.clone(),
                });
            }
        }
    }
    Ok(())
}

fn mode(asked: Option<i32>, otherwise: u32) -> u32 {
    asked
        .and_then(|mode| u32::try_from(mode).ok())
        .unwrap_or(otherwise)
        & 0o777
}

/// A path that stays below its volume.
fn relative(volume: &str, path: &str) -> Result<PathBuf, VolumeError> {
    let clean: Option<PathBuf> = Path::new(path)
        .components()
        .map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    match clean {
        Some(clean) if !clean.as_os_str().is_empty() && !path.starts_with("..") => Ok(clean),
        _ => Err(VolumeError::BadPath {
            volume: volume.to_owned(),
            path: path.to_owned(),
        }),
    }
}

/// The place of a `subPath` in a volume, made as a folder when it is missing
/// and may be made.
pub(crate) fn sub_path(
    volume: &str,
    prepared: &Prepared,
    sub_path: &str,
) -> Result<PathBuf, VolumeError> {
    if sub_path.is_empty() {
        return Ok(prepared.path.clone());
    }
    let path = prepared.path.join(relative(volume, sub_path)?);
    if !prepared.read_only {
        let system = |source| VolumeError::System {
            volume: volume.to_owned(),
            source,
        };
        if !path.exists() {
            make_folder(&path, 0o777).map_err(system)?;
        }
    }
    Ok(path)
}

fn host_path(volume: &str, path: &str, kind: &str) -> Result<Prepared, VolumeError> {
    let refuse = |reason: &str| VolumeError::HostPath {
        volume: volume.to_owned(),
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let there = Path::new(path);
    if !there.is_absolute() || there.components().any(|part| part == Component::ParentDir) {
        return Err(refuse("must be absolute and without \"..\""));
    }
    let made = match kind {
        "DirectoryOrCreate" if !there.exists() => make_folder(there, 0o755),
        "FileOrCreate" if !there.exists() => fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(there)
            .map(drop),
        // A real node makes what is missing as an empty folder; see runtimes' bind mounts.
        "" if !there.exists() => make_folder(there, 0o755),
        _ => Ok(()),
    };
    made.map_err(|error| refuse(&error.to_string()))?;
    let fits = match kind {
        "Directory" | "DirectoryOrCreate" => there.is_dir(),
        "File" | "FileOrCreate" => there.is_file(),
        _ => there.exists(),
    };
    if !fits {
        return Err(refuse(&format!("is not of type {kind}")));
    }
    Ok(Prepared {
        path: there.to_owned(),
        read_only: false,
    })
}

fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)?;
    // By chmod, since the umask takes bits from what is made.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Writes `files` into a new folder and lets `..data` lead to it.
fn publish(volume: &Path, files: &Files) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(volume)?;
    let data = volume.join("..data");
    let old = fs::read_link(&data).ok();
    if let Some(old) = &old
        && same(&volume.join(old), files)
    {
        return Ok(());
    }
    let generation = old
        .as_ref()
        .and_then(|old| old.to_str()?.strip_prefix("..")?.parse::<u64>().ok())
        .map_or(1, |generation| generation + 1);
    let name = format!("..{generation}");
    let folder = volume.join(&name);
    // Left over from a write that was cut off.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder)?;
    for (path, file) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
    }
    let swap = volume.join("..data_tmp");
    let _ = fs::remove_file(&swap);
    symlink(&name, &swap)?;
    fs::rename(&swap, &data)?;
    link_entries(volume, files)?;
    if let Some(old) = old {
        let _ = fs::remove_dir_all(volume.join(old));
    }
    Ok(())
}

/// Whether the folder has just these files.
fn same(folder: &Path, files: &Files) -> bool {
    let equal = |(path, file): (&PathBuf, &FileToBe)| {
        fs::read(folder.join(path)).is_ok_and(|bytes| bytes == file.bytes)
    };
    folder.is_dir() && count_files(folder) == files.len() && files.iter().all(equal)
}

fn count_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                count_files(&entry.path())
            } else {
                1
            }
        })
        .sum()
}

/// Top-level names lead through `..data`; names that are gone lose their link.
fn link_entries(volume: &Path, files: &Files) -> io::Result<()> {
    let wanted: std::collections::BTreeSet<_> =
        files.keys().filter_map(|path| path.iter().next()).collect();
    for entry in fs::read_dir(volume)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(".."));
        if !ours && !wanted.contains(name.as_os_str()) && entry.file_type()?.is_symlink() {
            fs::remove_file(entry.path())?;
        }
    }
    for name in wanted {
        let link = volume.join(name);
        if link.symlink_metadata().is_err() {
            symlink(Path::new("..data").join(name), link)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    struct Objects(BTreeMap<String, BTreeMap<String, Vec<u8>>>);

    impl Lookup for Objects {
        fn config_map(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
            self.0.get(name)
        }
        fn secret(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
            self.0.get(name)
        }
    }

    fn objects(values: &[(&str, &str)]) -> Objects {
        let values = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Objects([("there".to_owned(), values.collect())].into())
    }

    fn pod(volume: &serde_json::Value) -> Pod {
        let mut volume = volume.clone();
        volume["name"] = json!("v");
        serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c"}], "volumes": [volume]}
        }))
        .unwrap()
    }

    fn make(
        folder: &Path,
        volume: &serde_json::Value,
        objects: &Objects,
    ) -> Result<Prepared, VolumeError> {
        let facts = downward::Facts::default();
        Ok(prepare(&pod(volume), folder, objects, &facts)?
            .remove("v")
            .unwrap())
    }

    #[test]
    fn files_are_swapped_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let volume = json!({"configMap": {"name": "there", "defaultMode": 0o600}});
        let made = make(folder.path(), &volume, &objects(&[("a", "1"), ("b", "2")])).unwrap();
        assert!(made.read_only);
        assert_eq!(fs::read_to_string(made.path.join("a")).unwrap(), "1");
        let mode = fs::metadata(made.path.join("a"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = fs::read_link(made.path.join("..data")).unwrap();
        make(folder.path(), &volume, &objects(&[("a", "1"), ("b", "2")])).unwrap();
        assert_eq!(fs::read_link(made.path.join("..data")).unwrap(), before);
        make(folder.path(), &volume, &objects(&[("a", "3")])).unwrap();
        assert_eq!(fs::read_to_string(made.path.join("a")).unwrap(), "3");
        assert!(made.path.join("b").symlink_metadata().is_err());
        assert!(!made.path.join(before).exists());
    }

    #[test]
    fn items_projections_and_sub_paths() {
        let folder = tempfile::tempdir().unwrap();
        let volume = json!({"projected": {"sources": [
            {"secret": {"name": "there", "items": [{"key": "a", "path": "deep/name", "mode": 0o400}]}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"configMap": {"name": "gone", "optional": true}},
        ]}});
        let made = make(folder.path(), &volume, &objects(&[("a", "1")])).unwrap();
        assert_eq!(
            fs::read_to_string(made.path.join("deep/name")).unwrap(),
            "1"
        );
        assert_eq!(
            fs::read_to_string(made.path.join("labels")).unwrap(),
            "a=\"b\""
        );
        assert_eq!(
            sub_path("v", &made, "deep").unwrap(),
            made.path.join("deep")
        );
        assert!(sub_path("v", &made, "../x").is_err());

        let made = make(folder.path(), &json!({"emptyDir": {}}), &objects(&[])).unwrap();
        assert!(sub_path("v", &made, "x/y").unwrap().is_dir());
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let message = |volume: serde_json::Value| {
            make(folder.path(), &volume, &objects(&[("a", "1")]))
                .unwrap_err()
                .to_string()
        };
        let gone = message(json!({"secret": {"secretName": "gone"}}));
        assert_eq!(
            gone,
            "MountVolume.SetUp failed for volume \"v\" : secret \"gone\" not found"
        );
        let key = json!({"configMap": {"name": "there", "items": [{"key": "x", "path": "x"}]}});
        assert!(message(key).ends_with("references non-existent config key: x"));
        let path = json!({"configMap": {"name": "there", "items": [{"key": "a", "path": "../x"}]}});
        assert!(message(path).contains("must be relative"));
        assert!(
            message(json!({"hostPath": {"path": "/dev/null", "type": "Directory"}}))
                .contains("is not of type Directory")
        );
        assert!(message(json!({"nfs": {"server": "s", "path": "/"}})).contains("does not offer"));
    }
}
