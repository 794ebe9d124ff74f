//! The namespace controller: deletes the content of namespaces in deletion, and
//! creates the ServiceAccount `default` in all others.

use std::{sync::Arc, time::Duration};

use futures::future;
use jiff::Timestamp;
use longshore_client::{
    Change, Cluster, DeleteOptions, Error, Item, Patch,
    kinds::{Any, Namespace},
};
use longshore_model::{KindInfo, kind::BUILTIN, time};
use serde_json::{Value, json};

use super::conditions::{Remaining, conditions};
use crate::{
    aggregated::{self, Aggregated},
    caches::Caches,
    custom,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "namespace";
/// This controller's finalizer in `spec.finalizers`.
const FINALIZER: &str = "kubernetes";
/// The ServiceAccount of pods that do not specify one.
const SERVICE_ACCOUNT: &str = "default";
/// The path of the CustomResourceDefinitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The number of workers.
const WORKERS: usize = 4;

struct Controller {
    cluster: Cluster,
    caches: Arc<Caches>,
    queue: Queue<String>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let controller = Controller {
        cluster,
        caches: caches.clone(),
        queue: Queue::new(&caches.clock),
    };
    let add = |name: Option<&str>| {
        name.into_iter()
            .for_each(|name| controller.queue.add(name.to_owned()));
    };
    let namespaces = feed(NAME, &caches.namespaces, |_, change| {
        add(Some(change.item().name()));
    });
    let accounts = feed(NAME, &caches.service_accounts, |_, change| {
        if matches!(change, Change::Gone(item) if item.name() == SERVICE_ACCOUNT) {
            add(change.item().namespace());
        }
    });
    // Pods take the longest to be deleted. Each deleted pod may be the last one.
    let pods = feed(NAME, &caches.pods, |_, change| {
        if let Change::Gone(item) = change
            && controller.is_in_deletion(item.namespace())
        {
            add(item.namespace());
        }
    });
    let feeds = future::join3(namespaces, accounts, pods);
    let reconcile = async |name: String| controller.reconcile(&name).await;
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

/// A kind whose objects a namespace can contain.
struct Content {
    kind: Arc<KindInfo>,
    /// True if the kind may no longer be served, which is not an error then.
    may_end: bool,
    lists: bool,
    deletes_collections: bool,
}

impl Content {
    fn builtin(kind: &KindInfo) -> Self {
        Self {
            kind: Arc::new(kind.clone()),
            may_end: false,
            lists: true,
            deletes_collections: true,
        }
    }

    fn custom(kind: KindInfo) -> Self {
        Self {
            may_end: true,
            ..Self::builtin(&kind)
        }
    }

    /// The kinds of aggregated API servers whose objects can be deleted.
    fn aggregated(found: &Aggregated) -> impl Iterator<Item = Self> {
        let namespaced = found.kinds.iter().filter(|kind| kind.info.is_namespaced());
        let deletable = namespaced.filter(|kind| kind.supports("delete"));
        deletable.map(|kind| Self {
            kind: kind.info.clone(),
            may_end: true,
            lists: kind.supports("list"),
            deletes_collections: kind.supports("deletecollection"),
        })
    }
}

/// Returns the namespaced custom kinds.
fn custom_kinds(definitions: &Value) -> impl Iterator<Item = KindInfo> {
    let definitions = definitions["items"].as_array().into_iter().flatten();
    definitions
        .filter_map(custom::kind)
        .filter(KindInfo::is_namespaced)
}

/// Returns the delay before a namespace that is not empty is checked again. The delay grows with
/// the age of the deletion.
fn next_check(age: Duration) -> Duration {
    (age / 4).clamp(Duration::from_millis(100), Duration::from_secs(5))
}

/// Returns the namespace without this controller's finalizer; `None` if it does not
/// have the finalizer.
fn finalized(mut namespace: Value) -> Option<Value> {
    let finalizers = namespace.pointer_mut("/spec/finalizers")?.as_array_mut()?;
    let before = finalizers.len();
    finalizers.retain(|name| name != FINALIZER);
    (finalizers.len() < before).then_some(namespace)
}

impl Controller {
    fn is_in_deletion(&self, namespace: Option<&str>) -> bool {
        namespace
            .and_then(|name| self.caches.namespaces.get(None, name))
            .is_some_and(|item| item.meta().deletion_timestamp.is_some())
    }

    async fn reconcile(&self, name: &str) -> Result<Next, Error> {
        let Some(item) = self.caches.namespaces.get(None, name) else {
            return Ok(Next::Done);
        };
        match item.meta().deletion_timestamp {
            Some(since) => self.delete_content(&item, since).await,
            None => self.add_service_account(name).await,
        }
    }

    async fn add_service_account(&self, name: &str) -> Result<Next, Error> {
        if self
            .caches
            .service_accounts
            .get(Some(name), SERVICE_ACCOUNT)
            .is_some()
        {
            return Ok(Next::Done);
        }
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": SERVICE_ACCOUNT, "namespace": name},
        });
        let view = self.cluster.serviceaccounts().in_namespace(name)?;
        match view.create(&account).await {
            Ok(_) => Ok(Next::Done),
            Err(error) if error.is_already_exists() || error.is_not_found() => Ok(Next::Done),
            Err(error) => Err(error),
        }
    }

    /// Deletes all objects in the namespace, pods first. Finalizes the namespace
    /// when it is empty.
    async fn delete_content(
        &self,
        item: &Item<Namespace>,
        since: Timestamp,
    ) -> Result<Next, Error> {
        let name = item.name();
        let versions = aggregated::versions(&self.caches);
        let aggregated = aggregated::discover(&self.cluster, &versions).await?;
        let builtin = BUILTIN.iter().filter(|kind| kind.is_namespaced());
        let (pods, others): (Vec<_>, Vec<_>) = builtin
            .map(Content::builtin)
            .partition(|content| &*content.kind.gvk.kind == "Pod");
        let mut remaining = Remaining::default();
        remaining.undiscovered = aggregated.failures();
        let mut failed = self.delete_kinds(name, pods, &mut remaining).await;
        let left = remaining.count();
        if left > 0 || failed.is_some() {
            remaining = remaining.uncounted();
        } else {
            let definitions = self.cluster.proxy().get(DEFINITIONS, &[]).await?;
            let custom = custom_kinds(&definitions).map(Content::custom);
            let kinds = others.into_iter().chain(custom);
            let kinds = kinds.chain(Content::aggregated(&aggregated)).collect();
            failed = self.delete_kinds(name, kinds, &mut remaining).await;
        }
        let left = left.max(remaining.count());
        self.report(item, &remaining).await?;
        if let Some(error) = failed {
            return Err(error);
        }
        let undiscovered = remaining.undiscovered.len();
        if left > 0 || undiscovered > 0 {
            tracing::debug!(
                namespace = name,
                left,
                undiscovered,
                "a namespace is not empty yet"
            );
            let age = self.caches.clock.now().duration_since(since);
            return Ok(Next::Retry(next_check(
                Duration::try_from(age).unwrap_or_default(),
            )));
        }
        let Some(live) = self.cluster.namespaces().find(name).await? else {
            return Ok(Next::Done);
        };
        if live.uid() == item.uid()
            && let Some(body) = finalized(live.raw()?)
        {
            let path = format!("/api/v1/namespaces/{name}/finalize");
            match self.cluster.proxy().put(&path, &[], &body).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(Next::Done)
    }

    /// Deletes the objects of kinds, and counts the remaining ones. Returns the first
    /// error.
    async fn delete_kinds(
        &self,
        namespace: &str,
        kinds: Vec<Content>,
        remaining: &mut Remaining,
    ) -> Option<Error> {
        let mut first = None;
        for content in kinds {
            let Content { kind, may_end, .. } = &content;
            let resource = format!("{}.{}", kind.plural, kind.gvk.group);
            match self.delete_all(namespace, &content).await {
                Ok(items) => {
                    for item in items {
                        remaining.add(&resource, &item.meta().finalizers);
                    }
                }
                // The definition was deleted in the meantime, together with all objects of the
                // kind. An aggregated API server may not support a verb that it announces.
                Err(error) if *may_end && matches!(error.code(), Some(404 | 405)) => {}
                Err(error) => {
                    remaining.failures.push(error.to_string());
                    first.get_or_insert(error);
                }
            }
        }
        first
    }

    /// Deletes all objects of a kind. Returns the remaining ones.
    async fn delete_all(
        &self,
        namespace: &str,
        content: &Content,
    ) -> Result<Vec<Item<Any>>, Error> {
        let view = self.cluster.view_of::<Any>(content.kind.clone());
        let view = view.in_namespace(namespace)?;
        let items = match content.lists {
            true => view.list().await?.items,
            false => Vec::new(),
        };
        let mut left = items.iter();
        if content.lists && left.all(|item| item.meta().deletion_timestamp.is_some()) {
            return Ok(items);
        }
        if content.deletes_collections {
            view.delete_all(&DeleteOptions::background()).await?;
        } else {
            for item in &items {
                view.delete(item.name(), &DeleteOptions::background())
                    .await?;
            }
        }
        Ok(match content.lists {
            true => view.list().await?.items,
            false => Vec::new(),
        })
    }

    /// Writes the conditions with the remaining objects into the namespace's
    /// status.
    async fn report(&self, item: &Item<Namespace>, remaining: &Remaining) -> Result<(), Error> {
        let raw = item.raw()?;
        let old = raw.pointer("/status/conditions").and_then(Value::as_array);
        let now = time::seconds(self.caches.clock.now());
        let Some(new) = conditions(old.map_or(&[], Vec::as_slice), remaining, &now) else {
            return Ok(());
        };
        let patch = Patch::merge(json!({
            // If the namespace has changed, it is reconciled again.
            "metadata": {"uid": item.uid(), "resourceVersion": item.version()},
            "status": {"conditions": new},
        }));
        let path = format!("/api/v1/namespaces/{}/status", item.name());
        match self.cluster.proxy().patch(&path, &[], &patch).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_finalizer_is_removed() {
        let namespace = |finalizers: &[&str]| json!({"metadata": {"name": "a"}, "spec": {"finalizers": finalizers}});
        assert_eq!(finalized(namespace(&["kubernetes"])), Some(namespace(&[])));
        assert_eq!(
            finalized(namespace(&["x/y", "kubernetes"])),
            Some(namespace(&["x/y"]))
        );
        assert_eq!(finalized(namespace(&["x/y"])), None);
        assert_eq!(finalized(json!({"spec": {}})), None);
    }

    #[test]
    fn checks_become_less_frequent() {
        for (age, wait) in [(0, 100), (2_000, 500), (20_000, 5_000), (900_000, 5_000)] {
            assert_eq!(
                next_check(Duration::from_millis(age)),
                Duration::from_millis(wait)
            );
        }
    }
}
