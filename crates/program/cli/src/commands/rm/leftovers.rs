//! Removes what killed submissions have left: a Secret or a Service without a run.

use std::time::Duration;

use jiff::Timestamp;
use longshore::{
    client::Cluster,
    launcher::{
        Owner, Ownership, RunSummary,
        runs::{self, Leftover},
    },
};

use crate::{error::Result, ui};

/// Younger objects may belong to a submission in progress.
const AGE: Duration = Duration::from_secs(600);

/// The objects of an unlisted run with exactly this name. `None` if there are no such objects.
pub(super) async fn of_run(
    cluster: &Cluster,
    namespace: &str,
    all: &[RunSummary],
    name: &str,
) -> Result<Option<Vec<Leftover>>> {
    if runs::pick(all, namespace, name, None).is_ok() {
        return Ok(None);
    }
    let Ok(mut found) = runs::leftovers(cluster, namespace, all).await else {
        // The caller then reports an unknown run.
        return Ok(None);
    };
    found.retain(|object| object.run.as_deref() == Some(name));
    Ok((!found.is_empty()).then_some(found))
}

/// Returns the objects of the user's submissions, or of all submissions, that are no longer in
/// progress. Empty without the permission to list them.
pub(super) async fn old(
    cluster: &Cluster,
    namespace: &str,
    all: &[RunSummary],
    all_users: bool,
) -> Result<Vec<Leftover>> {
    let Ok(mut found) = runs::leftovers(cluster, namespace, all).await else {
        return Ok(Vec::new());
    };
    let now = Timestamp::now();
    found.retain(|object| object.is_older(AGE, now));
    if !all_users && !found.is_empty() {
        let me = Owner::current(cluster).await?;
        found.retain(|object| me.ownership(object.owner.as_ref()) != Ownership::Other);
    }
    Ok(found)
}

/// Removes the leftovers, or prints that it would.
pub(super) async fn remove(left: &[Leftover], dry_run: bool) -> Result<()> {
    let what = ui::count(left.len() as u64, "object");
    if dry_run {
        ui::line(format!(
            "{what} of interrupted submissions would be removed."
        ));
        return Ok(());
    }
    for object in left {
        object.remove().await?;
    }
    ui::line(format!("{what} of interrupted submissions removed."));
    Ok(())
}
