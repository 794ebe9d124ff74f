//! The loop: watches quotas and the objects that they count.

use std::{sync::Arc, time::Duration};

use futures::future;
use longshore_client::{Change, Cluster, Error, Item, Object, View, kinds::Any};
use longshore_model::{
    KindInfo,
    quota::{Evaluator, Quota},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    count,
    watched::{Freed, Watched},
};
use crate::{
    caches::Caches,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "resourcequota";
/// The number of workers, as in Kubernetes.
const WORKERS: usize = 5;
/// The interval at which quotas are counted without changes, as in Kubernetes.
const RECOUNT: Duration = Duration::from_secs(300);
/// The interval at which objects of custom kinds are counted, because their deletions are not
/// watched.
const RECOUNT_CUSTOM: Duration = Duration::from_secs(10);

struct Controller {
    cluster: Cluster,
    quotas: View<Any>,
    watched: Mutex<Watched>,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let Some((kind, quotas)) = caches.of("", "ResourceQuota") else {
        return;
    };
    let controller = Controller {
        quotas: cluster.view_of::<Any>(kind.clone()),
        cluster,
        watched: Mutex::default(),
        queue: Queue::new(&caches.clock),
    };
    let controller = &controller;
    let quotas = feed(NAME, quotas, |key, change| {
        controller.put_quota(key, change)
    });
    let others = caches.others.iter().filter_map(|(kind, cache)| {
        let evaluator = counted_by(kind)?;
        Some(feed(NAME, cache, move |key, change| {
            controller.put_object(&evaluator, &key, change);
        }))
    });
    let others = future::join_all(others.collect::<Vec<_>>());
    let pods = feed(NAME, &caches.pods, |key, change| {
        controller.put_object(&Evaluator::Pods, &key, change);
    });
    let jobs_counted = Evaluator::of("batch", "jobs");
    let jobs = feed(NAME, &caches.jobs, |key, change| {
        if let Some(evaluator) = &jobs_counted {
            controller.put_object(evaluator, &key, change);
        }
    });
    let accounts_counted = Evaluator::of("", "serviceaccounts");
    let accounts = feed(NAME, &caches.service_accounts, |key, change| {
        if let Some(evaluator) = &accounts_counted {
            controller.put_object(evaluator, &key, change);
        }
    });
    let feeds = future::join5(quotas, others, pods, jobs, accounts);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

/// The evaluator of a kind with namespaced objects.
fn counted_by(kind: &KindInfo) -> Option<Evaluator> {
    let evaluator = Evaluator::of(&kind.gvk.group, &kind.plural)?;
    kind.is_namespaced().then_some(evaluator)
}

impl Controller {
    fn put_quota(&self, key: Key, change: &Change<Any>) {
        match change {
            Change::Upsert(item) => match read(item) {
                Ok(quota) => {
                    if self.watched.lock().put(&key, quota) {
                        self.queue.add(key);
                    }
                }
                Err(error) => tracing::warn!(?key, %error, "cannot read a ResourceQuota"),
            },
            Change::Gone(_) => self.watched.lock().remove(&key),
        }
    }

    fn put_object<K: Object>(&self, evaluator: &Evaluator, key: &Key, change: &Change<K>) {
        let item = change.item();
        {
            let mut watched = self.watched.lock();
            if matches!(change, Change::Gone(_)) && *evaluator == Evaluator::Pods {
                watched.forget_pod(item.uid());
            }
            if !watched.has_quotas(&key.namespace) {
                return;
            }
        }
        let freed = match (change, evaluator) {
            (Change::Gone(_), _) => Freed::Deleted,
            (_, Evaluator::Pods) => {
                let phase: Option<String> = item.field(&["status", "phase"]).unwrap_or_default();
                match phase.as_deref() {
                    Some("Succeeded" | "Failed") => Freed::Ended(item.uid()),
                    _ => return,
                }
            }
            (_, Evaluator::Services | Evaluator::Claims) => Freed::Changed,
            (_, Evaluator::Count(_)) => return,
        };
        let mut watched = self.watched.lock();
        let affected = watched.freed(&key.namespace, evaluator, freed);
        affected.into_iter().for_each(|quota| self.queue.add(quota));
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let view = self.quotas.clone().in_namespace(&key.namespace)?;
        let Some(item) = view.find(&key.name).await? else {
            return Ok(Next::Done);
        };
        let quota = read(&item)?;
        let used = count::usage(
            &self.cluster,
            &key.namespace,
            &quota,
            self.queue.clock().now(),
        )
        .await?;
        if used != quota.used || quota.hard != quota.spec_hard {
            let mut object = item.raw()?;
            object["status"] = json!({"hard": quota.spec_hard, "used": used});
            match view.replace_status(&key.name, &object).await {
                Err(error) if error.is_not_found() => return Ok(Next::Done),
                // The server has charged an object in the meantime.
                Err(error) if error.is_conflict() => return Ok(Next::Retry(Duration::ZERO)),
                done => drop(done?),
            }
        }
        let counted = count::counted(&quota.spec_hard);
        let has_custom = counted.iter().any(|one| one.kind.is_none());
        Ok(match has_custom {
            // Objects of custom kinds are not watched.
            true => Next::Retry(RECOUNT_CUSTOM),
            false => Next::After(RECOUNT),
        })
    }
}

fn read(item: &Item<Any>) -> Result<Quota, Error> {
    let Value::Object(object) = item.raw()? else {
        return Ok(Quota::default());
    };
    Quota::of(&object).map_err(|error| Error::Invalid(error.to_string()))
}
