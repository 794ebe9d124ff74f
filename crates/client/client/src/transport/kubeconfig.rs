//! Reads kubeconfig files, with limits on their size and on the size of the files they
//! refer to. The content is untrusted.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use longshore_files::read_limited;
use longshore_model::yaml;

use super::kubeconfig_rules;

/// The maximum size of a kubeconfig, in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// The maximum size of a file that a kubeconfig refers to (certificates, a key, a token),
/// in bytes.
const MAX_REFERENCED_BYTES: u64 = 1 << 20;
const NOT_UTF8: &str = "it is not UTF-8 text";

/// A problem that makes a kubeconfig unusable.
#[derive(Debug)]
pub(super) enum Problem {
    /// kube-client's error.
    Kube(KubeconfigError),
    /// The rule that it violates, without secrets.
    Rule(String),
}

impl From<KubeconfigError> for Problem {
    fn from(error: KubeconfigError) -> Self {
        Self::Kube(error)
    }
}

type Result<T> = std::result::Result<T, Problem>;

fn unreadable(path: &Path, error: io::Error) -> Problem {
    Problem::Kube(KubeconfigError::ReadConfig(error, path.to_owned()))
}

/// Reads one file. Resolves relative paths in it against its folder.
pub(super) fn read(path: &Path) -> Result<Kubeconfig> {
    let bytes = read_limited(path, MAX_BYTES).map_err(|error| unreadable(path, error))?;
    let invalid = |text: String| unreadable(path, io::Error::new(io::ErrorKind::InvalidData, text));
    let text = decode(bytes).map_err(|problem| invalid(problem.to_owned()))?;
    yaml::check(text.as_bytes()).map_err(|error| invalid(error.to_string()))?;
    let mut config = Kubeconfig::from_yaml(&text)?;
    kubeconfig_rules::normalize(&mut config).map_err(|rule| {
        let path = path.display();
        Problem::Rule(format!("{path}: {rule}"))
    })?;
    if let Some(folder) = path.parent() {
        let mut paths = Vec::new();
        for file in files(&mut config) {
            *file = folder.join(&*file).to_string_lossy().into_owned();
            paths.push(PathBuf::from(file.as_str()));
        }
        for path in paths {
            // kube-client reports a missing file when it reads it. Files of other users
            // and contexts may be missing.
            let Ok(metadata) = std::fs::metadata(&path) else {
                continue;
            };
            if !metadata.is_file() || metadata.len() > MAX_REFERENCED_BYTES {
                let text =
                    format!("it is not a regular file of at most {MAX_REFERENCED_BYTES} bytes");
                let error = io::Error::new(io::ErrorKind::InvalidInput, text);
                return Err(unreadable(&path, error));
            }
        }
        for command in commands(&mut config) {
            *command = folder.join(&*command).to_string_lossy().into_owned();
        }
    }
    Ok(config)
}

/// Decodes a file: UTF-16 if it starts with a byte order mark of UTF-16, else UTF-8.
fn decode(bytes: Vec<u8>) -> std::result::Result<String, &'static str> {
    let utf16 = |from_bytes: fn([u8; 2]) -> u16| {
        let units = bytes.get(2..).unwrap_or_default().chunks_exact(2);
        let units: Vec<u16> = units.map(|unit| from_bytes([unit[0], unit[1]])).collect();
        String::from_utf16(&units).map_err(|_| "it is not UTF-16 text")
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).map_err(|_| NOT_UTF8),
        _ => String::from_utf8(bytes).map_err(|_| NOT_UTF8),
    }
}

/// The paths of the files that a kubeconfig refers to.
fn files(config: &mut Kubeconfig) -> impl Iterator<Item = &mut String> {
    let clusters = config.clusters.iter_mut();
    let authorities = clusters
        .filter_map(|named| named.cluster.as_mut())
        .filter_map(|cluster| cluster.certificate_authority.as_mut());
    let users = config.auth_infos.iter_mut();
    let users = users
        .filter_map(|named| named.auth_info.as_mut())
        .flat_map(|user| {
            [
                user.client_certificate.as_mut(),
                user.client_key.as_mut(),
                user.token_file.as_mut(),
            ]
        });
    authorities
        .chain(users.flatten())
        .filter(|path| !path.is_empty())
}

/// The credential plugins that a kubeconfig refers to by path. Plugins without a slash in
/// their name are searched in `PATH`.
fn commands(config: &mut Kubeconfig) -> impl Iterator<Item = &mut String> {
    let users = config.auth_infos.iter_mut();
    let users = users.filter_map(|named| named.auth_info.as_mut());
    let commands = users.filter_map(|user| user.exec.as_mut()?.command.as_mut());
    commands.filter(|command| command.contains('/'))
}

/// Reads and merges the files in `KUBECONFIG`, or reads `~/.kube/config` if the variable is
/// empty.
pub(super) fn read_default() -> Result<Kubeconfig> {
    let list = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let paths = files_of(&list);
    if paths.is_empty() {
        let home = std::env::home_dir().ok_or(KubeconfigError::FindPath)?;
        return read(&home.join(".kube/config"));
    }
    read_all(paths)
}

/// Reads a file, or a list of files as in `KUBECONFIG`, unless a file has this name.
pub(super) fn read_list(path: &Path) -> Result<Kubeconfig> {
    let paths = files_of(path.as_os_str());
    match paths.len() > 1 && !path.exists() {
        true => read_all(paths),
        false => read(path),
    }
}

/// The files of a list, without empty names.
fn files_of(list: &OsStr) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::env::split_paths(list).collect();
    paths.retain(|path| !path.as_os_str().is_empty());
    paths
}

/// Reads and merges files. As in kubectl, missing files are ignored if several are given.
fn read_all(mut paths: Vec<PathBuf>) -> Result<Kubeconfig> {
    if paths.len() > 1 && paths.iter().any(|path| path.exists()) {
        // Keeps files whose existence cannot be checked: reading them reports the error.
        paths.retain(|path| path.try_exists().unwrap_or(true));
    }
    let merge = |all: Kubeconfig, path: &PathBuf| Ok(all.merge(read(path)?)?);
    paths.iter().try_fold(Kubeconfig::default(), merge)
}

/// The `proxy-url` of the cluster that the options or the context select.
pub(super) fn proxy(config: &Kubeconfig, options: &KubeConfigOptions) -> Option<String> {
    let context = options.context.as_ref().or(config.current_context.as_ref());
    let context = config
        .contexts
        .iter()
        .find(|named| Some(&named.name) == context)
        .and_then(|named| named.context.as_ref());
    let cluster = options
        .cluster
        .as_ref()
        .or(context.map(|context| &context.cluster));
    let cluster = config
        .clusters
        .iter()
        .find(|named| Some(&named.name) == cluster)
        .and_then(|named| named.cluster.as_ref());
    let proxy = cluster.and_then(|cluster| cluster.proxy_url.clone());
    proxy.filter(|proxy| !proxy.is_empty())
}
