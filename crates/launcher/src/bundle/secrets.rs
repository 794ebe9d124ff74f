//! Recognises what must not leave home by accident: keys, passwords, tokens.
//!
//! A bundle lies in a store or in a Secret that others may read. Only what is
//! surely a secret is refused: a name that is used for nothing else, or content
//! that nothing else has.

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
    /// What it is: `a private key`.
    pub what: &'static str,
}

/// So much of a file is looked at.
const LOOKED_AT: u64 = 64 * 1024;
/// Larger files are no keys, no settings.
const LARGEST: u64 = 1024 * 1024;

/// Names that are used for nothing else.
const NAMES: [(&str, &str); 9] = [
    (".env", "a file of variables, which often holds passwords"),
    (".netrc", "passwords of hosts"),
    ("_netrc", "passwords of hosts"),
    (".pgpass", "passwords of databases"),
    (".git-credentials", "passwords of repositories"),
    (".pypirc", "passwords of package indexes"),
    (".htpasswd", "hashes of passwords"),
    (".vault-token", "a token"),
    (".boto", "credentials of a cloud"),
];
/// Those of examples, which hold nothing.
const EXAMPLES: [&str; 6] = ["example", "sample", "template", "dist", "defaults", "test"];
/// Stores of keys, by their extension.
const KEY_STORES: [&str; 5] = ["p12", "pfx", "jks", "keystore", "kdbx"];
/// Files with other extensions are code or data, and are not looked into.
const LOOKED_INTO: [&str; 14] = [
    "pem", "key", "crt", "cer", "yaml", "yml", "json", "toml", "ini", "cfg", "conf", "config",
    "txt", "rsa",
];

/// The secrets among what is to be packed, but for those that `allowed` names; not all
/// of them when `stop` is set meanwhile.
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
        return Some("credentials of a cloud");
    }
    let extension = Path::new(name).extension()?.to_str()?;
    KEY_STORES.contains(&extension).then_some("a store of keys")
}

fn by_content(folder: &Path, entry: &Found) -> Option<&'static str> {
    let name = entry.path.file_name()?.to_str()?;
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    let looked_into = extension.is_none_or(|extension| LOOKED_INTO.contains(&extension));
    if !looked_into || entry.size == 0 || entry.size > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    // What cannot be read is told when it is packed.
    let file = File::open(folder.join(&entry.path)).ok()?;
    file.take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
    in_text(&String::from_utf8_lossy(&bytes))
}

/// What a text surely holds.
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
        return Some("passwords of registries");
    }
    if has(&["aws_access_key_id", "aws_secret_access_key"]) {
        return Some("credentials of a cloud");
    }
    if text.contains("_authToken=") && !text.contains("_authToken=$") {
        return Some("a token of a package registry");
    }
    None
}

/// PEM's private keys: a whole line, so that code which looks for one is none.
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
    fn names_that_are_used_for_nothing_else() {
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
    fn content_that_nothing_else_has() {
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
