//! Publishes the API server's CA certificate in each namespace, in the ConfigMap
//! `kube-root-ca.crt`, for clients that verify the server.

use std::{collections::BTreeMap, sync::Arc};

use futures::future;
use longshore_client::{Change, Cluster, Error, Patch};
use serde_json::{Value, json};

use crate::{
    caches::Caches,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "root-ca";
/// The ConfigMap's name.
const MAP: &str = "kube-root-ca.crt";
/// The data key of the certificate.
const FIELD: &str = "ca.crt";
/// The number of workers.
const WORKERS: usize = 2;

/// Runs the controller until its cluster is closed. `certificate` is PEM.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, certificate: String) {
    let Some(maps) = caches.config_maps() else {
        return;
    };
    let queue: Queue<String> = Queue::new(&caches.clock);
    let namespaces = feed(NAME, &caches.namespaces, |_, change| {
        if let Change::Upsert(item) = change {
            queue.add(item.name().to_owned());
        }
    });
    let published = feed(NAME, maps, |_, change| {
        let item = change.item();
        if item.name() == MAP {
            item.namespace()
                .into_iter()
                .for_each(|name| queue.add(name.to_owned()));
        }
    });
    let feeds = future::join(namespaces, published);
    let reconcile = async |namespace: String| {
        let is_active = caches
            .namespaces
            .get(None, &namespace)
            .is_some_and(|item| item.meta().deletion_timestamp.is_none());
        if is_active {
            let known = maps.get(Some(&namespace), MAP);
            let known = known.map(|item| item.raw()).transpose()?;
            publish(&cluster, &namespace, known.as_ref(), &certificate).await?;
        }
        Ok::<_, Error>(Next::Done)
    };
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

async fn publish(
    cluster: &Cluster,
    namespace: &str,
    known: Option<&Value>,
    certificate: &str,
) -> Result<(), Error> {
    let view = cluster.configmaps().in_namespace(namespace)?;
    let done = match known {
        None => {
            let map = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": MAP,
                    "annotations": {"kubernetes.io/description":
                        "The certificate that the API server's own certificate is signed with."},
                },
                "data": {FIELD: certificate},
            });
            view.create(&map).await.map(drop)
        }
        Some(known) => match change(known, certificate) {
            Some(data) => {
                let patch = Patch::merge(json!({"data": data}));
                view.patch(MAP, &patch).await.map(drop)
            }
            None => Ok(()),
        },
    };
    match done {
        // The namespace is terminating, or another client created the ConfigMap first. The caches
        // will report the new state.
        Err(error)
            if error.is_already_exists() || error.is_not_found() || error.code() == Some(403) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// Returns the changes that leave only the certificate in the data.
fn change<'a>(
    known: &'a Value,
    certificate: &'a str,
) -> Option<BTreeMap<&'a str, Option<&'a str>>> {
    let mut change = BTreeMap::new();
    let data = known["data"].as_object().into_iter().flatten();
    for (field, _) in data.filter(|(field, _)| *field != FIELD) {
        change.insert(field.as_str(), None);
    }
    if known["data"][FIELD] != certificate {
        change.insert(FIELD, Some(certificate));
    }
    (!change.is_empty()).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_patched() {
        assert_eq!(change(&json!({"data": {FIELD: "new"}}), "new"), None);
        let both = [("x", None), (FIELD, Some("new"))];
        let known = json!({"data": {FIELD: "old", "x": "y"}});
        assert_eq!(change(&known, "new"), Some(both.into()));
        assert_eq!(
            change(&json!({}), "new"),
            Some([(FIELD, Some("new"))].into())
        );
    }
}
