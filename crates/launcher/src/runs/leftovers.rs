//! Objects of submissions that were killed before they had created a Job: no list of runs has
//! them.

use std::time::Duration;

use jiff::Timestamp;
use longshore_client::{
    Cluster, DeleteOptions, Item, LabelSelector, Object,
    kinds::{Secret, Service},
};
use longshore_diagnosis::names;

use super::{
    RunSummary, RunsError,
    remove::{delete_unowned, gone},
};

/// An object without a run.
#[derive(Debug)]
pub struct Leftover {
    /// The name of the run that was not created; none for a bundle, which runs share.
    pub run: Option<String>,
    created: Option<Timestamp>,
    object: LeftoverObject,
}

#[derive(Debug)]
enum LeftoverObject {
    Secret(Item<Secret>),
    Service(Item<Service>),
}

impl Leftover {
    /// Whether it is older than this: younger objects may be those of a submission in progress.
    #[must_use]
    pub fn is_older(&self, age: Duration, now: Timestamp) -> bool {
        let Some(created) = self.created else {
            return false;
        };
        let found = now.duration_since(created);
        Duration::try_from(found).is_ok_and(|found| found > age)
    }

    /// Deletes it.
    ///
    /// # Errors
    /// [`RunsError::Cluster`].
    pub async fn remove(&self) -> Result<(), RunsError> {
        let options = DeleteOptions::background();
        match &self.object {
            LeftoverObject::Secret(secret) if self.run.is_none() => delete_unowned(secret).await?,
            LeftoverObject::Secret(secret) => gone(secret.delete(&options).await)?,
            LeftoverObject::Service(service) => gone(service.delete(&options).await)?,
        }
        Ok(())
    }
}

/// The Secrets and Services of a namespace that belong to none of its runs, and have no owner.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn leftovers(
    cluster: &Cluster,
    namespace: &str,
    runs: &[RunSummary],
) -> Result<Vec<Leftover>, RunsError> {
    let ours = LabelSelector::exactly([(names::MANAGED_BY, names::LONGSHORE)])
        .map_err(longshore_client::Error::from)?;
    let secrets = cluster.secrets().in_namespace(namespace)?;
    let services = cluster.services().in_namespace(namespace)?;
    let (secrets, services) = (secrets.labels(ours.clone()), services.labels(ours));
    let (secrets, services) = futures::try_join!(secrets.list(), services.list())?;
    let mut found = Vec::new();
    for secret in secrets.items {
        if is_left(&secret, runs) {
            found.push(leftover(&secret.clone(), LeftoverObject::Secret(secret)));
        }
    }
    for service in services.items {
        if is_left(&service, runs) {
            found.push(leftover(&service.clone(), LeftoverObject::Service(service)));
        }
    }
    Ok(found)
}

fn leftover<K: Object>(item: &Item<K>, object: LeftoverObject) -> Leftover {
    let meta = item.meta();
    Leftover {
        run: meta.labels.get(names::RUN).cloned(),
        created: meta.creation_timestamp,
        object,
    }
}

fn is_left<K: Object>(item: &Item<K>, runs: &[RunSummary]) -> bool {
    let meta = item.meta();
    if !meta.owner_references.is_empty() || meta.deletion_timestamp.is_some() {
        return false;
    }
    match (
        meta.labels.get(names::RUN),
        meta.annotations.get(names::BUNDLE),
    ) {
        (Some(run), _) => !runs.iter().any(|known| known.run.label() == run),
        (None, Some(bundle)) => !runs
            .iter()
            .any(|known| known.bundle.as_ref() == Some(bundle)),
        (None, None) => false,
    }
}
