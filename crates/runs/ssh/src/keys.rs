//! The keys of the server and of its client, created once per user in a private folder.
//!
//! Both are Ed25519 keys. OpenSSH reads the client's key and the file of known hosts. The files are
//! written before the folder gets its name, and never change.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ring::{
    rand::{SecureRandom as _, SystemRandom},
    signature::{Ed25519KeyPair, KeyPair as _},
};

use crate::wire::{Fields, Put as _};

/// The algorithm of all keys.
pub(crate) const ALGORITHM: &str = "ssh-ed25519";

/// The name of the server in the file of known hosts: all tasks have the same server, which is a
/// program of the user.
pub const HOST_ALIAS: &str = "longshore";

/// The private key of the client, as OpenSSH reads it.
const CLIENT_KEY: &str = "client_key";
/// The public key of the client.
const CLIENT_PUBLIC_KEY: &str = "client_key.pub";
/// The private key of the server: its seed in base64.
const HOST_KEY: &str = "host_key";
/// The public key of the server, as OpenSSH reads it.
const KNOWN_HOSTS: &str = "known_hosts";

/// An error of reading or creating the keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The folder is not private, or cannot be read or written.
    #[error(transparent)]
    Files(#[from] longshore_files::Error),
    /// A file of the folder is missing or damaged.
    #[error("{} is missing or damaged: remove the folder {}, and it is made again", path.display(), folder.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The folder with the keys.
        folder: PathBuf,
    },
    /// The folder cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The operating system has no random numbers.
    #[error("cannot generate a key: the operating system provides no random numbers")]
    Random,
}

/// The keys of a user.
pub struct Keys {
    folder: PathBuf,
    host: Ed25519KeyPair,
    client: Vec<u8>,
}

impl Keys {
    /// Reads the keys of a folder. Creates the folder with new keys if it does not exist.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        if !folder.exists() {
            create(folder)?;
        }
        longshore_files::private_dir(folder)?;
        let damaged = |name: &str| KeysError::Damaged {
            path: folder.join(name),
            folder: folder.to_owned(),
        };
        let read = |name: &str| {
            let content = longshore_files::read_optional(&folder.join(name))?;
            content.ok_or_else(|| damaged(name))
        };
        let seed = BASE64.decode(read(HOST_KEY)?.trim_ascii());
        let host = seed
            .ok()
            .and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok())
            .ok_or_else(|| damaged(HOST_KEY))?;
        let client = public_key(&read(CLIENT_PUBLIC_KEY)?);
        let client = client.ok_or_else(|| damaged(CLIENT_PUBLIC_KEY))?;
        Ok(Self {
            folder: folder.to_owned(),
            host,
            client,
        })
    }

    /// The file with the private key of the client.
    #[must_use]
    pub fn client_key(&self) -> PathBuf {
        self.folder.join(CLIENT_KEY)
    }

    /// The file with the public key of the server, under the name [`HOST_ALIAS`].
    #[must_use]
    pub fn known_hosts(&self) -> PathBuf {
        self.folder.join(KNOWN_HOSTS)
    }

    pub(crate) fn host(&self) -> &Ed25519KeyPair {
        &self.host
    }

    /// The public key of the client, 32 bytes.
    pub(crate) fn client(&self) -> &[u8] {
        &self.client
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Creates the folder in one step, so that several processes that start at once have the same keys.
fn create(folder: &Path) -> Result<(), KeysError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| KeysError::Create { path, source }
    };
    let parent = folder.parent().unwrap_or(Path::new("."));
    longshore_files::private_dir(parent)?;
    // Temporary folders have the mode 0700.
    let new = tempfile::Builder::new()
        .prefix(".ssh-")
        .tempdir_in(parent)
        .map_err(failed(parent))?;
    for (name, content) in contents()? {
        let path = new.path().join(name);
        write(&path, &content).map_err(failed(&path))?;
    }
    let new = new.keep();
    match fs::rename(&new, folder) {
        Ok(()) => Ok(()),
        Err(source) => {
            let _ = fs::remove_dir_all(&new);
            // Another process has created the folder in the meantime.
            match folder.is_dir() {
                true => Ok(()),
                false => Err(failed(folder)(source)),
            }
        }
    }
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    io::Write::write_all(&mut file, content.as_bytes())?;
    file.sync_all()
}

/// The files with new keys.
fn contents() -> Result<[(&'static str, String); 4], KeysError> {
    let (host, client) = (new_seed()?, new_seed()?);
    let public = |seed: &[u8]| {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeysError::Random)?;
        let mut key = [0; 32];
        key.copy_from_slice(pair.public_key().as_ref());
        Ok::<[u8; 32], KeysError>(key)
    };
    let line = |public: &[u8]| format!("{ALGORITHM} {}", BASE64.encode(blob(public)));
    let client_public = public(&client)?;
    Ok([
        (HOST_KEY, format!("{}\n", BASE64.encode(host))),
        (
            KNOWN_HOSTS,
            format!("{HOST_ALIAS} {}\n", line(&public(&host)?)),
        ),
        (CLIENT_KEY, private_key(&client, &client_public)),
        (
            CLIENT_PUBLIC_KEY,
            format!("{} longshore\n", line(&client_public)),
        ),
    ])
}

fn new_seed() -> Result<[u8; 32], KeysError> {
    let mut seed = [0; 32];
    let filled = SystemRandom::new().fill(&mut seed);
    filled.map(|()| seed).map_err(|_| KeysError::Random)
}

/// The encoding of a public key.
pub(crate) fn blob(public: &[u8]) -> Vec<u8> {
    let mut blob = Vec::new();
    blob.put_string(ALGORITHM);
    blob.put_string(public);
    blob
}

/// The key of a line such as `ssh-ed25519 AAAA… comment`.
fn public_key(line: &[u8]) -> Option<Vec<u8>> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let encoded = words.nth(1)?;
    let blob = BASE64.decode(encoded).ok()?;
    let mut fields = Fields::new(&blob);
    let is_ours = fields.text().ok()? == ALGORITHM;
    let key = fields.string().ok()?;
    (is_ours && key.len() == 32).then(|| key.to_vec())
}

/// The format of OpenSSH's private keys, without a passphrase.
fn private_key(seed: &[u8; 32], public: &[u8; 32]) -> String {
    let mut secret = Vec::new();
    // OpenSSH detects a wrong passphrase if these two numbers differ.
    secret.put_number(0);
    secret.put_number(0);
    secret.put_string(ALGORITHM);
    secret.put_string(public);
    secret.put_string([&seed[..], &public[..]].concat());
    secret.put_string("longshore");
    let mut padding = 1;
    while !secret.len().is_multiple_of(8) {
        secret.put_byte(padding);
        padding += 1;
    }
    let mut key = b"openssh-key-v1\0".to_vec();
    key.put_string("none");
    key.put_string("none");
    key.put_string("");
    key.put_number(1);
    key.put_string(blob(public));
    key.put_string(&secret);
    let encoded = BASE64.encode(key);
    let mut text = "-----BEGIN OPENSSH PRIVATE KEY-----\n".to_owned();
    for line in encoded.as_bytes().chunks(70) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text + "-----END OPENSSH PRIVATE KEY-----\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_are_made_once_and_are_private() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data/ssh");
        fs::create_dir(home.path().join("data")).unwrap();
        fs::set_permissions(home.path().join("data"), fs::Permissions::from_mode(0o700)).unwrap();
        let first = Keys::open(&folder).unwrap();
        let second = Keys::open(&folder).unwrap();
        assert_eq!(first.client(), second.client());
        assert_eq!(
            first.host().public_key().as_ref(),
            second.host().public_key().as_ref()
        );
        for entry in fs::read_dir(&folder).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(home.path().join("data")).unwrap().count(), 1);
    }

    #[test]
    fn processes_that_start_at_once_have_the_same_keys() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("ssh");
        let open = || Keys::open(&folder).unwrap().client().to_vec();
        let keys: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("ssh");
        Keys::open(&folder).unwrap();
        for name in [HOST_KEY, CLIENT_PUBLIC_KEY] {
            let path = folder.join(name);
            let before = fs::read(&path).unwrap();
            fs::write(&path, "damaged").unwrap();
            let error = Keys::open(&folder).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
            fs::write(&path, before).unwrap();
        }
    }
}
