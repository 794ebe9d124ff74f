//! The scheduler's loop: watches nodes and pods, binds pods and reports
//! unschedulable ones.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use longshore_client::{
    Change, Changes, Cluster, DeleteOptions, Error, Item, Patch,
    kinds::{Any, Node, Pod},
};
use longshore_model::time;
use serde_json::{Value, json};

use super::{
    budget::Budget,
    known::{Cleared, VictimPod},
    state::{Decision, NAME, State},
    storage::VolumeRequests,
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    guard,
    key::Key,
    volumes::{
        facts::{ClaimFacts, ClassFacts, VolumeFacts},
        names::{BOUND_BY_CONTROLLER, SELECTED_NODE},
    },
};

/// The maximum number of concurrent requests.
const CONCURRENCY: usize = 16;
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The result of a request, or the end of a delay.
enum Outcome {
    Done(Decision, Result<Responses, Error>),
    Retry(Key, String),
}

/// The claims and volumes in responses, which the watch may report later.
#[derive(Default)]
struct Responses {
    claims: Vec<ClaimFacts>,
    volumes: Vec<VolumeFacts>,
    /// The victims that were deleted.
    deleted: Vec<VictimPod>,
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
    let clock = &caches.clock;
    let mut nodes = caches.nodes.subscribe();
    let mut pods = caches.pods.subscribe();
    let Some(mut storage) = StorageChanges::open(&caches) else {
        return;
    };
    let mut requests: FuturesUnordered<BoxFuture<'static, Outcome>> = FuturesUnordered::new();
    let mut waits: FuturesUnordered<BoxFuture<'static, Outcome>> = FuturesUnordered::new();
    let mut busy = Some(clock.busy("scheduler"));
    loop {
        // All changes are applied first, nodes and claims before pods, so that
        // decisions use the latest state.
        while let Some(change) = nodes.try_next() {
            scheduler.node_changed(&change);
        }
        while let Some(change) = storage.try_next() {
            scheduler.storage_changed(&change);
        }
        while let Some(change) = pods.try_next() {
            scheduler.pod_changed(&change);
        }
        while requests.len() < CONCURRENCY
            && let Some(decision) = scheduler.state.decide()
        {
            requests.push(execute(scheduler.cluster.clone(), decision, clock.now()).boxed());
        }
        if requests.is_empty() {
            busy = None;
        }
        tokio::select! {
            change = nodes.next() => match change {
                Some(change) => scheduler.node_changed(&change),
                None => return,
            },
            change = storage.next() => match change {
                Some(change) => scheduler.storage_changed(&change),
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
        busy.get_or_insert_with(|| clock.busy("scheduler"));
    }
}

async fn execute(cluster: Cluster, decision: Decision, now: Timestamp) -> Outcome {
    let result = async {
        match &decision {
            Decision::Bind { key, node, .. } => cluster
                .pods()
                .in_namespace(&key.namespace)?
                .bind(&key.name, node)
                .await
                .map(|()| Responses::default()),
            Decision::RequestVolumes { node, requests, .. } => {
                request_volumes(&cluster, node, requests).await
            }
            Decision::Explain {
                key,
                uid,
                message,
                since,
            } => {
                let condition = unschedulable(message, since.unwrap_or(now));
                let status = json!({"conditions": [condition]});
                patch_status(&cluster, key, uid, status).await?;
                Ok(Responses::default())
            }
            Decision::Preempt {
                key,
                uid,
                node,
                victims,
                cleared,
                message,
                since,
            } => {
                let condition = unschedulable(message, since.unwrap_or(now));
                let status = json!({"conditions": [condition], "nominatedNodeName": node});
                patch_status(&cluster, key, uid, status).await?;
                preempt(&cluster, victims, cleared, now).await
            }
            Decision::Panicked { panic, .. } => {
                Err(Error::Invalid(format!("choosing a node panicked: {panic}")))
            }
        }
    }
    .await;
    Outcome::Done(decision, result)
}

/// The condition of a pod that cannot be scheduled.
fn unschedulable(message: &str, since: Timestamp) -> Value {
    json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": null,
        "lastTransitionTime": time::seconds(since),
    })
}

async fn patch_status(cluster: &Cluster, key: &Key, uid: &str, status: Value) -> Result<(), Error> {
    let patch = Patch::strategic(json!({"metadata": {"uid": uid}, "status": status}));
    let view = cluster.pods().in_namespace(&key.namespace)?;
    view.patch_status(&key.name, &patch).await.map(drop)
}

/// Returns true if a pod no longer exists, or another one has its name.
fn is_gone(error: &Error) -> bool {
    error.is_not_found() || error.is_conflict() || error.code() == Some(422)
}

/// Deletes the victims of a preemption, and nominations that no longer apply.
async fn preempt(
    cluster: &Cluster,
    victims: &[VictimPod],
    cleared: &[Cleared],
    now: Timestamp,
) -> Result<Responses, Error> {
    for Cleared { key, uid } in cleared {
        let status = json!({"nominatedNodeName": null});
        match patch_status(cluster, key, uid, status).await {
            Err(error) if !is_gone(&error) => return Err(error),
            _ => {}
        }
    }
    let mut responses = Responses::default();
    for victim in victims {
        match delete_victim(cluster, victim, now).await {
            Ok(()) => responses.deleted.push(victim.clone()),
            Err(error) if is_gone(&error) => {
                tracing::debug!(key = ?victim.key, "the victim was already deleted");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(responses)
}

async fn delete_victim(cluster: &Cluster, victim: &VictimPod, now: Timestamp) -> Result<(), Error> {
    let VictimPod { key, uid } = victim;
    let status = json!({"conditions": [{
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{NAME}: preempting to accommodate a higher priority pod"),
        "lastProbeTime": null,
        "lastTransitionTime": time::seconds(now),
    }]});
    patch_status(cluster, key, uid, status).await?;
    let options = DeleteOptions {
        uid: Some(uid.clone()),
        ..DeleteOptions::default()
    };
    let view = cluster.pods().in_namespace(&key.namespace)?;
    view.delete(&key.name, &options).await.map(drop)
}

/// Reserves volumes, and requests that volumes are provisioned. Fails if an object
/// has changed since the decision.
async fn request_volumes(
    cluster: &Cluster,
    node: &str,
    requests: &VolumeRequests,
) -> Result<Responses, Error> {
    let mut responses = Responses::default();
    for one in &requests.reserve {
        let (volume, claim) = (&one.volume_target, &one.claim_target);
        let patch = Patch::merge(json!({
            "metadata": {
                "uid": volume.uid, "resourceVersion": volume.version,
                "annotations": {BOUND_BY_CONTROLLER: "yes"},
            },
            "spec": {"claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": one.claim.namespace, "name": one.claim.name,
                "uid": claim.uid, "resourceVersion": claim.version,
            }},
        }));
        let view = cluster.persistentvolumes();
        let item = view.patch(&one.volume, &patch).await?;
        responses.volumes.push(VolumeFacts::read(item.typed()?));
    }
    for (claim, target) in &requests.provision {
        let patch = Patch::merge(json!({"metadata": {
            "uid": target.uid, "resourceVersion": target.version,
            "annotations": {SELECTED_NODE: node},
        }}));
        let view = cluster.persistentvolumeclaims();
        let view = view.in_namespace(&claim.namespace)?;
        let item = view.patch(&claim.name, &patch).await?;
        responses.claims.push(ClaimFacts::read(item.typed()?)?);
    }
    Ok(responses)
}

/// The changes of claims, volumes, classes and budgets.
struct StorageChanges {
    budgets: Changes<Any>,
    classes: Changes<Any>,
    volumes: Changes<Any>,
    claims: Changes<Any>,
}

impl StorageChanges {
    fn open(caches: &Caches) -> Option<Self> {
        Some(Self {
            budgets: caches.of("policy", "PodDisruptionBudget")?.1.subscribe(),
            classes: caches.of("storage.k8s.io", "StorageClass")?.1.subscribe(),
            volumes: caches.of("", "PersistentVolume")?.1.subscribe(),
            claims: caches.of("", "PersistentVolumeClaim")?.1.subscribe(),
        })
    }

    fn try_next(&mut self) -> Option<Change<Any>> {
        let change = self.budgets.try_next();
        let change = change.or_else(|| self.classes.try_next());
        let change = change.or_else(|| self.volumes.try_next());
        change.or_else(|| self.claims.try_next())
    }

    async fn next(&mut self) -> Option<Change<Any>> {
        tokio::select! {
            change = self.budgets.next() => change,
            change = self.classes.next() => change,
            change = self.volumes.next() => change,
            change = self.claims.next() => change,
        }
    }
}

impl Scheduler {
    fn storage_changed(&mut self, change: &Change<Any>) {
        let item = change.item();
        guard::change("scheduler", &item.name(), &mut || {
            if let Err(error) = self.note_storage(change) {
                let (kind, name) = (&item.kind().gvk.kind, item.name());
                tracing::warn!(%kind, name, %error, "cannot read an object");
            }
        });
    }

    fn note_storage(&mut self, change: &Change<Any>) -> Result<(), Error> {
        let state = &mut self.state;
        match change {
            Change::Upsert(item) => match &*item.kind().gvk.kind {
                "PersistentVolumeClaim" => state.put_claim(ClaimFacts::of(item)?),
                "PersistentVolume" => state.put_volume(VolumeFacts::of(item)?),
                "PodDisruptionBudget" => state.put_budget(Key::of(item), Budget::of(item)?),
                _ => state.put_class(ClassFacts::of(item)?),
            },
            Change::Gone(item) => match &*item.kind().gvk.kind {
                "PersistentVolumeClaim" => state.remove_claim(&Key::of(item), item.uid()),
                "PersistentVolume" => state.remove_volume(item.name(), item.uid()),
                "PodDisruptionBudget" => state.put_budget(Key::of(item), None),
                _ => state.remove_class(item.name()),
            },
        }
        Ok(())
    }

    fn node_changed(&mut self, change: &Change<Node>) {
        guard::change("scheduler", &change.item().name(), &mut || {
            self.note_node(change)
        });
    }

    fn pod_changed(&mut self, change: &Change<Pod>) {
        let key = Key::of(change.item());
        guard::change("scheduler", &key, &mut || {
            self.note_pod(key.clone(), change)
        });
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
        result: Result<Responses, Error>,
    ) -> Option<BoxFuture<'static, Outcome>> {
        let (key, uid) = match &decision {
            Decision::Bind { key, uid, .. }
            | Decision::RequestVolumes { key, uid, .. }
            | Decision::Explain { key, uid, .. }
            | Decision::Preempt { key, uid, .. }
            | Decision::Panicked { key, uid, .. } => (key.clone(), uid.clone()),
        };
        let error = match result {
            Ok(Responses {
                claims,
                volumes,
                deleted,
            }) => {
                self.errors.remove(&uid);
                claims
                    .into_iter()
                    .for_each(|claim| self.state.put_claim(claim));
                volumes
                    .into_iter()
                    .for_each(|volume| self.state.put_volume(volume));
                match decision {
                    Decision::RequestVolumes { .. } => self.state.await_volumes(&key, &uid),
                    Decision::Preempt { ref node, .. } => {
                        let message = format!("Preempted by pod {uid} on node {node}");
                        self.record_event(key, uid, &decision);
                        self.record_preempted(deleted, &message);
                    }
                    _ => self.record_event(key, uid, &decision),
                }
                return None;
            }
            Err(error) => error,
        };
        match &decision {
            Decision::Bind { .. } => self.state.unbind(&key, &uid),
            Decision::RequestVolumes { requests, .. } => {
                self.state.unbind(&key, &uid);
                self.state.release(requests);
                if error.is_not_found() || error.is_conflict() {
                    tracing::debug!(?key, %error, "a claim or volume has changed; choosing again");
                    self.state.retry(&key, &uid);
                    return None;
                }
            }
            Decision::Preempt { victims, .. } => {
                self.state.undo_preemption(&key, &uid, victims);
            }
            Decision::Explain { .. } | Decision::Panicked { .. } => {}
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
            Decision::Explain { message, .. } | Decision::Preempt { message, .. } => {
                message.clone()
            }
            Decision::RequestVolumes { .. } | Decision::Panicked { .. } => return,
        };
        let Key { namespace, name } = key;
        let subject = Subject {
            api_version: "v1".into(),
            kind: "Pod".into(),
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

impl Scheduler {
    fn record_preempted(&self, victims: Vec<VictimPod>, message: &str) {
        for VictimPod { key, uid } in victims {
            let Key { namespace, name } = key;
            let subject = Subject {
                api_version: "v1".into(),
                kind: "Pod".into(),
                namespace,
                name,
                uid,
            };
            self.events
                .record_event(subject, Severity::Normal, "Preempted", message);
        }
    }
}

/// Returns true if another scheduler is responsible for the pod and has not bound it yet. Does not
/// decode the whole pod.
fn is_foreign(item: &Item<Pod>) -> bool {
    let given = |name| {
        let text: Option<String> = item.field(&["spec", name]).ok().flatten();
        text.filter(|text| !text.is_empty())
    };
    given("nodeName").is_none() && given("schedulerName").is_some_and(|name| name != NAME)
}
