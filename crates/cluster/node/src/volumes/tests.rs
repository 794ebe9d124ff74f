//! Tests of volumes in a temporary directory.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use serde_json::json;

use super::*;
use crate::tokens::TokenSpec;

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
    make_for(folder, volume, objects, Owner::default())
}

fn make_for(
    folder: &Path,
    volume: &serde_json::Value,
    objects: &Objects,
    owner: Owner,
) -> Result<Prepared, VolumeError> {
    let token = |audience: Option<&str>, seconds| TokenSpec {
        audience: audience.map(str::to_owned),
        seconds,
    };
    let inputs = Inputs {
        pod: &pod(volume),
        lookup: objects,
        pod_values: &downward::PodValues::default(),
        tokens: &[
            (token(None, 3600), "api".to_owned()),
            (token(Some("vault"), 600), "vault".to_owned()),
        ]
        .into(),
        account: AccountFiles::Complete,
        certificates: &Certificates::new(),
        claims: &ClaimVolumes::new(),
        owner,
    };
    Ok(prepare(&inputs, folder)?.remove("v").unwrap())
}

#[test]
fn files_are_swapped_atomically() {
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
    let deep = sub_path("v", &made, "deep/name").unwrap();
    assert_eq!(fs::read_to_string(deep.full()).unwrap(), "1");
    assert!(sub_path("v", &made, "missing").is_err());
    assert!(sub_path("v", &made, "../x").is_err());

    let made = make(folder.path(), &json!({"emptyDir": {}}), &objects(&[])).unwrap();
    let missing = sub_path("v", &made, "x/y").unwrap();
    assert_eq!(missing.full(), made.path.join("x/y"));
    // The container's view creates the directory.
    assert!(!made.path.join("x").exists());
    std::os::unix::fs::symlink("/etc", made.path.join("link")).unwrap();
    for path in ["link", "link/cron.d"] {
        let error = sub_path("v", &made, path).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
}

/// Returns owner, group and mode of a file, following links.
fn rights(path: &Path) -> (u32, u32, u32) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
}

#[test]
fn tokens_are_for_the_pods_user_and_group() {
    let folder = tempfile::tempdir().unwrap();
    let (own, own_group, _) = rights(folder.path());
    let volume = json!({"projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}},
        {"serviceAccountToken": {"path": "deep/vault", "audience": "vault", "expirationSeconds": 600}},
    ]}});
    let user = Owner {
        user: Some(own),
        group: None,
    };
    let made = make_for(folder.path(), &volume, &objects(&[]), user).unwrap();
    let text = |name: &str| fs::read_to_string(made.path.join(name)).unwrap();
    assert_eq!(
        (text("token"), text("deep/vault")),
        ("api".to_owned(), "vault".to_owned())
    );
    assert_eq!(rights(&made.path.join("token")), (own, own_group, 0o600));

    // Several users without a common group.
    let folder = tempfile::tempdir().unwrap();
    let made = make(folder.path(), &volume, &objects(&[])).unwrap();
    assert_eq!(rights(&made.path.join("token")).2, 0o644);

    let other = json!({"projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "audience": "other"}}]}});
    assert!(make(folder.path(), &other, &objects(&[])).is_err());
    if own != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let owner = Owner {
        user: Some(65_534),
        group: Some(4321),
    };
    let made = make_for(folder.path(), &volume, &objects(&[]), owner).unwrap();
    assert_eq!(rights(&made.path.join("token")), (65_534, 4321, 0o640));
    assert_eq!(rights(&made.path.join("deep")), (0, 4321, 0o2755));
    assert_eq!(rights(&made.path), (0, 4321, 0o2755));
}

#[test]
fn volumes_belong_to_the_group() {
    let folder = tempfile::tempdir().unwrap();
    if rights(folder.path()).0 != 0 {
        return;
    }
    let owner = Owner {
        user: None,
        group: Some(4321),
    };
    let made = make_for(
        folder.path(),
        &json!({"emptyDir": {}}),
        &objects(&[]),
        owner,
    )
    .unwrap();
    assert_eq!(rights(&made.path), (0, 4321, 0o2777));
    // Later changes of the mode belong to the containers.
    fs::set_permissions(&made.path, fs::Permissions::from_mode(0o700)).unwrap();
    make_for(
        folder.path(),
        &json!({"emptyDir": {}}),
        &objects(&[]),
        owner,
    )
    .unwrap();
    assert_eq!(rights(&made.path).2, 0o700);
    let folder = tempfile::tempdir().unwrap();
    let volume = json!({"secret": {"secretName": "there", "defaultMode": 0o400}});
    let secret = objects(&[("a", "1")]);
    let made = make_for(folder.path(), &volume, &secret, owner).unwrap();
    assert_eq!(rights(&made.path.join("a")), (0, 4321, 0o440));
}

#[test]
fn unsupported_volumes_are_rejected() {
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
    for kind in [
        "Directory",
        "DirectoryOrCreate",
        "File",
        "Socket",
        "BlockDevice",
    ] {
        let path = json!({"hostPath": {"path": "/dev/null", "type": kind}});
        let expected = format!("is not of type {kind}");
        assert!(message(path).contains(&expected), "{kind}");
    }
    assert!(message(json!({"nfs": {"server": "s", "path": "/"}})).contains("does not offer"));
}

#[test]
fn claims_are_mounted_from_existing_directories() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let path = data.to_str().unwrap();
    let prepare = |source: ClaimSource, read_only: bool, owner: Owner| {
        let claim = ClaimVolume {
            name: "pvc-1".to_owned(),
            source,
            read_only,
        };
        let inputs = Inputs {
            pod: &pod(&json!({"persistentVolumeClaim": {"claimName": "c"}})),
            lookup: &objects(&[]),
            pod_values: &downward::PodValues::default(),
            tokens: &Issued::default(),
            account: AccountFiles::Complete,
            certificates: &Certificates::new(),
            claims: &[("v".to_owned(), claim)].into(),
            owner,
        };
        prepare(&inputs, temp.path()).map(|mut made| made.remove("v").unwrap())
    };
    let local = || ClaimSource::Local(path.to_owned());
    let missing = prepare(local(), false, Owner::default()).unwrap_err();
    assert_eq!(
        missing.to_string(),
        format!(
            "MountVolume.NewMounter initialization failed for volume \"pvc-1\" : path \"{path}\" does not exist"
        )
    );
    fs::create_dir(&data).unwrap();
    let made = prepare(local(), true, Owner::default()).unwrap();
    assert!(made.read_only && !made.is_published);
    assert_eq!(made.path, data);
    let unsupported = prepare(ClaimSource::Unsupported, false, Owner::default());
    assert!(
        unsupported
            .unwrap_err()
            .to_string()
            .contains("local or hostPath")
    );

    // A link of a container to other files of the machine is not followed.
    std::os::unix::fs::symlink("/etc", data.join("..data")).unwrap();
    std::os::unix::fs::symlink("/etc", data.join("link")).unwrap();
    fs::create_dir(data.join("part")).unwrap();
    assert!(sub_path("v", &made, "link").is_err());
    assert!(sub_path("v", &made, "link/passwd").is_err());
    assert!(sub_path("v", &made, "passwd").is_err());
    assert!(sub_path("v", &made, "../x").is_err());
    assert!(sub_path("v", &made, "part").is_ok());

    if rustix::process::geteuid().is_root() {
        let owner = Owner {
            user: None,
            group: Some(4321),
        };
        let made = prepare(local(), false, owner).unwrap();
        assert_eq!(rights(&made.path), (0, 4321, 0o2777));
    }
}
