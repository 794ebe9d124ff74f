//! `longshore.toml` of a folder, as far as the program itself needs it.

use std::path::{Path, PathBuf};

use longshore::launcher::Settings;

use crate::{
    env,
    error::{Error, Kind, Result},
};

/// What `longshore.toml` says about the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Configured {
    pub(crate) context: Option<String>,
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Reads the folder's settings; empty ones when it has none.
pub(crate) fn load(folder: &Path) -> Result<Settings> {
    Settings::load(folder).map_err(|error| Error::from_source(Kind::Usage, &error))
}

/// The cluster that settings name. A relative kubeconfig is relative to their
/// folder.
pub(crate) fn cluster(settings: &Settings, folder: &Path) -> Configured {
    let kubeconfig = settings
        .kubeconfig
        .as_ref()
        .map(|text| expand(text, folder));
    Configured {
        context: settings.cluster.clone(),
        kubeconfig,
    }
}

/// The cluster that the current folder's settings name.
pub(crate) fn here() -> Result<Configured> {
    let folder = Path::new(".");
    Ok(cluster(&load(folder)?, folder))
}

fn expand(text: &str, folder: &Path) -> PathBuf {
    match (text.strip_prefix("~/"), env::home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_kubeconfig_is_the_folders() {
        let settings = Settings {
            kubeconfig: Some("kube/config".into()),
            ..Settings::default()
        };
        let configured = cluster(&settings, Path::new("/project"));
        assert_eq!(
            configured.kubeconfig,
            Some(PathBuf::from("/project/kube/config"))
        );
        assert_eq!(
            expand("/etc/k", Path::new("/project")),
            PathBuf::from("/etc/k")
        );
    }
}
