//! Which cluster a command works on. By default the embedded one, so that
//! nobody's first try lands on a cluster that others depend on.

use std::path::PathBuf;

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{Store, store::SECRET_LIMIT},
};
use longshore_embedded::{
    Layout,
    daemon::{self, Record, State, Usage},
};

use crate::{
    embedded::{self, Wish},
    env,
    error::Result,
};

/// The choice of a cluster, as arguments.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Use this context of the kubeconfig
    #[arg(long, env = env::CONTEXT, hide_env_values = true)]
    context: Option<String>,
    /// Use this kubeconfig (its current context, unless --context is given)
    #[arg(long, value_name = "FILE", env = env::KUBECONFIG, hide_env_values = true)]
    kubeconfig: Option<PathBuf>,
    /// Use the embedded cluster, whatever longshore.toml or the environment say
    #[arg(long)]
    embedded: bool,
    /// The folder of the embedded cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

/// What `longshore.toml` says about the cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Configured {
    pub(crate) context: Option<String>,
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// The cluster a command will work on, before anything is started or asked.
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
    /// Arguments and environment first, then the folder's configuration, then
    /// the pod we may be in.
    fn choose(&self, configured: &Configured, in_pod: bool) -> Choice {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let path =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        if self.embedded {
            return Choice::Embedded;
        }
        let said = (path(&self.kubeconfig), text(&self.context));
        if said != (None, None) {
            return Choice::Kubeconfig {
                file: said.0,
                context: said.1,
            };
        }
        let said = (path(&configured.kubeconfig), text(&configured.context));
        if said != (None, None) {
            return Choice::Kubeconfig {
                file: said.0,
                context: said.1,
            };
        }
        if in_pod {
            Choice::InPod
        } else {
            Choice::Embedded
        }
    }

    /// Finds out which cluster is meant. Nothing is started or asked yet.
    pub(crate) async fn choice(&self, configured: &Configured) -> Result<Chosen> {
        let (cluster, which) = match self.choose(configured, env::in_pod()) {
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
        Ok(Chosen::Other { cluster, name })
    }

    /// Opens the cluster; starts an embedded one for the time of the command
    /// if none runs.
    pub(crate) async fn open(&self, configured: &Configured) -> Result<Target> {
        self.choice(configured).await?.open().await
    }
}

/// A cluster that was chosen but not yet opened.
pub(crate) enum Chosen {
    /// The embedded one in this folder.
    Embedded(Layout),
    /// Another, which somebody else runs.
    Other { cluster: Cluster, name: String },
}

impl Chosen {
    /// The cluster's name, for people.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Embedded(_) => "embedded, local processes",
            Self::Other { name, .. } => name,
        }
    }

    /// The namespace that commands work in unless told otherwise.
    pub(crate) fn default_namespace(&self) -> &str {
        match self {
            Self::Embedded(_) => "default",
            Self::Other { cluster, .. } => cluster.default_namespace(),
        }
    }

    /// A place for bundles of this size that do not fit the API: the embedded
    /// cluster has one in its folder.
    pub(crate) fn own_store(&self, size: u64) -> Option<Store> {
        match self {
            Self::Embedded(layout) if size > SECRET_LIMIT => {
                Some(Store::Folder(layout.dir().join("bundles")))
            }
            _ => None,
        }
    }

    /// Opens it. An embedded one that does not run is started for the time of
    /// the command.
    pub(crate) async fn open(self) -> Result<Target> {
        let layout = match self {
            Self::Other { cluster, .. } => {
                return Ok(Target {
                    cluster,
                    embedded: None,
                });
            }
            Self::Embedded(layout) => layout,
        };
        // Before looking: a cluster on demand cannot end from here on.
        let usage = Usage::begin(&layout).await?;
        let record = match daemon::find(&layout).await? {
            State::Running(record) => record,
            State::Stopped => {
                embedded::spawn(
                    &layout,
                    &Wish {
                        on_demand: true,
                        ..Wish::default()
                    },
                )
                .await?
            }
        };
        let cluster = Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await;
        Ok(Target {
            cluster: cluster?,
            embedded: Some((usage, record)),
        })
    }
}

/// The cluster a command works on.
pub(crate) struct Target {
    cluster: Cluster,
    embedded: Option<(Usage, Record)>,
}

impl Target {
    /// The client.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Lets the cluster live on after the command, for work that goes on.
    pub(crate) fn keep(&self) -> Result<()> {
        if let Some((usage, _)) = &self.embedded {
            usage.keep()?;
        }
        Ok(())
    }

    /// Ends the use of the cluster. One that was started for this command has
    /// ended afterwards.
    pub(crate) async fn close(self) -> Result<()> {
        self.cluster.close();
        if let Some((usage, record)) = self.embedded {
            usage.end(&record).await?;
        }
        Ok(())
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
    fn what_is_said_closest_wins() {
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
    fn an_empty_word_says_nothing() {
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
