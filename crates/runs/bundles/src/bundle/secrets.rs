//! Detects keys, passwords and tokens, which must not be uploaded by accident.
//!
//! Other users may be able to read a bundle in a store or Secret. Only unambiguous secrets
//! are rejected: names that are used for nothing else, or content that occurs nowhere else.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use ignore::gitignore::Gitignore;

use super::entry::{Found, Kind};

/// A secret among the files of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFile {
    /// The file, within the folder.
    pub path: PathBuf,
    /// A description, such as `a private key`.
    pub what: &'static str,
}

/// The number of bytes of a file to inspect.
const LOOKED_AT: u64 = 64 * 1024;
/// Larger files are not keys or settings.
const LARGEST: u64 = 1024 * 1024;

/// Names that are used for nothing else.
const NAMES: [(&str, &str); 9] = [
    (
        ".env",
        "environment variables, which often contain passwords",
    ),
    (".netrc", "host passwords"),
    ("_netrc", "host passwords"),
    (".pgpass", "database passwords"),
    (".git-credentials", "repository credentials"),
    (".pypirc", "package index credentials"),
    (".htpasswd", "password hashes"),
    (".vault-token", "a token"),
    (".boto", "cloud credentials"),
];
/// Extensions of example files, which contain no secrets.
const EXAMPLES: [&str; 6] = ["example", "sample", "template", "dist", "defaults", "test"];
/// Extensions of keystores.
const KEY_STORES: [&str; 5] = ["p12", "pfx", "jks", "keystore", "kdbx"];
/// Extensions of files to inspect. Other files are code or data.
const LOOKED_INTO: [&str; 14] = [
    "pem", "key", "crt", "cer", "yaml", "yml", "json", "toml", "ini", "cfg", "conf", "config",
    "txt", "rsa",
];

/// The secrets among the files to pack, except those that `allowed` matches. Incomplete if
/// `stop` is set meanwhile.
pub(super) fn find(
    folder: &Path,
    entries: &[Found],
    allowed: &Gitignore,
    stop: &AtomicBool,
) -> Vec<SecretFile> {
    let files = entries
        .iter()
        .take_while(|_| !stop.load(Ordering::Relaxed))
        .filter(|entry| entry.kind == Kind::File);
    let secrets = files.filter_map(|entry| {
        let what = by_name(&entry.path).or_else(|| by_content(folder, entry))?;
        let path = entry.path.clone();
        Some(SecretFile { path, what })
    });
    secrets
        .filter(|secret| {
            !allowed
                .matched_path_or_any_parents(&secret.path, false)
                .is_ignore()
        })
        .collect()
}

fn by_name(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().and_then(Path::file_name);
    let within = |wanted: &str| folder.is_some_and(|folder| folder == wanted);
    if let Some((_, what)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(what);
    }
    if let Some(kind) = name.strip_prefix(".env.") {
        let is_example = EXAMPLES.iter().any(|example| kind.contains(example));
        return (!is_example).then_some(NAMES[0].1);
    }
    if name == "credentials" && within(".aws") {
        return Some("cloud credentials");
    }
    let extension = Path::new(name).extension()?.to_str()?;
    KEY_STORES.contains(&extension).then_some("a keystore")
}

fn by_content(folder: &Path, entry: &Found) -> Option<&'static str> {
    let name = entry.path.file_name()?.to_str()?;
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    let looked_into = extension.is_none_or(|extension| LOOKED_INTO.contains(&extension));
    if !looked_into || entry.size == 0 || entry.size > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    // Packing reports unreadable files.
    let file = File::open(folder.join(&entry.path)).ok()?;
    file.take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
    in_text(&String::from_utf8_lossy(&bytes))
}

/// The kind of secret that a text contains.
fn in_text(text: &str) -> Option<&'static str> {
    if has_private_key(text) {
        return Some("a private key");
    }
    let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
    let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_kubeconfig = has(&["kind: Config", "clusters:", "users:"])
        || (has(&["\"clusters\"", "\"users\""])
            && any(&["\"kind\":\"Config\"", "\"kind\": \"Config\""]));
    let credentials = [
        "token",
        "client-key-data",
        "password",
        "id-token",
        "refresh-token",
    ];
    if is_kubeconfig && any(&credentials) {
        return Some("a kubeconfig with credentials");
    }
    if has(&["\"auths\"", "\"auth\""]) {
        return Some("registry credentials");
    }
    if has(&["aws_access_key_id", "aws_secret_access_key"]) {
        return Some("cloud credentials");
    }
    if text.contains("_authToken=") && !text.contains("_authToken=$") {
        return Some("a token of a package registry");
    }
    None
}

/// Returns true if a text contains a PEM private key. Matches whole lines, so that code that
/// searches for keys does not count.
fn has_private_key(text: &str) -> bool {
    text.lines().any(|line| {
        let kind = line
            .trim()
            .strip_prefix("-----BEGIN ")
            .and_then(|rest| rest.strip_suffix("-----"));
        kind.is_some_and(|kind| {
            kind.ends_with("PRIVATE KEY") || kind.ends_with("PRIVATE KEY BLOCK")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_detected_by_name() {
        let secret = |path: &str| by_name(Path::new(path)).is_some();
        for path in [
            ".env",
            "a/.env.production",
            ".netrc",
            "keys/server.p12",
            ".aws/credentials",
        ] {
            assert!(secret(path), "{path}");
        }
        for path in [
            ".env.example",
            ".env.local.template",
            "environment",
            "credentials",
            "a/credentials.py",
            "p12",
            ".environment",
        ] {
            assert!(!secret(path), "{path}");
        }
    }

    #[test]
    fn secrets_are_detected_by_content() {
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3\n-----END OPENSSH PRIVATE KEY-----\n",
            "cert\n  -----BEGIN RSA PRIVATE KEY-----\n",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            "apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- user: {token: abc}\n",
            r#"{"kind":"Config","clusters":[],"users":[{"user":{"password":"x"}}]}"#,
            r#"{"auths": {"registry": {"auth": "dTpw"}}}"#,
            "[default]\naws_access_key_id = A\naws_secret_access_key = B\n",
            "//registry/:_authToken=abc",
        ] {
            assert!(in_text(text).is_some(), "{text}");
        }
        for text in [
            "",
            "-----BEGIN CERTIFICATE-----\nabc\n",
            "-----BEGIN PUBLIC KEY-----",
            "look for '-----BEGIN RSA PRIVATE KEY-----' in the file",
            "kind: Config\nclusters: []\nusers: []\n",
            "kind: ConfigMap\ndata: {token: a}",
            "//registry/:_authToken=${TOKEN}",
            "password: changeme",
        ] {
            assert_eq!(in_text(text), None, "{text}");
        }
    }
}
