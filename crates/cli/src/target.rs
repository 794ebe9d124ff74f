//! Selects the cluster of a command. The default is the embedded one, so that first attempts do
//! not affect shared clusters.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{Store, kept::Kept, store::SECRET_LIMIT},
};
use longshore_embedded::{
    Layout,
    daemon::{self, Fate, Record, State, Usage},
};
use serde_json::{Value, json};

use crate::{
    config::{self, Configured},
    embedded::{self, Wish},
    env,
    error::Result,
    hints, ui,
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
        let from_environment = |name: &str, value: &std::ffi::OsStr| {
            std::env::var_os(name).is_some_and(|known| known == *value)
        };
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
        let cluster = show_warnings(cluster);
        Ok(Chosen::Other { cluster, name })
    }

    /// Connects to the cluster. Starts an on-demand embedded cluster if none is running.
    pub(crate) async fn open(&self, configured: &Configured) -> Result<Target> {
        self.choice(configured).await?.open().await
    }
}

/// The description of the embedded cluster in the first line of a run.
const EMBEDDED: &str = "embedded, local processes";

/// The maximum number of remembered warnings.
const WARNINGS_REMEMBERED: usize = 1000;

/// Prints the server's warnings, each once.
fn show_warnings(cluster: Cluster) -> Cluster {
    let shown = Mutex::new(HashSet::new());
    cluster.with_warning_handler(move |text| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= WARNINGS_REMEMBERED {
            shown.clear();
        }
        if shown.insert(text.to_owned()) {
            ui::warning(text);
        }
    })
}

/// The lifetime of the embedded cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until it has no work and no command uses it.
    OnDemand,
    /// Until `longshore down`.
    Lasting,
}

impl Lifetime {
    pub(crate) fn of(record: &Record, layout: &Layout) -> Self {
        match record.is_lasting(layout) {
            true => Self::Lasting,
            false => Self::OnDemand,
        }
    }

    /// The name in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Lasting => "lasting",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::OnDemand => "stops when no runs are active",
            Self::Lasting => "stays until `longshore down`",
        }
    }

    /// When it stops.
    pub(crate) fn until(self) -> &'static str {
        match self {
            Self::OnDemand => "no run, pod or schedule is active and no command uses it",
            Self::Lasting => "`longshore down`",
        }
    }
}

/// How long a cluster has been running, in human-readable form.
pub(crate) fn age(record: &Record) -> String {
    let now = jiff::Timestamp::now().as_second();
    ui::span(now.saturating_sub(record.started.as_second()))
}

/// The namespace of a command: the given one, or the cluster's default.
pub(crate) fn namespace<'a>(given: Option<&'a str>, cluster: &'a Cluster) -> &'a str {
    let own = cluster.default_namespace();
    let namespace = given.unwrap_or(own);
    if namespace != own {
        hints::remember_namespace(namespace);
    }
    namespace
}

/// A selected cluster, before connecting.
pub(crate) enum Chosen {
    /// The embedded cluster in this data folder.
    Embedded(Layout),
    /// Another cluster.
    Other { cluster: Cluster, name: String },
}

impl Chosen {
    /// The cluster's human-readable name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Embedded(_) => EMBEDDED,
            Self::Other { name, .. } => name,
        }
    }

    /// A one-line description of the cluster; for the embedded cluster, with its lifetime. Starts
    /// nothing.
    pub(crate) async fn describe(&self) -> Result<String> {
        let layout = match self {
            Self::Other { name, .. } => return Ok(name.clone()),
            Self::Embedded(layout) => layout,
        };
        let since = match daemon::find(layout).await? {
            State::Stopped => "started for this run".to_owned(),
            State::Running(record) => {
                let lifetime = Lifetime::of(&record, layout);
                let since = format!("up since {}", age(&record));
                return Ok(format!("{EMBEDDED}; {since}, {}", lifetime.sentence()));
            }
        };
        Ok(format!(
            "{EMBEDDED}; {since}, {}",
            Lifetime::OnDemand.sentence()
        ))
    }

    /// The default namespace of commands.
    pub(crate) fn default_namespace(&self) -> &str {
        match self {
            Self::Embedded(_) => "default",
            Self::Other { cluster, .. } => cluster.default_namespace(),
        }
    }

    /// The default store for bundles that do not fit a Secret. The embedded cluster has
    /// one in its data folder.
    pub(crate) fn own_store(&self, size: u64) -> Option<Store> {
        match self {
            Self::Embedded(layout) if size > SECRET_LIMIT => Some(Store::Folder(layout.bundles())),
            _ => None,
        }
    }

    /// Connects to the cluster. Starts an on-demand embedded cluster if it is not running.
    pub(crate) async fn open(self) -> Result<Target> {
        let layout = match self {
            Self::Other { cluster, name } => {
                return Ok(Target {
                    cluster,
                    name,
                    embedded: None,
                });
            }
            Self::Embedded(layout) => layout,
        };
        // Before checking: from here on, an on-demand cluster does not stop.
        let usage = Usage::begin(&layout).await?;
        let (record, is_new) = match daemon::find(&layout).await? {
            State::Running(record) => (record, false),
            State::Stopped => {
                let wish = Wish {
                    on_demand: true,
                    ..Wish::default()
                };
                (embedded::spawn(&layout, &wish).await?, true)
            }
        };
        hints::remember_kubectl(vec![("--kubeconfig", hints::of_path(&record.kubeconfig))]);
        let cluster = Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await;
        Ok(Target {
            cluster: show_warnings(cluster?),
            name: EMBEDDED.to_owned(),
            embedded: Some(Embedded {
                usage,
                record,
                layout,
                is_new,
            }),
        })
    }
}

/// The cluster of a command.
pub(crate) struct Target {
    cluster: Cluster,
    name: String,
    embedded: Option<Embedded>,
}

/// The embedded cluster, while a command uses it.
struct Embedded {
    usage: Usage,
    record: Record,
    layout: Layout,
    /// Whether it was started for the command.
    is_new: bool,
}

/// Why a cluster that a command uses has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It was stopped; the sentence contains the cause.
    Stopped(String),
    /// Its process died.
    Died,
}

/// The interval at which a following command checks whether the embedded cluster is still
/// running.
const GONE_POLL_INTERVAL: Duration = Duration::from_millis(300);

impl Target {
    /// The client.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The bundles that the embedded cluster keeps in its folder.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let embedded = self.embedded.as_ref()?;
        Some(Kept::new(embedded.layout.bundles()))
    }

    /// The cluster and its lifetime as JSON.
    pub(crate) fn facts(&self) -> Value {
        let Some(embedded) = &self.embedded else {
            return json!({"kind": "kubernetes", "name": self.name, "url": self.cluster.url()});
        };
        let lifetime = Lifetime::of(&embedded.record, &embedded.layout);
        json!({
            "kind": "embedded",
            "name": self.name,
            "url": embedded.record.url,
            "folder": embedded.layout.dir(),
            "startedForThis": embedded.is_new,
            "lifetime": lifetime.as_str(),
            "until": hints::complete(lifetime.until()),
        })
    }

    /// Resolves when the process of the embedded cluster has ended; never for others. Reports
    /// a dead process only once.
    pub(crate) async fn gone(&self, reported: &mut bool) -> Gone {
        let Some(embedded) = self.embedded.as_ref().filter(|_| !*reported) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(GONE_POLL_INTERVAL).await;
            match daemon::fate(&embedded.layout, &embedded.record) {
                Ok(Fate::Stopped(end)) => return Gone::Stopped(end.sentence()),
                Ok(Fate::Died) => {
                    *reported = true;
                    return Gone::Died;
                }
                Ok(Fate::Alive) | Err(_) => {}
            }
        }
    }

    /// Releases the cluster. An on-demand cluster without users and work has stopped when this
    /// returns.
    pub(crate) async fn close(self) -> Result<()> {
        self.cluster.close();
        if let Some(embedded) = self.embedded {
            embedded.usage.end(&embedded.record).await?;
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
