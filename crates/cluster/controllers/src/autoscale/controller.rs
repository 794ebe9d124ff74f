//! The loop: watches autoscalers, and reconciles each one at intervals and when its spec changes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::autoscaling::v2::MetricStatus;
use longshore_client::{Cache, Change, Cluster, Error, LabelSelector, Scale, kinds::Any};

use super::{
    autoscaler::Autoscaler,
    compute::{Computed, compute},
    decide::{self, Basis, Desired},
    draft::{ABLE, ACTIVE, Draft},
    metric::Facts,
    pod::PodFacts,
    requests::Requests,
    tracked::Tracked,
};
use crate::{
    caches::Caches,
    events::Recorder,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "horizontalpodautoscaler";
/// The number of workers.
const WORKERS: usize = 2;

/// The interval at which autoscalers are reconciled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The interval at which the metrics of an autoscaler are read.
    pub(crate) interval: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(15),
        }
    }
}

struct Controller {
    caches: Arc<Caches>,
    autoscalers: Cache<Any>,
    requests: Requests,
    tracked: Tracked,
    queue: Queue<Key>,
    pace: Pace,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder, pace: Pace) {
    let Some((kind, autoscalers)) = caches.of("autoscaling", "HorizontalPodAutoscaler") else {
        return;
    };
    let controller = Controller {
        requests: Requests {
            autoscalers: cluster.view_of::<Any>(kind.clone()),
            cluster,
            caches: caches.clone(),
            events: events.named("horizontal-pod-autoscaler"),
        },
        autoscalers: autoscalers.clone(),
        tracked: Tracked::default(),
        queue: Queue::new(&caches.clock),
        caches: caches.clone(),
        pace,
    };
    let feed = feed(NAME, autoscalers, |key, change| controller.put(key, change));
    let reconcile = async |key: Key| controller.reconcile(&key).await;
    reconcile::run(NAME, WORKERS, &controller.queue, feed, reconcile).await;
}

impl Controller {
    fn put(&self, key: Key, change: &Change<Any>) {
        match change {
            Change::Upsert(item) => {
                let generation = item.meta().generation.unwrap_or(0);
                if self.tracked.put(&key, item.uid(), generation) {
                    self.queue.add(key);
                }
            }
            Change::Gone(_) => self.tracked.remove(&key),
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(item) = self.autoscalers.get(Some(&key.namespace), &key.name) else {
            return Ok(Next::Done);
        };
        let autoscaler = Autoscaler::of(&item)?;
        let mut draft = Draft::new(&autoscaler, self.caches.clock.now());
        self.decide(&autoscaler, &mut draft).await;
        for event in &draft.events {
            self.requests.record(&autoscaler, event);
        }
        if draft.status != autoscaler.status {
            let stored = self.requests.store_status(&item, &draft.status).await;
            if let Err(error) = &stored {
                self.requests.note_not_stored(&autoscaler, error);
            }
            stored?;
        }
        Ok(Next::After(self.pace.interval))
    }

    /// Decides the replicas of the target and sets them.
    async fn decide(&self, autoscaler: &Autoscaler, draft: &mut Draft) {
        let (target, scale) = match self.requests.scale(autoscaler).await {
            Ok(found) => found,
            Err(problem) => {
                let message = format!(
                    "the HPA controller was unable to get the target's current scale: {problem}"
                );
                draft.set(ABLE, false, "FailedGetScale", &message);
                draft.warn("FailedGetScale", problem);
                return;
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        draft.set(ABLE, true, "SucceededGetScale", message);
        let current = i32::try_from(scale.wanted).unwrap_or(i32::MAX);
        let (key, now) = (&autoscaler.key, draft.now);
        self.tracked
            .history(key, |history| history.begin(current, now));
        let mut metrics = Vec::new();
        let desired = match decide::basis(autoscaler, current, draft) {
            Basis::Disabled => None,
            Basis::Limit(replicas, reason) => Some(Desired {
                replicas,
                reason: reason.to_owned(),
            }),
            Basis::Metrics => {
                let computed = self.compute(autoscaler, &scale, current, draft).await;
                metrics = computed.metrics;
                match computed.desired {
                    Ok(wanted) => self.tracked.history(key, |history| {
                        let desired =
                            decide::normalize(autoscaler, current, wanted, history, draft);
                        Some(desired).filter(|desired| desired.replicas != current)
                    }),
                    Err(problem) => {
                        draft.warn("FailedComputeMetricsReplicas", problem);
                        keep_desired(autoscaler, current, metrics, draft);
                        return;
                    }
                }
            }
        };
        let Some(desired) = desired else {
            draft.set_numbers(autoscaler, current, current, metrics);
            return;
        };
        let name = &autoscaler.target.name;
        let done = self.requests.set_scale(&target, name, desired.replicas);
        if let Err(problem) = done.await {
            decide::not_scaled(&desired, &problem, draft);
            keep_desired(autoscaler, current, metrics, draft);
            return;
        }
        self.tracked.history(key, |history| {
            decide::scaled(autoscaler, current, &desired, history, draft);
        });
        draft.set_numbers(autoscaler, current, desired.replicas, metrics);
    }

    /// Computes the replicas from the metrics.
    async fn compute(
        &self,
        autoscaler: &Autoscaler,
        scale: &Scale,
        current: i32,
        draft: &mut Draft,
    ) -> Computed {
        let pods = match self.pods(autoscaler, &scale.selector, draft) {
            Ok(pods) => pods,
            Err(problem) => {
                return Computed {
                    desired: Err(problem),
                    metrics: Vec::new(),
                };
            }
        };
        let namespace = &autoscaler.key.namespace;
        let usage = match autoscaler.needs_usage() {
            true => self.requests.usage(namespace, &scale.selector).await,
            false => Ok(Default::default()),
        };
        let facts = Facts {
            namespace,
            replicas: current,
            pods: &pods,
            usage: &usage,
            tolerances: autoscaler.tolerances(),
            now: draft.now,
        };
        compute(autoscaler, &facts, draft)
    }

    /// Returns the pods of the target.
    ///
    /// # Errors
    /// Returns Kubernetes' message if the pods are unknown or if another autoscaler also scales
    /// them.
    fn pods(
        &self,
        autoscaler: &Autoscaler,
        text: &str,
        draft: &mut Draft,
    ) -> Result<Vec<PodFacts>, String> {
        if text.is_empty() {
            let problem = "selector is required".to_owned();
            draft.warn("SelectorRequired", problem.clone());
            let message = "the HPA target's scale is missing a selector";
            draft.set(ACTIVE, false, "InvalidSelector", message);
            return Err(problem);
        }
        let selector = match text.parse::<LabelSelector>() {
            Ok(selector) => selector,
            Err(error) => {
                let problem = format!(
                    "couldn't convert selector into a corresponding internal selector object: {}",
                    error.server_message()
                );
                draft.warn("InvalidSelector", problem.clone());
                draft.set(ACTIVE, false, "InvalidSelector", &problem);
                return Err(problem);
            }
        };
        let key = &autoscaler.key;
        let pods = self.caches.pods.by_namespace(&key.namespace);
        let pods = pods.iter();
        let pods = pods.filter(|pod| selector.matches(&pod.meta().labels));
        let pods: Result<Vec<PodFacts>, Error> = pods.map(PodFacts::of).collect();
        let pods = pods.map_err(|error| error.to_string())?;
        self.tracked.select(key, selector);
        let selecting = self.tracked.selecting(&key.namespace, &pods);
        if selecting.len() > 1 {
            let names = selecting.iter();
            let names = names.map(|key| format!("{{{} {}}}", key.name, key.namespace));
            let names: Vec<String> = names.collect();
            let problem = format!(
                "pods by selector {text} are controlled by more than one HPA (e.g. [{}])",
                names.join(" ")
            );
            draft.warn("AmbiguousSelector", problem.clone());
            draft.set(ACTIVE, false, "AmbiguousSelector", &problem);
            return Err(problem);
        }
        Ok(pods)
    }
}

/// Sets the numbers of the status without a new decision.
fn keep_desired(
    autoscaler: &Autoscaler,
    current: i32,
    metrics: Vec<MetricStatus>,
    draft: &mut Draft,
) {
    let desired = autoscaler.status.desired_replicas;
    draft.set_numbers(autoscaler, current, desired, metrics);
}
