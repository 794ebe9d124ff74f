//! The cluster of a command: settings, and the precedence of their sources.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::Settings;

/// The environment variable with a context of the kubeconfig.
pub const CONTEXT_ENV: &str = "LONGSHORE_CONTEXT";
/// The environment variable with the path of a kubeconfig.
pub const KUBECONFIG_ENV: &str = "LONGSHORE_KUBECONFIG";

/// The settings of one source that select a cluster: options, the environment, or a
/// `longshore.toml`. Empty values count as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// A named context, or a context of the kubeconfig.
    pub context: Option<String>,
    /// A kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The named contexts.
    pub contexts: BTreeMap<String, NamedContext>,
}

/// A context with a name in `longshore.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedContext {
    /// The context of the kubeconfig.
    pub context: Option<String>,
    /// The kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The default namespace.
    pub namespace: Option<String>,
}

/// A selected cluster, before it is started or contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterChoice {
    /// The embedded cluster.
    Embedded,
    /// The cluster of the pod in which this process runs.
    InPod,
    /// A cluster of a kubeconfig.
    Kubeconfig {
        /// The file. `None` for the user's own.
        file: Option<PathBuf>,
        /// The context. `None` for the current context.
        context: Option<String>,
        /// The default namespace. `None` for the context's namespace.
        namespace: Option<String>,
    },
}

impl ClusterSettings {
    /// The settings of a folder's `longshore.toml`. A relative kubeconfig is relative to the
    /// folder; `~/` is the home folder, if it is known.
    #[must_use]
    pub fn of_folder(settings: &Settings, folder: &Path, home: Option<&Path>) -> Self {
        let expand = |text: &String| match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => folder.join(text),
        };
        Self {
            context: settings.cluster.clone(),
            kubeconfig: settings.kubeconfig.as_ref().map(expand),
            contexts: settings
                .contexts
                .iter()
                .map(|(name, own)| {
                    let context = NamedContext {
                        context: own.context.clone(),
                        kubeconfig: own.kubeconfig.as_ref().map(expand),
                        namespace: own
                            .namespace
                            .as_ref()
                            .or(settings.run.namespace.as_ref())
                            .map(ToString::to_string),
                    };
                    (name.clone(), context)
                })
                .collect(),
        }
    }
}

impl ClusterChoice {
    /// The cluster of the first settings that name one. A named context is searched in all
    /// settings. If no settings name a cluster, this is the cluster of the pod, or else the
    /// embedded cluster.
    ///
    /// ```
    /// use longshore_launcher::config::{ClusterChoice, ClusterSettings};
    ///
    /// let nothing = ClusterSettings::default();
    /// assert_eq!(ClusterChoice::of([&nothing], false), ClusterChoice::Embedded);
    /// let context = Some("staging".to_owned());
    /// let toml = ClusterSettings { context: context.clone(), ..ClusterSettings::default() };
    /// let choice = ClusterChoice::of([&nothing, &toml], false);
    /// let expected = ClusterChoice::Kubeconfig { file: None, context, namespace: None };
    /// assert_eq!(choice, expected);
    /// ```
    #[must_use]
    pub fn of<'a>(settings: impl IntoIterator<Item = &'a ClusterSettings>, in_pod: bool) -> Self {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let path =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let settings: Vec<&ClusterSettings> = settings.into_iter().collect();
        let named = |name: &String| settings.iter().find_map(|one| one.contexts.get(name));
        for one in &settings {
            let (file, context) = (path(&one.kubeconfig), text(&one.context));
            if let Some(named) = context.as_ref().and_then(named) {
                let own = path(&named.kubeconfig);
                return Self::Kubeconfig {
                    // With its own kubeconfig, the default is the current context of that file.
                    context: text(&named.context).or(context.filter(|_| own.is_none())),
                    file: own.or(file),
                    namespace: text(&named.namespace),
                };
            }
            if file.is_some() || context.is_some() {
                return Self::Kubeconfig {
                    file,
                    context,
                    namespace: None,
                };
            }
        }
        match in_pod {
            true => Self::InPod,
            false => Self::Embedded,
        }
    }

    /// The names of the selected contexts, in the order of preference. Empty without a context.
    #[must_use]
    pub fn contexts(given: &ClusterSettings, configured: &ClusterSettings) -> Vec<String> {
        let without_names = ClusterSettings {
            contexts: BTreeMap::new(),
            ..configured.clone()
        };
        let Self::Kubeconfig { context, .. } = Self::of([given, &without_names], false) else {
            return Vec::new();
        };
        let names = context.as_deref().unwrap_or_default().split(',');
        let mut names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
        names.retain(|name| !name.is_empty());
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> ClusterSettings {
        ClusterSettings {
            kubeconfig: Some(name.into()),
            ..ClusterSettings::default()
        }
    }

    #[test]
    fn a_named_context_has_its_own_kubeconfig_and_context() {
        let text = "namespace = 'all'\n[contexts.a]\nkubeconfig = 'k'\n\
                    [contexts.b]\ncontext = 'other'\nnamespace = 'own'\n[contexts.c]\n";
        let settings = Settings::parse(text, Path::new("longshore.toml"));
        let settings = settings.unwrap_or_default();
        let toml = ClusterSettings::of_folder(&settings, Path::new("/p"), None);
        let chosen = |name: &str| {
            let given = ClusterSettings {
                context: Some(name.to_owned()),
                ..file("given")
            };
            match ClusterChoice::of([&given, &toml], false) {
                ClusterChoice::Kubeconfig {
                    file,
                    context,
                    namespace,
                } => (file, context, namespace),
                other => unreachable!("{other:?}"),
            }
        };
        let texts = |file: &str, context: Option<&str>, namespace: Option<&str>| {
            let text = |text: Option<&str>| text.map(str::to_owned);
            (Some(PathBuf::from(file)), text(context), text(namespace))
        };
        assert_eq!(chosen("a"), texts("/p/k", None, Some("all")));
        assert_eq!(chosen("b"), texts("given", Some("other"), Some("own")));
        assert_eq!(chosen("c"), texts("given", Some("c"), Some("all")));
        // A context of the kubeconfig.
        assert_eq!(chosen("d"), texts("given", Some("d"), None));
    }

    #[test]
    fn the_first_settings_count_and_empty_ones_do_not() {
        let empty = ClusterSettings {
            context: Some(String::new()),
            kubeconfig: Some(PathBuf::new()),
            ..ClusterSettings::default()
        };
        assert_eq!(ClusterChoice::of([&empty], true), ClusterChoice::InPod);
        let chosen = |name: &str| ClusterChoice::Kubeconfig {
            file: Some(name.into()),
            context: None,
            namespace: None,
        };
        let (a, b) = (file("a"), file("b"));
        assert_eq!(ClusterChoice::of([&a, &b], true), chosen("a"));
        assert_eq!(ClusterChoice::of([&empty, &b], true), chosen("b"));
    }

    #[test]
    fn a_relative_kubeconfig_is_relative_to_the_folder() {
        let expanded = |text: &str| {
            let settings = Settings {
                kubeconfig: Some(text.into()),
                ..Settings::default()
            };
            let home = Some(Path::new("/home/me"));
            ClusterSettings::of_folder(&settings, Path::new("/project"), home).kubeconfig
        };
        assert_eq!(expanded("kube/config"), Some("/project/kube/config".into()));
        assert_eq!(expanded("/etc/k"), Some("/etc/k".into()));
        assert_eq!(expanded("~/k"), Some("/home/me/k".into()));
    }
}
