//! A selected cluster, before it is started or contacted.

use std::path::PathBuf;

use longshore::{
    client::Cluster,
    launcher::{Store, store::SECRET_LIMIT},
};
use longshore_embedded::{
    Layout,
    daemon::{self, Opened, State},
};

use super::{Embedded, Lifetime, Target, age, warnings};
use crate::{embedded, error::Result, hints};

/// The description of the embedded cluster in the first line of a run.
const EMBEDDED: &str = "embedded, local processes";

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

    /// The client of a cluster that does not have to be started.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        match self {
            Self::Embedded(_) => None,
            Self::Other { cluster, .. } => Some(cluster),
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
            State::Stopped => "starts for this run".to_owned(),
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

    /// Returns true if the cluster keeps outputs of tasks.
    pub(crate) fn keeps_outputs(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }

    /// The folder of this machine in which pods find data.
    pub(crate) fn data_root(&self) -> Option<PathBuf> {
        match self {
            Self::Embedded(layout) => Some(layout.data()),
            Self::Other { .. } => None,
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
        let opened = daemon::open(&layout, &embedded::program()?).await?;
        let Opened {
            record,
            usage,
            is_new,
        } = opened;
        if is_new {
            embedded::warn(&record);
        }
        hints::remember_kubectl(
            vec![("--kubeconfig", hints::of_path(&record.kubeconfig))],
            None,
        );
        let cluster = Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await;
        Ok(Target {
            cluster: warnings::show(cluster?),
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
