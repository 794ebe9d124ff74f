//! Selects the cluster of a command, from its arguments, the environment, longshore.toml and the
//! pod that this process may run in.

use std::{ffi::OsStr, path::PathBuf};

use clap::Args;
use longshore::client::Cluster;

use super::{Chosen, Target, warnings};
use crate::{
    config::{self, Configured},
    embedded, env,
    error::Result,
    hints,
};

/// Arguments that select the cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Context of the kubeconfig to use
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

/// The selected cluster, before it is started or contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Embedded,
    InPod,
    Kubeconfig {
        file: Option<PathBuf>,
        context: Option<String>,
    },
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

    /// The options with which another command selects the same cluster. Settings of the environment
    /// or the current folder's longshore.toml are omitted, because other commands also read them.
    fn again(&self, choice: &Choice, configured: &Configured) -> Vec<(&'static str, String)> {
        let is_configured = self.choose(&Configured::default(), false) == Choice::Embedded
            && matches!(choice, Choice::Kubeconfig { .. });
        if is_configured && config::here().is_ok_and(|here| here == *configured) {
            return Vec::new();
        }
        let from_environment =
            |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|known| known == *value);
        let mut options = Vec::new();
        match choice {
            Choice::Embedded | Choice::InPod => {
                if self.embedded {
                    options.push(("--embedded", String::new()));
                }
                if let Some(dir) = &self.data_dir
                    && !from_environment(env::DATA_DIR, dir.as_os_str())
                {
                    options.push(("--data-dir", hints::of_path(dir)));
                }
            }
            Choice::Kubeconfig { file, context } => {
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
            }
        }
        options
    }

    /// Precedence: arguments and environment, the folder's configuration, and the pod that this
    /// process may run in.
    fn choose(&self, configured: &Configured, in_pod: bool) -> Choice {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let path =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        if self.embedded {
            return Choice::Embedded;
        }
        for (file, context) in [
            (&self.kubeconfig, &self.context),
            (&configured.kubeconfig, &configured.context),
        ] {
            let (file, context) = (path(file), text(context));
            if file.is_some() || context.is_some() {
                return Choice::Kubeconfig { file, context };
            }
        }
        if in_pod {
            Choice::InPod
        } else {
            Choice::Embedded
        }
    }

    /// Whether the embedded cluster is selected, whose pods share this machine's files.
    pub(crate) fn is_embedded(&self, configured: &Configured) -> bool {
        self.choose(configured, env::in_pod()) == Choice::Embedded
    }

    /// Selects the cluster without starting or contacting it.
    pub(crate) async fn choice(&self, configured: &Configured) -> Result<Chosen> {
        let choice = self.choose(configured, env::in_pod());
        hints::remember_cluster(self.again(&choice, configured));
        if let Choice::Kubeconfig { file, context } = &choice {
            let file = file
                .iter()
                .map(|file| ("--kubeconfig", hints::of_path(file)));
            let context = context.iter().map(|context| ("--context", context.clone()));
            hints::remember_kubectl(file.chain(context).collect());
        }
        let (cluster, which) = match choice {
            Choice::Embedded => {
                return Ok(Chosen::Embedded(embedded::layout(self.data_dir.as_ref())?));
            }
            Choice::InPod => (Cluster::connect().await?, "the pod's own".to_owned()),
            Choice::Kubeconfig { file, context } => {
                let cluster = Cluster::from_kubeconfig(file.as_deref(), context.as_deref()).await?;
                let which = match (context, file) {
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

    /// Connects to the cluster. Starts an on-demand embedded cluster if none is running.
    pub(crate) async fn open(&self, configured: &Configured) -> Result<Target> {
        self.choice(configured).await?.open().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Choice {
        Choice::Kubeconfig {
            file: Some(name.into()),
            context: None,
        }
    }

    #[test]
    fn the_most_specific_setting_wins() {
        let none = ClusterArgs::default();
        let said = ClusterArgs {
            kubeconfig: Some("a".into()),
            ..ClusterArgs::default()
        };
        let toml = Configured {
            kubeconfig: Some("b".into()),
            context: None,
        };
        let nothing = Configured::default();

        assert_eq!(none.choose(&nothing, false), Choice::Embedded);
        assert_eq!(none.choose(&nothing, true), Choice::InPod);
        assert_eq!(none.choose(&toml, true), file("b"));
        assert_eq!(said.choose(&toml, true), file("a"));
        let forced = ClusterArgs {
            embedded: true,
            ..said
        };
        assert_eq!(forced.choose(&toml, true), Choice::Embedded);
    }

    #[test]
    fn empty_values_are_ignored() {
        let empty = ClusterArgs {
            context: Some(String::new()),
            kubeconfig: Some(PathBuf::new()),
            ..ClusterArgs::default()
        };
        assert_eq!(
            empty.choose(&Configured::default(), false),
            Choice::Embedded
        );
    }
}
