//! The cluster of a command. The default is the embedded one, so that first attempts do not affect
//! shared clusters.

mod chosen;
mod lifetime;
mod selection;
mod warnings;

use std::time::Duration;

use longshore::{
    client::Cluster,
    launcher::{data::DataCache, kept::Kept, outputs::Outputs, run_outputs::LocalOutputs},
};
use longshore_embedded::{
    Layout,
    daemon::{self, Fate, Record, Usage},
};
use serde_json::{Value, json};

pub(crate) use chosen::Chosen;
pub(crate) use lifetime::{Lifetime, age};
pub(crate) use selection::ClusterArgs;

use crate::{claim_reader, error::Result, hints};

/// The namespace of a command: the given one, or the cluster's default.
pub(crate) fn namespace<'a>(given: Option<&'a str>, cluster: &'a Cluster) -> &'a str {
    let own = cluster.default_namespace();
    let namespace = given.unwrap_or(own);
    if namespace != own {
        hints::remember_namespace(namespace);
    }
    namespace
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
    /// True if the cluster was started for the command.
    is_new: bool,
}

/// The reason why a cluster that a command uses has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The cluster was stopped; the sentence contains the cause.
    Stopped(String),
    /// The cluster's process died.
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

    /// The cluster's human-readable name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The bundles that the embedded cluster keeps in its folder.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let embedded = self.embedded.as_ref()?;
        Some(Kept::new(embedded.layout.bundles()))
    }

    /// The data that the embedded cluster keeps in its folder.
    pub(crate) fn data(&self) -> Option<DataCache> {
        let embedded = self.embedded.as_ref()?;
        Some(DataCache::new(embedded.layout.data()))
    }

    /// The outputs that the embedded cluster keeps in its folder.
    pub(crate) fn outputs(&self) -> Option<LocalOutputs> {
        let embedded = self.embedded.as_ref()?;
        Some(LocalOutputs {
            outputs: Outputs::new(embedded.layout.outputs()),
            pods: embedded.layout.pods(embedded.record.ephemeral),
        })
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

    /// Resolves when the process of the embedded cluster has ended; never for other clusters.
    /// Reports a dead process only once.
    pub(crate) async fn gone(&self, reported: &mut bool) -> Gone {
        let Some(embedded) = self.embedded.as_ref().filter(|_| !*reported) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(GONE_POLL_INTERVAL).await;
            match daemon::fate(&embedded.layout, &embedded.record) {
                Ok(Fate::Stopped(end)) => return Gone::Stopped(end.sentence()),
                Ok(Fate::Died) if !embedded.usage.has_folder() => {
                    let folder = embedded.layout.dir().display();
                    return Gone::Stopped(format!(
                        "the cluster stopped because its folder {folder} was removed, renamed or \
                         replaced"
                    ));
                }
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
        claim_reader::remove_all(&self.cluster).await;
        self.cluster.close();
        if let Some(embedded) = self.embedded {
            embedded.usage.end(&embedded.record).await?;
        }
        Ok(())
    }
}
