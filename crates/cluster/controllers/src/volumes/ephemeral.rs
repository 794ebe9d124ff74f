//! The controller that creates the claims of generic ephemeral volumes. The
//! garbage collector deletes them with their pods.

use std::sync::Arc;

use futures::future;
use k8s_openapi::api::core::v1::Volume;
use longshore_client::{
    Change, Cluster, Error, Item,
    kinds::{Any, Pod},
};
use serde_json::{Value, json};

use super::pod_volumes::{ephemeral_name, not_owned};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
    refusal::{is_terminating, message},
};

/// The controller's name in the log.
const NAME: &str = "ephemeral volumes";
/// The name of the controller in events.
const COMPONENT: &str = "ephemeral_volume";
/// The number of workers.
const WORKERS: usize = 4;
/// A part of the JSON text of each pod with such a volume.
const MARK: &[u8] = br#""ephemeral":{"#;

/// Returns true if a pod may have generic ephemeral volumes. Most pods have none, and searching the
/// JSON text is faster than decoding it.
fn may_have_volumes(item: &Item<Pod>) -> bool {
    memchr::memmem::find(item.bytes(), MARK).is_some()
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let Some((_, claims)) = caches.of("", "PersistentVolumeClaim") else {
        return;
    };
    let events = events.named(COMPONENT);
    let queue: Queue<Key> = Queue::new(&caches.clock);
    let pods = feed(NAME, &caches.pods, |key, change| {
        if let Change::Upsert(item) = change
            && may_have_volumes(item)
        {
            queue.add(key);
        }
    });
    // A deleted claim is created again while its pod exists.
    let gone = feed(NAME, claims, |key, change| {
        if let Change::Gone(item) = change
            && let Some(owner) = item.meta().controller()
            && owner.kind == "Pod"
        {
            queue.add(Key::new(&key.namespace, &owner.name));
        }
    });
    let feeds = future::join(pods, gone);
    let reconcile = async |key: Key| {
        let Some(item) = caches.pods.get(Some(&key.namespace), &key.name) else {
            return Ok(Next::Done);
        };
        if item.meta().deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let volumes: Option<Vec<Volume>> = item.field(&["spec", "volumes"])?;
        for volume in volumes.iter().flatten() {
            let known = |name: &str| claims.get(Some(&key.namespace), name);
            let Err(error) = create_claim(&cluster, &item, volume, known).await else {
                continue;
            };
            if is_terminating(&error) {
                return Ok(Next::Done);
            }
            let problem = format!("ephemeral volume {}: {}", volume.name, message(&error));
            let subject = Subject {
                api_version: "v1".into(),
                kind: "Pod".into(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: item.uid().to_owned(),
            };
            events.record_event(subject, Severity::Warning, "FailedBinding", &problem);
            return Err(Error::Invalid(problem));
        }
        Ok(Next::Done)
    };
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

/// Creates the claim of a volume, if it is a generic ephemeral volume and the
/// claim does not exist.
async fn create_claim(
    cluster: &Cluster,
    pod: &Item<Pod>,
    volume: &Volume,
    known: impl Fn(&str) -> Option<Item<Any>>,
) -> Result<(), Error> {
    let Some(source) = &volume.ephemeral else {
        return Ok(());
    };
    let namespace = pod.namespace().unwrap_or_default();
    let name = ephemeral_name(pod.name(), &volume.name);
    let check = |uid: Option<&str>| match uid {
        Some(uid) if uid == pod.uid() => Ok(()),
        _ => Err(Error::Invalid(not_owned(namespace, &name, pod.name()))),
    };
    if let Some(claim) = known(&name) {
        return check(claim.meta().controller().map(|owner| &*owner.uid));
    }
    let template = source.volume_claim_template.as_ref();
    let template = serde_json::to_value(template)
        .map_err(|error| Error::Invalid(format!("volumeClaimTemplate: {error}")))?;
    let view = cluster.persistentvolumeclaims().in_namespace(namespace)?;
    match view.create(&claim(pod, &name, &template)).await {
        Err(error) if error.is_already_exists() => {
            let claim = view.find(&name).await?;
            let Some(claim) = claim else { return Ok(()) };
            check(claim.meta().controller().map(|owner| &*owner.uid))
        }
        Err(error) if is_terminating(&error) => Err(error),
        Err(error) => Err(Error::Invalid(format!(
            "create PVC {name}: {}",
            message(&error)
        ))),
        Ok(_) => Ok(()),
    }
}

/// Returns the claim of a generic ephemeral volume.
fn claim(pod: &Item<Pod>, name: &str, template: &Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid(),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    });
    for field in ["labels", "annotations"] {
        if template["metadata"][field].is_object() {
            claim["metadata"][field] = template["metadata"][field].clone();
        }
    }
    claim
}
