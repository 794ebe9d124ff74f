//! Selects the cluster of a command, from its arguments, the environment, longshore.toml and the
//! pod that this process may run in.

use std::{ffi::OsStr, path::PathBuf};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::config::{ClusterChoice, ClusterSettings},
};

use longshore_embedded::Layout;

use super::{Chosen, Target, warnings};
use crate::{
    config, embedded, env,
    error::{Error, Kind, Result},
    hints,
};

/// Arguments that select the cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Context to use: one of [contexts] in longshore.toml, or of the kubeconfig; for `run` and
    /// `dev`, several, as in a,b: the first in which the run fits now
    #[arg(long, env = env::CONTEXT, hide_env_values = true)]
    context: Option<String>,
    /// Kubeconfig to use, with its current context unless --context is given
    #[arg(long, value_name = "FILE", env = env::KUBECONFIG, hide_env_values = true)]
    kubeconfig: Option<PathBuf>,
    /// Use the embedded cluster, regardless of longshore.toml and the environment
    #[arg(long)]
    embedded: bool,
    /// Data folder of the embedded cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

impl ClusterArgs {
    /// The selection from the words of a command line, with defaults from the environment, as with
    /// clap.
    pub(crate) fn of_words(
        context: Option<String>,
        kubeconfig: Option<PathBuf>,
        embedded: bool,
        data_dir: Option<PathBuf>,
    ) -> Self {
        Self {
            context: context.or_else(|| std::env::var(env::CONTEXT).ok()),
            kubeconfig: kubeconfig.or_else(|| std::env::var_os(env::KUBECONFIG).map(PathBuf::from)),
            embedded,
            data_dir: data_dir.or_else(|| std::env::var_os(env::DATA_DIR).map(PathBuf::from)),
        }
    }

    /// The options with which another command selects the same cluster, and the namespace, unless
    /// it is the default with these options. Settings of the environment or the current folder's
    /// longshore.toml are omitted, because other commands also read them.
    fn again(
        &self,
        choice: &ClusterChoice,
        configured: &ClusterSettings,
    ) -> (Vec<(&'static str, String)>, Option<String>) {
        let is_configured = self.choose(&ClusterSettings::default(), false)
            == ClusterChoice::Embedded
            && matches!(choice, ClusterChoice::Kubeconfig { .. });
        if is_configured && config::here().is_ok_and(|here| here == *configured) {
            return (Vec::new(), None);
        }
        let from_environment =
            |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|known| known == *value);
        let (mut options, mut own_namespace) = (Vec::new(), None);
        match choice {
            ClusterChoice::Embedded | ClusterChoice::InPod => {
                if self.embedded {
                    options.push(("--embedded", String::new()));
                }
                if let Some(dir) = &self.data_dir
                    && !from_environment(env::DATA_DIR, dir.as_os_str())
                {
                    options.push(("--data-dir", hints::of_path(dir)));
                }
            }
            // Commands in this folder read the context from the same file.
            ClusterChoice::Kubeconfig { .. } if self.names_one_of(configured) => {
                if let Some(file) = &self.kubeconfig
                    && !from_environment(env::KUBECONFIG, file.as_os_str())
                {
                    options.push(("--kubeconfig", hints::of_path(file)));
                }
                if let Some(context) = &self.context
                    && !from_environment(env::CONTEXT, context.as_ref())
                {
                    options.push(("--context", context.clone()));
                }
            }
            ClusterChoice::Kubeconfig {
                file,
                context,
                namespace,
            } => {
                if let Some(file) = file
                    && !from_environment(env::KUBECONFIG, file.as_os_str())
                {
                    options.push(("--kubeconfig", hints::of_path(file)));
                }
                if let Some(context) = context
                    && !from_environment(env::CONTEXT, context.as_ref())
                {
                    options.push(("--context", context.clone()));
                }
                own_namespace.clone_from(namespace);
            }
        }
        (options, own_namespace)
    }

    /// Returns true if the selected context is in the current folder's longshore.toml.
    fn names_one_of(&self, configured: &ClusterSettings) -> bool {
        let name = self.context.as_ref();
        name.is_some_and(|name| configured.contexts.contains_key(name))
            && config::here().is_ok_and(|here| here == *configured)
    }

    /// Precedence: arguments and environment, the folder's configuration, and the pod that this
    /// process may run in.
    fn choose(&self, configured: &ClusterSettings, in_pod: bool) -> ClusterChoice {
        if self.embedded {
            return ClusterChoice::Embedded;
        }
        ClusterChoice::of([&self.given(), configured], in_pod)
    }

    fn given(&self) -> ClusterSettings {
        ClusterSettings {
            context: self.context.clone(),
            kubeconfig: self.kubeconfig.clone(),
            ..ClusterSettings::default()
        }
    }

    /// The names of the selected contexts, in the order of preference; none without a context.
    pub(crate) fn names(&self, configured: &ClusterSettings) -> Vec<String> {
        match self.embedded {
            true => Vec::new(),
            false => ClusterChoice::contexts(&self.given(), configured),
        }
    }

    /// The same arguments with one context.
    pub(crate) fn in_context(&self, name: &str) -> Self {
        Self {
            context: Some(name.to_owned()),
            embedded: false,
            ..self.clone()
        }
    }

    /// Returns true if the embedded cluster is selected, whose pods share this machine's files.
    pub(crate) fn is_embedded(&self, configured: &ClusterSettings) -> bool {
        self.choose(configured, Cluster::is_in_pod()) == ClusterChoice::Embedded
    }

    /// Selects the cluster without starting or contacting it.
    pub(crate) async fn choice(&self, configured: &ClusterSettings) -> Result<Chosen> {
        let names = self.names(configured);
        if names.len() > 1 {
            let message = format!("several contexts: {}", names.join(", "));
            return Err(Error::usage(message).hint(
                "only `longshore run` and `longshore dev` choose one of several; use `--context NAME`, or `longshore runs --all-contexts`",
            ));
        }
        let is_named = (names.first()).is_some_and(|name| configured.contexts.contains_key(name));
        let choice = self.choose(configured, Cluster::is_in_pod());
        let (options, namespace) = self.again(&choice, configured);
        hints::remember_cluster(options, namespace);
        if let ClusterChoice::Kubeconfig {
            file,
            context,
            namespace,
        } = &choice
        {
            let file = file
                .iter()
                .map(|file| ("--kubeconfig", hints::of_path(file)));
            let context = context.iter().map(|context| ("--context", context.clone()));
            hints::remember_kubectl(file.chain(context).collect(), namespace.clone());
        }
        let (cluster, which) = match choice {
            ClusterChoice::Embedded => {
                return Ok(Chosen::Embedded(embedded::layout(self.data_dir.as_ref())?));
            }
            ClusterChoice::InPod => (Cluster::connect().await?, "the pod's own".to_owned()),
            ClusterChoice::Kubeconfig {
                file,
                context,
                namespace,
            } => {
                let found = Cluster::from_kubeconfig(file.as_deref(), context.as_deref()).await;
                let cluster = found.map_err(|error| match is_named {
                    true => error.into(),
                    false => with_known(error.into(), &names, configured),
                })?;
                let cluster = match namespace {
                    Some(namespace) => cluster.with_default_namespace(&namespace),
                    None => cluster,
                };
                let named = names.first().filter(|_| is_named);
                let which = match (named.or(context.as_ref()), file) {
                    (Some(context), _) => format!("context {context}"),
                    (None, Some(file)) => format!("kubeconfig {}", file.display()),
                    (None, None) => "current context".to_owned(),
                };
                (cluster, which)
            }
        };
        let name = format!("{which}, {}", cluster.url());
        let cluster = warnings::show(cluster);
        Ok(Chosen::Other { cluster, name })
    }

    /// The options with which a command in another folder and another environment selects the same
    /// cluster and this namespace, by default the namespace of the selected context.
    pub(crate) fn words(
        &self,
        configured: &ClusterSettings,
        namespace: Option<&str>,
    ) -> Result<Vec<String>> {
        let absolute = |path: &PathBuf| {
            // A kubeconfig may be a list of files.
            let mut paths: Vec<PathBuf> = std::env::split_paths(path).collect();
            if path.exists() {
                paths = vec![path.clone()];
            }
            let paths = paths.iter().map(std::path::absolute);
            let paths = paths.collect::<std::io::Result<Vec<PathBuf>>>();
            let paths = paths.map_err(|error| Error::from_source(Kind::Usage, &error))?;
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            Ok::<String, Error>(paths.join(":"))
        };
        let (mut words, mut of_context) = (Vec::new(), None);
        match self.choose(configured, Cluster::is_in_pod()) {
            ClusterChoice::Embedded => words.push("--embedded".to_owned()),
            ClusterChoice::InPod => {}
            ClusterChoice::Kubeconfig {
                file,
                context,
                namespace,
            } => {
                of_context = namespace;
                if let Some(file) = &file {
                    words.extend(["--kubeconfig".to_owned(), absolute(file)?]);
                }
                if let Some(context) = context {
                    words.extend(["--context".to_owned(), context]);
                }
            }
        }
        if let Some(namespace) = namespace.map(str::to_owned).or(of_context) {
            words.extend(["--namespace".to_owned(), namespace]);
        }
        // The data folder also has the keys.
        if let Some(dir) = self
            .data_dir
            .as_ref()
            .filter(|dir| !dir.as_os_str().is_empty())
        {
            words.extend(["--data-dir".to_owned(), absolute(dir)?]);
        }
        Ok(words)
    }

    /// The data folder.
    pub(crate) fn layout(&self) -> Result<Layout> {
        embedded::layout(self.data_dir.as_ref())
    }

    /// Connects to the cluster. Starts an on-demand embedded cluster if it is selected and not
    /// running.
    pub(crate) async fn open(&self, configured: &ClusterSettings) -> Result<Target> {
        self.choice(configured).await?.open().await
    }
}

/// Adds the contexts of longshore.toml to the error of another name, which may be misspelt.
fn with_known(error: Error, names: &[String], configured: &ClusterSettings) -> Error {
    let known: Vec<&str> = configured.contexts.keys().map(String::as_str).collect();
    match (names, &known[..]) {
        ([], _) | (_, []) => error,
        // The error keeps its own remedy: the kubeconfig may have the context, but be broken.
        ([name, ..], _) => error.details([format!(
            "longshore.toml has no context {name:?}, but {}",
            known.join(", ")
        )]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> ClusterChoice {
        ClusterChoice::Kubeconfig {
            file: Some(name.into()),
            context: None,
            namespace: None,
        }
    }

    #[test]
    fn the_most_specific_setting_wins() {
        let none = ClusterArgs::default();
        let said = ClusterArgs {
            kubeconfig: Some("a".into()),
            ..ClusterArgs::default()
        };
        let toml = ClusterSettings {
            kubeconfig: Some("b".into()),
            ..ClusterSettings::default()
        };
        let nothing = ClusterSettings::default();

        assert_eq!(none.choose(&nothing, false), ClusterChoice::Embedded);
        assert_eq!(none.choose(&nothing, true), ClusterChoice::InPod);
        assert_eq!(none.choose(&toml, true), file("b"));
        assert_eq!(said.choose(&toml, true), file("a"));
        let names = |context: &str| none.in_context(context).names(&toml);
        assert_eq!(names("a, b,"), ["a", "b"]);
        assert_eq!(none.names(&toml), [""; 0]);
        let forced = ClusterArgs {
            embedded: true,
            ..said
        };
        assert_eq!(forced.choose(&toml, true), ClusterChoice::Embedded);
    }
}
