//! Volumes in a temporary folder.

#![allow(clippy::unwrap_used)]

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use super::*;

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
