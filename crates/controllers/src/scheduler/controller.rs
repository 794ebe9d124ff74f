//! The scheduler's loop: watches nodes and pods, binds pods and reports
//! unschedulable ones.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use longshore_client::{
    Change, Cluster, Error, Item, Patch,
    kinds::{Node, Pod},
};
use longshore_model::time;
use serde_json::json;

use super::state::{Decision, NAME, State};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    guard,
    key::Key,
};

/// The maximum number of concurrent requests.
const CONCURRENCY: usize = 16;
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The result of a request, or the end of a delay.
enum Outcome {
    Done(Decision, Result<(), Error>),
    Retry(Key, String),
}

struct Scheduler {
    cluster: Cluster,
    events: Recorder,
    state: State,
    /// The number of consecutive errors by UID.
    errors: HashMap<String, u32>,
}

/// Runs the scheduler until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let events = events.named("default-scheduler");
    let state = State::default();
    let mut scheduler = Scheduler {
        cluster,
        events,
        state,
        errors: HashMap::new(),
    };
    let mut nodes = caches.nodes.subscribe();
    let mut pods = caches.pods.subscribe();
    let mut requests: FuturesUnordered<BoxFuture<'static, Outcome>> = FuturesUnordered::new();
    let mut waits: FuturesUnordered<BoxFuture<'static, Outcome>> = FuturesUnordered::new();
    loop {
        // All changes are applied first, nodes before pods, so that decisions use
        // the latest state.
        while let Some(change) = nodes.try_next() {
            scheduler.node_changed(&change);
        }
        while let Some(change) = pods.try_next() {
            scheduler.pod_changed(&change);
        }
        while requests.len() < CONCURRENCY
            && let Some(decision) = scheduler.state.decide()
        {
            requests.push(execute(scheduler.cluster.clone(), decision).boxed());
        }
        tokio::select! {
            change = nodes.next() => match change {
                Some(change) => scheduler.node_changed(&change),
                None => return,
            },
            change = pods.next() => match change {
                Some(change) => scheduler.pod_changed(&change),
                None => return,
            },
            Some(Outcome::Done(decision, result)) = requests.next(), if !requests.is_empty() => {
                waits.extend(scheduler.settle(decision, result));
            }
            Some(Outcome::Retry(key, uid)) = waits.next(), if !waits.is_empty() => {
                scheduler.state.retry(&key, &uid);
            }
        }
    }
}

async fn execute(cluster: Cluster, decision: Decision) -> Outcome {
    let result = async {
        match &decision {
            Decision::Bind { key, node, .. } => {
                cluster
                    .pods()
                    .in_namespace(&key.namespace)?
                    .bind(&key.name, node)
                    .await
            }
            Decision::Explain {
                key,
                uid,
                message,
                since,
            } => {
                let now = Timestamp::now();
                let patch = Patch::strategic(json!({
                    "metadata": {"uid": uid},
                    "status": {"conditions": [{
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": message,
                        "lastProbeTime": null,
                        "lastTransitionTime": time::seconds(since.unwrap_or(now)),
                    }]}
                }));
                let view = cluster.pods().in_namespace(&key.namespace)?;
                view.patch_status(&key.name, &patch).await.map(|_| ())
            }
            Decision::Panicked { panic, .. } => {
                Err(Error::Invalid(format!("choosing a node panicked: {panic}")))
            }
        }
    }
    .await;
    Outcome::Done(decision, result)
}

impl Scheduler {
    fn node_changed(&mut self, change: &Change<Node>) {
        guard::change("scheduler", &change.item().name(), || {
            self.note_node(change)
        });
    }

    fn pod_changed(&mut self, change: &Change<Pod>) {
        let key = Key::of(change.item());
        guard::change("scheduler", &key.clone(), || self.note_pod(key, change));
    }

    fn note_node(&mut self, change: &Change<Node>) {
        match change {
            Change::Upsert(item) => match item.object() {
                Ok(node) => self.state.put_node(&node),
                Err(error) => tracing::warn!(node = item.name(), %error, "cannot read a node"),
            },
            Change::Gone(item) => self.state.remove_node(item.name()),
        }
    }

    fn note_pod(&mut self, key: Key, change: &Change<Pod>) {
        match change {
            // In a busy cluster, most pods may belong to another scheduler.
            Change::Upsert(item) if is_foreign(item) => self.state.remove_pod(&key, item.uid()),
            Change::Upsert(item) => match item.object() {
                Ok(pod) => self.state.put_pod(key, &pod),
                Err(error) => tracing::warn!(?key, %error, "cannot read a pod"),
            },
            Change::Gone(item) => {
                self.errors.remove(item.uid());
                self.state.remove_pod(&key, item.uid());
            }
        }
    }

    /// Processes the result of a request. Returns a delay before a retry.
    fn settle(
        &mut self,
        decision: Decision,
        result: Result<(), Error>,
    ) -> Option<BoxFuture<'static, Outcome>> {
        let (key, uid) = match &decision {
            Decision::Bind { key, uid, .. }
            | Decision::Explain { key, uid, .. }
            | Decision::Panicked { key, uid, .. } => (key.clone(), uid.clone()),
        };
        let Err(error) = result else {
            self.errors.remove(&uid);
            self.record_event(key, uid, &decision);
            return None;
        };
        if matches!(decision, Decision::Bind { .. }) {
            self.state.unbind(&key, &uid);
        }
        if error.is_not_found() {
            tracing::debug!(?key, "the pod was deleted before it was scheduled");
            return None;
        }
        let errors = self.errors.entry(uid.clone()).or_insert(0);
        *errors = errors.saturating_add(1);
        let wait = INITIAL_BACKOFF
            .saturating_mul(2_u32.saturating_pow(*errors - 1))
            .min(MAX_BACKOFF);
        let wait = wait.mul_f64(0.5 + rand::random::<f64>() / 2.0);
        tracing::warn!(?key, %error, ?wait, "scheduling failed; retrying");
        Some(
            async move {
                tokio::time::sleep(wait).await;
                Outcome::Retry(key, uid)
            }
            .boxed(),
        )
    }

    fn record_event(&self, key: Key, uid: String, decision: &Decision) {
        let message = match decision {
            Decision::Bind { node, .. } => {
                format!(
                    "Successfully assigned {}/{} to {node}",
                    key.namespace, key.name
                )
            }
            Decision::Explain { message, .. } => message.clone(),
            Decision::Panicked { .. } => return,
        };
        let Key { namespace, name } = key;
        let subject = Subject {
            api_version: "v1",
            kind: "Pod",
            namespace,
            name,
            uid,
        };
        let (severity, reason) = match decision {
            Decision::Bind { .. } => (Severity::Normal, "Scheduled"),
            _ => (Severity::Warning, "FailedScheduling"),
        };
        self.events
            .record_event(subject, severity, reason, &message);
    }
}

/// Whether another scheduler is responsible for the pod and has not bound it yet.
/// Does not decode the whole pod.
fn is_foreign(item: &Item<Pod>) -> bool {
    let given = |name| {
        let text: Option<String> = item.field(&["spec", name]).ok().flatten();
        text.filter(|text| !text.is_empty())
    };
    given("nodeName").is_none() && given("schedulerName").is_some_and(|name| name != NAME)
}
