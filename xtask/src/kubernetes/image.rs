//! Images, made without a container engine.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{make_folder, sources};
use crate::run::{Outcome, finish};

/// The image that holds a pod's namespaces.
pub(super) const PAUSE: &str = "localhost/longshore/pause:1";

/// Makes the image of [`PAUSE`], an OCI archive.
pub(super) fn pause(folder: &Path) -> Outcome<PathBuf> {
    let root = folder.join("pause");
    make_folder(&root)?;
    let source = sources().join("pause.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-static", "-Os", "-o"])
        .arg(root.join("pause"));
    finish(compiler.arg(source))?;
    let archive = folder.join("pause.tar");
    write_archive(&archive, PAUSE, &root, &["/pause"])
        .map_err(|error| format!("cannot write {}: {error}", archive.display()))?;
    Ok(archive)
}

/// Writes an archive with one image, whose only layer has the files of a folder.
fn write_archive(path: &Path, name: &str, root: &Path, entrypoint: &[&str]) -> std::io::Result<()> {
    let mut layer = tar::Builder::new(Vec::new());
    layer.mode(tar::HeaderMode::Deterministic);
    layer.follow_symlinks(false);
    layer.append_dir_all(".", root)?;
    let layer = layer.into_inner()?;
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
    });
    let config = config.to_string().into_bytes();
    let image = "application/vnd.oci.image";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": format!("{image}.manifest.v1+json"),
        "config": descriptor(&format!("{image}.config.v1+json"), &config),
        "layers": [descriptor(&format!("{image}.layer.v1.tar"), &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut entry = descriptor(&format!("{image}.manifest.v1+json"), &manifest);
    entry["annotations"] = json!({"io.containerd.image.name": name});
    let index = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();

    let mut archive = tar::Builder::new(File::create(path)?);
    let mut add = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content)
    };
    add("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add("index.json", index.as_bytes())?;
    for blob in [&layer, &config, &manifest] {
        let name = digest(blob).replace(':', "/");
        add(&format!("blobs/{name}"), blob)?;
    }
    archive.finish()?;
    fs::metadata(path).map(drop)
}

fn descriptor(kind: &str, content: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": digest(content), "size": content.len()})
}

fn digest(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "amd64",
        other => other,
    }
}
