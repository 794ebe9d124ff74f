//! Writes OCI archives with one image of one layer, without a container engine.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write},
    path::Path,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, Header, HeaderMode};

/// The name and the configuration of an image.
pub(crate) struct Image<'a> {
    /// The full name, with registry and tag.
    pub(crate) name: &'a str,
    pub(crate) entrypoint: &'a [&'a str],
    /// The default arguments of the entrypoint (`Cmd`).
    pub(crate) command: &'a [&'a str],
    /// True if the files keep their owners and modes; otherwise root owns them.
    pub(crate) keeps_owners: bool,
}

const MEDIA_TYPE_PREFIX: &str = "application/vnd.oci.image";
const PATH_ENV: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Writes an archive with one image, whose only layer contains the files of a folder. The
/// same files produce the same image.
pub(crate) fn write(path: &Path, image: &Image<'_>, root: &Path) -> io::Result<()> {
    let layer = path.with_extension("layer");
    let written =
        write_layer(&layer, image, root).and_then(|layer| write_archive(path, image, layer));
    std::fs::remove_file(&layer)?;
    written
}

/// A file with its digest and its size.
struct Blob {
    file: File,
    digest: String,
    size: u64,
}

fn write_layer(path: &Path, image: &Image<'_>, root: &Path) -> io::Result<Blob> {
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let mut layer = Builder::new(HashingWriter {
        file,
        hash: Sha256::new(),
        size: 0,
    });
    layer.mode(match image.keeps_owners {
        true => HeaderMode::Complete,
        false => HeaderMode::Deterministic,
    });
    layer.follow_symlinks(false);
    layer.append_dir_all(".", root)?;
    let HashingWriter {
        mut file,
        hash,
        size,
    } = layer.into_inner()?;
    file.rewind()?;
    Ok(Blob {
        file,
        digest: digest_string(&hash.finalize()),
        size,
    })
}

fn write_archive(path: &Path, image: &Image<'_>, layer: Blob) -> io::Result<()> {
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": image.entrypoint, "Cmd": image.command, "Env": [PATH_ENV]},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
    });
    let config = config.to_string();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": format!("{MEDIA_TYPE_PREFIX}.manifest.v1+json"),
        "config": descriptor_of("config.v1+json", config.as_bytes()),
        "layers": [descriptor("layer.v1.tar", &layer.digest, layer.size)],
    });
    let manifest = manifest.to_string();
    let mut index = descriptor_of("manifest.v1+json", manifest.as_bytes());
    index["annotations"] = json!({"io.containerd.image.name": image.name});
    let index = json!({"schemaVersion": 2, "manifests": [index]}).to_string();

    let mut archive = Builder::new(File::create(path)?);
    let mut add = |name: &str, size: u64, content: &mut dyn io::Read| {
        let mut header = Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content)
    };
    let mut text = |name: &str, text: &str| add(name, text.len() as u64, &mut text.as_bytes());
    text("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    text("index.json", &index)?;
    for blob in [&config, &manifest] {
        text(&blob_path(&digest(blob.as_bytes())), blob)?;
    }
    add(
        &blob_path(&layer.digest),
        layer.size,
        &mut layer.file.take(layer.size),
    )?;
    archive.into_inner()?.sync_all()
}

/// The path of a blob in the archive.
fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn descriptor_of(kind: &str, content: &[u8]) -> Value {
    descriptor(kind, &digest(content), content.len() as u64)
}

fn descriptor(kind: &str, digest: &str, size: u64) -> Value {
    json!({"mediaType": format!("{MEDIA_TYPE_PREFIX}.{kind}"), "digest": digest, "size": size})
}

fn digest(content: &[u8]) -> String {
    digest_string(&Sha256::digest(content))
}

fn digest_string(hash: &[u8]) -> String {
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

/// Writes to a file, and hashes what it writes.
struct HashingWriter {
    file: File,
    hash: Sha256,
    size: u64,
}

impl Write for HashingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{collections::BTreeMap, fs, io::Read as _};

    use super::*;

    fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (name, content)
        });
        entries.collect()
    }

    #[test]
    fn archives_are_reproducible_and_name_blobs_by_digest() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/tool"), "#!").unwrap();
        let image = Image {
            name: "localhost/a:1",
            entrypoint: &["/bin/tool"],
            command: &[],
            keeps_owners: false,
        };
        let (first, second) = (folder.path().join("1.tar"), folder.path().join("2.tar"));
        write(&first, &image, &root).unwrap();
        write(&second, &image, &root).unwrap();
        assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
        assert!(!folder.path().join("1.layer").exists());

        let files = files(&first);
        for (name, content) in files.iter().filter(|(name, _)| name.starts_with("blobs/")) {
            assert_eq!(*name, blob_path(&digest(content)));
        }
        let json = |digest: &Value| -> Value {
            serde_json::from_slice(&files[&blob_path(digest.as_str().unwrap())]).unwrap()
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let manifest = json(&index["manifests"][0]["digest"]);
        let config = json(&manifest["config"]["digest"]);
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            manifest["layers"][0]["digest"]
        );
        let layer = &files[&blob_path(manifest["layers"][0]["digest"].as_str().unwrap())];
        assert_eq!(manifest["layers"][0]["size"], layer.len());
        let mut layer = tar::Archive::new(&**layer);
        let names: Vec<String> = layer
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert!(names.contains(&"bin/tool".to_owned()), "{names:?}");
    }
}
