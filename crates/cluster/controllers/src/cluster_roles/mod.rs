//! Aggregated ClusterRoles: a role with an `aggregationRule` gets the rules of the
//! roles that its selectors match.

mod facts;

use std::{collections::BTreeSet, sync::Arc};

use longshore_client::{Change, Cluster, Error, Item, Patch, kinds::Any};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::facts::{Aggregation, gather};
use crate::{
    caches::Caches,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "clusterrole-aggregation";
/// The field manager of the rules, as in Kubernetes.
const MANAGER: &str = "clusterrole-aggregation-controller";
/// The number of workers.
const WORKERS: usize = 1;

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let Some(roles) = caches.cluster_roles() else {
        return;
    };
    let view = cluster.view_of::<Any>(roles.0.clone());
    let roles = &roles.1;
    let queue: Queue<String> = Queue::new(&caches.clock);
    // The names of the aggregated roles.
    let aggregated: Mutex<BTreeSet<String>> = Mutex::default();
    let feeds = feed(NAME, roles, |key, change| {
        let mut aggregated = aggregated.lock();
        if matches!(change, Change::Upsert(item) if is_aggregated(item)) {
            aggregated.insert(key.name);
        } else {
            aggregated.remove(&key.name);
        }
        aggregated.iter().for_each(|name| queue.add(name.clone()));
    });
    let reconcile = async |name: String| {
        let Some(role) = roles.get(None, &name) else {
            return Ok(Next::Done);
        };
        let Some(aggregation) = Aggregation::of(&role)? else {
            return Ok(Next::Done);
        };
        let mut gathered: Vec<Value> = Vec::new();
        for selector in &aggregation.selectors {
            let mut selected = roles.matching(selector);
            selected.retain(|one| one.name() != name);
            selected.sort_unstable_by(|a, b| a.name().cmp(b.name()));
            for one in &selected {
                gather(&mut gathered, facts::rules(one)?);
            }
        }
        if gathered != aggregation.rules {
            apply(&view, &name, gathered).await?;
        }
        Ok::<_, Error>(Next::Done)
    };
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

fn is_aggregated(item: &Item<Any>) -> bool {
    Aggregation::of(item).is_ok_and(|found| found.is_some())
}

async fn apply(
    view: &longshore_client::View<Any>,
    name: &str,
    rules: Vec<Value>,
) -> Result<(), Error> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    });
    view.patch(name, &Patch::apply(role, MANAGER, true)).await?;
    Ok(())
}
