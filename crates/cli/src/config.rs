//! The parts of a folder's `longshore.toml` that the command line needs.

use std::path::{Path, PathBuf};

use longshore::launcher::Settings;

use crate::{
    env,
    error::{Error, Kind, Result},
};

/// The cluster settings of `longshore.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Configured {
    pub(crate) context: Option<String>,
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Reads the folder's settings, or default ones if it has none.
pub(crate) fn load(folder: &Path) -> Result<Settings> {
    Settings::load(folder).map_err(|error| Error::from_source(Kind::Usage, &error))
}

/// The cluster in the settings. A relative kubeconfig is relative to their folder.
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

/// The cluster in the current folder's settings.
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
    fn a_relative_kubeconfig_is_relative_to_the_folder() {
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
