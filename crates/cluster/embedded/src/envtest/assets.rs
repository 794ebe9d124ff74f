//! The folder for `KUBEBUILDER_ASSETS`.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{API_SERVER, STORE};

/// The file that enables controllers in the API server of a folder.
const CONTROLLERS: &str = "controllers";
/// The file with the delay of each request to the API server of a folder, in milliseconds.
const LATENCY: &str = "latency";
/// The client, which envtest offers to tests.
const KUBECTL: &str = "kubectl";

/// A folder with the programs `kube-apiserver` and `etcd`, for the variable
/// `KUBEBUILDER_ASSETS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assets {
    /// Contains the folder. The folder's name depends on `controllers` and `latency`.
    pub parent: PathBuf,
    /// The program `longshore`, to which the links in the folder point.
    pub program: PathBuf,
    /// kubectl, if tests are to use it.
    pub kubectl: Option<PathBuf>,
    /// Run the cluster's controllers together with the API server.
    pub controllers: bool,
    /// Delay each request by this time, in whole milliseconds, for tests that depend on the speed
    /// of etcd.
    pub latency: Duration,
}

/// The reason why the folder cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create {path}: {source}")]
pub struct AssetsError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl Assets {
    /// Creates the folder, or updates it, and returns its path.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(&self) -> Result<PathBuf, AssetsError> {
        let name = match self.controllers {
            true => "with-controllers",
            false => "without-controllers",
        };
        let milliseconds = self.latency.as_millis();
        let folder = self.parent.join(match milliseconds {
            0 => name.to_owned(),
            _ => format!("{name}-{milliseconds}ms"),
        });
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| AssetsError { path, source }
        };
        longshore_files::private_dir(&folder).map_err(|error| AssetsError {
            path: folder.clone(),
            source: io::Error::other(error),
        })?;
        for name in [API_SERVER, STORE] {
            let path = folder.join(name);
            link(&self.program, &path).map_err(failed(&path))?;
        }
        let kubectl = folder.join(KUBECTL);
        match &self.kubectl {
            Some(program) => link(program, &kubectl).map_err(failed(&kubectl))?,
            None => _ = fs::remove_file(&kubectl),
        }
        if self.controllers {
            let path = folder.join(CONTROLLERS);
            fs::write(&path, "").map_err(failed(&path))?;
        }
        if milliseconds > 0 {
            let path = folder.join(LATENCY);
            fs::write(&path, milliseconds.to_string()).map_err(failed(&path))?;
        }
        Ok(folder)
    }
}

/// Returns true if the API server of a folder runs controllers.
pub(super) fn runs_controllers(folder: &Path) -> bool {
    folder.join(CONTROLLERS).exists()
}

/// The time by which the API server of a folder delays each request.
pub(super) fn latency(folder: &Path) -> Option<Duration> {
    let text = fs::read_to_string(folder.join(LATENCY)).ok()?;
    Some(Duration::from_millis(text.parse().ok()?))
}

/// Creates or replaces a link. For other processes, the link always exists.
fn link(target: &Path, path: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|known| known == target) {
        return Ok(());
    }
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    symlink(target, &temporary)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_folder_is_updated() {
        let parent = tempfile::tempdir().unwrap();
        let mut assets = Assets {
            parent: parent.path().to_owned(),
            program: "/bin/old".into(),
            kubectl: Some("/bin/kubectl".into()),
            controllers: false,
            latency: Duration::ZERO,
        };
        let folder = assets.create().unwrap();
        assert_eq!(
            fs::read_link(folder.join(KUBECTL)).unwrap(),
            Path::new("/bin/kubectl")
        );
        assets.program = "/bin/new".into();
        assets.kubectl = None;
        assert_eq!(assets.create().unwrap(), folder);
        for name in [API_SERVER, STORE] {
            assert_eq!(
                fs::read_link(folder.join(name)).unwrap(),
                Path::new("/bin/new")
            );
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        assert!(!runs_controllers(&folder));
        assets.controllers = true;
        let other = assets.create().unwrap();
        assert_ne!(other, folder);
        assert!(runs_controllers(&other));
        assert_eq!(latency(&other), None);
        assets.latency = Duration::from_millis(3);
        let slow = assets.create().unwrap();
        assert_ne!(slow, other);
        assert_eq!(latency(&slow), Some(assets.latency));
    }
}
