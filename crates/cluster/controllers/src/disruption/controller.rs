//! The loop: watches budgets and pods, and executes decisions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future;
use longshore_client::{
    Cache, Change, Cluster, Error, Item,
    kinds::{Any, Pod},
};
use parking_lot::Mutex;

use super::{
    budget::Budget,
    decide::{self, DELETION_TIMEOUT},
    pod::PodFacts,
    requests::Requests,
    scale::{Problem, Reader, Scale},
    status::Status,
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity},
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
    refusal::message,
};

/// The controller's name in the log.
const NAME: &str = "disruption";
/// The number of workers.
const WORKERS: usize = 2;
/// The condition of pods that are about to be deleted.
const TARGET: &[u8] = b"DisruptionTarget";

/// An object to reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    Budget(Key),
    /// A pod with the condition DisruptionTarget.
    Pod(Key),
}

/// Returns true if the JSON text of a pod contains the name of the condition.
fn mentions_target(json: &[u8]) -> bool {
    let starts = json.iter().enumerate().filter(|(_, byte)| **byte == b'D');
    let mut rests = starts.filter_map(|(at, _)| json.get(at..));
    rests.any(|rest| rest.starts_with(TARGET))
}

struct Controller {
    caches: Arc<Caches>,
    budgets: Cache<Any>,
    requests: Requests,
    scale: Reader,
    known: Mutex<BTreeMap<Key, Arc<Budget>>>,
    queue: Queue<Work>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let Some((kind, budgets)) = caches.of("policy", "PodDisruptionBudget") else {
        return;
    };
    let controller = Controller {
        requests: Requests {
            budgets: cluster.view_of::<Any>(kind.clone()),
            cluster: cluster.clone(),
            events: events.named("controllermanager"),
        },
        scale: Reader {
            cluster,
            caches: caches.clone(),
        },
        budgets: budgets.clone(),
        known: Mutex::default(),
        queue: Queue::new(&caches.clock),
        caches: caches.clone(),
    };
    let budgets = feed(NAME, budgets, |key, change| {
        controller.put_budget(key, change)
    });
    let pods = feed(NAME, &caches.pods, |key, change| {
        controller.put_pod(key, change)
    });
    let feeds = future::join(budgets, pods);
    let reconcile = |work| controller.reconcile(work);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn put_budget(&self, key: Key, change: &Change<Any>) {
        let budget = match change {
            Change::Upsert(item) => Budget::of(item),
            Change::Gone(_) => {
                self.known.lock().remove(&key);
                return;
            }
        };
        match budget {
            Ok(budget) => {
                self.known.lock().insert(key.clone(), Arc::new(budget));
                self.queue.add(Work::Budget(key));
            }
            Err(error) => tracing::warn!(?key, %error, "cannot read a PodDisruptionBudget"),
        }
    }

    fn put_pod(&self, key: Key, change: &Change<Pod>) {
        let item = change.item();
        for budget in self.selecting(item) {
            self.queue.add(Work::Budget(budget));
        }
        // Conditions of this type are rare: searching the text is faster than decoding it.
        if matches!(change, Change::Upsert(_)) && mentions_target(item.bytes()) {
            self.queue.add(Work::Pod(key));
        }
    }

    /// Returns the budgets that select a pod.
    fn selecting(&self, item: &Item<Pod>) -> Vec<Key> {
        let known = self.known.lock();
        let namespace = item.namespace().unwrap_or_default();
        let budgets = known.range(Key::new(namespace, "")..);
        let budgets = budgets.take_while(|(key, _)| key.namespace == namespace);
        let budgets = budgets.filter(|(_, budget)| budget.selects(&item.meta().labels));
        budgets.map(|(key, _)| key.clone()).collect()
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        match work {
            Work::Budget(key) => self.reconcile_budget(&key).await,
            Work::Pod(key) => self.reconcile_pod(&key).await,
        }
    }

    async fn reconcile_budget(&self, key: &Key) -> Result<Next, Error> {
        let Some(item) = self.budgets.get(Some(&key.namespace), &key.name) else {
            return Ok(Next::Done);
        };
        let budget = Budget::of(&item)?;
        let now = self.caches.clock.now();
        let pods = self.pods(&budget)?;
        let decision = match self.expected(&budget, &pods).await {
            Ok(expected) => decide::decide(&budget, &pods, expected, now),
            Err(Problem::Request(error)) if error.is_conflict() => return Err(error),
            Err(problem) => {
                let problem = match problem {
                    Problem::Request(error) => message(&error),
                    other => other.to_string(),
                };
                let text = format!("Failed to calculate the number of expected pods: {problem}");
                let reason = "CalculateExpectedPodCountFailed";
                self.requests
                    .note(&budget, Severity::Warning, reason, &text);
                let failed = decide::failed(&budget.status, &problem, now);
                self.store(&item, &budget, &failed).await?;
                return Ok(Next::Done);
            }
        };
        for pod in decision.not_deleted.iter().filter_map(|at| pods.get(*at)) {
            self.requests.note_not_deleted(&budget, pod);
        }
        self.store(&item, &budget, &decision.status).await?;
        let wait = decision.check_after;
        Ok(wait.map_or(Next::Done, |wait| {
            Next::After(wait + self.caches.clock.margin())
        }))
    }

    async fn store(&self, item: &Item<Any>, budget: &Budget, status: &Status) -> Result<(), Error> {
        if budget.status == *status {
            return Ok(());
        }
        self.requests.store_status(item, status).await
    }

    fn pods(&self, budget: &Budget) -> Result<Vec<PodFacts>, Error> {
        let pods = self.caches.pods.by_namespace(&budget.key.namespace);
        let pods = pods.iter();
        let pods = pods.filter(|pod| budget.selects(&pod.meta().labels));
        pods.map(PodFacts::of).collect()
    }

    async fn expected(
        &self,
        budget: &Budget,
        pods: &[PodFacts],
    ) -> Result<decide::Expected, Problem> {
        if pods.is_empty() {
            let text = "No matching pods found";
            self.requests.note(budget, Severity::Normal, "NoPods", text);
        }
        let scale = match decide::needs_scale(budget) {
            true => self.scale.of(&budget.key.namespace, pods).await?,
            false => Scale::default(),
        };
        if scale.has_unmanaged {
            let text = format!(
                "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
                budget.selector_text
            );
            self.requests
                .note(budget, Severity::Warning, "UnmanagedPods", &text);
        }
        decide::expected(budget, pods.len(), scale.pods)
            .map_err(|problem| Problem::Request(Error::Invalid(problem)))
    }

    /// Resets the condition of a pod that was not deleted.
    async fn reconcile_pod(&self, key: &Key) -> Result<Next, Error> {
        let Some(item) = self.caches.pods.get(Some(&key.namespace), &key.name) else {
            return Ok(Next::Done);
        };
        let pod = PodFacts::of(&item)?;
        let Some(since) = pod.disrupted_since.filter(|_| !pod.deleting) else {
            return Ok(Next::Done);
        };
        let age = self.caches.clock.now().duration_since(since);
        let age = Duration::try_from(age).unwrap_or_default();
        match DELETION_TIMEOUT.checked_sub(age) {
            Some(left) if !left.is_zero() => Ok(Next::After(left)),
            _ => {
                self.requests
                    .reset_disruption(&pod, self.caches.clock.now())
                    .await?;
                Ok(Next::Done)
            }
        }
    }
}
