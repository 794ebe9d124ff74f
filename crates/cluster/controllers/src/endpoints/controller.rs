//! The loop: watches Services, pods and endpoints, and executes decisions.

use std::{sync::Arc, time::Duration};

use futures::future;
use k8s_openapi::api::{core::v1::Endpoints, discovery::v1::EndpointSlice};
use longshore_client::{
    Cache, Change, Cluster, Error, Item, LabelSelector,
    kinds::{Any, Pod},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    desired::{MANAGED_BY, MANAGER, SERVICE_NAME},
    mirror::{self, LEADER},
    pod::PodFacts,
    requests::Requests,
    service::Service,
    slices::{self, Plan},
    store::Store,
    subsets,
    trigger::{self, Triggers},
    written::Written,
};
use crate::{
    caches::Caches,
    events::Recorder,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "endpoints";
/// The number of workers.
const WORKERS: usize = 5;
/// The delay before a node that does not exist is looked up again.
const NODE_RETRY: Duration = Duration::from_secs(1);
/// The label with the zone of a node.
const ZONE: &str = "topology.kubernetes.io/zone";

struct Controller {
    caches: Arc<Caches>,
    services: Cache<Any>,
    endpoints: Cache<Any>,
    slices: Cache<Any>,
    requests: Requests,
    store: Mutex<Store>,
    triggers: Mutex<Triggers>,
    written_endpoints: Mutex<Written>,
    written_slices: Mutex<Written>,
    queue: Queue<Key>,
}

/// Runs both controllers until their cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let (Some((_, services)), Some((endpoints_kind, endpoints)), Some((slice_kind, slices))) = (
        caches.of("", "Service"),
        caches.of("", "Endpoints"),
        caches.of("discovery.k8s.io", "EndpointSlice"),
    ) else {
        return;
    };
    let controller = Controller {
        requests: Requests {
            endpoints: cluster.view_of::<Any>(endpoints_kind.clone()),
            slices: cluster.view_of::<Any>(slice_kind.clone()),
            endpoint_events: events.named(subsets::MANAGER),
            slice_events: events.named("endpoint-slice-controller"),
        },
        services: services.clone(),
        endpoints: endpoints.clone(),
        slices: slices.clone(),
        store: Mutex::default(),
        triggers: Mutex::default(),
        written_endpoints: Mutex::default(),
        written_slices: Mutex::default(),
        queue: Queue::new(&caches.clock),
        caches: caches.clone(),
    };
    let services = feed(NAME, services, |key, change| {
        controller.put_service(key, change)
    });
    let pods = feed(NAME, &caches.pods, |key, change| {
        controller.put_pod(&key, change)
    });
    let endpoints = feed(NAME, endpoints, |key, change| {
        controller.put_endpoints(key, change)
    });
    let slices = feed(NAME, slices, |_, change| controller.put_slice(change));
    // Services may have been deleted while the controller did not run.
    for item in controller.endpoints.items() {
        if !item.meta().annotations.contains_key(LEADER) {
            controller.queue.add(Key::of(&item));
        }
    }
    let feeds = future::join4(services, pods, endpoints, slices);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn put_service(&self, key: Key, change: &Change<Any>) {
        let service = match change {
            Change::Upsert(item) => Service::of(item).unwrap_or_else(|error| {
                tracing::warn!(?key, %error, "cannot read a Service");
                None
            }),
            Change::Gone(_) => None,
        };
        self.store.lock().put_service(&key, service);
        self.queue.add(key);
    }

    fn put_pod(&self, key: &Key, change: &Change<Pod>) {
        let mut store = self.store.lock();
        if store.is_unused(&key.namespace) {
            return;
        }
        let affected = match change {
            Change::Upsert(item) => {
                if store
                    .selecting(&key.namespace, &item.meta().labels)
                    .is_empty()
                {
                    store.remove_pod(key)
                } else {
                    match PodFacts::of(item) {
                        Ok(facts) => store.put_pod(key, item.version(), facts),
                        Err(error) => {
                            tracing::warn!(?key, %error, "cannot read a pod");
                            Vec::new()
                        }
                    }
                }
            }
            Change::Gone(_) => store.remove_pod(key),
        };
        drop(store);
        affected
            .into_iter()
            .for_each(|service| self.queue.add(service));
    }

    fn put_endpoints(&self, key: Key, change: &Change<Any>) {
        let mut written = self.written_endpoints.lock();
        let is_awaited = written.wait(&key, Instant::now()).is_some();
        written.saw(change.item().version());
        drop(written);
        // Other clients write the Endpoints of Services without a selector, which are
        // mirrored, and Endpoints without a Service, which remain as they are.
        let is_foreign = || {
            let labels = &change.item().meta().labels;
            let is_own = labels
                .get(subsets::MANAGED_BY)
                .is_some_and(|by| by == subsets::MANAGER);
            let has_service = || self.services.get(Some(&key.namespace), &key.name).is_some();
            self.store.lock().service(&key).is_none() && (is_own || has_service())
        };
        if is_awaited || matches!(change, Change::Gone(_)) || is_foreign() {
            self.queue.add(key);
        }
    }

    fn put_slice(&self, change: &Change<Any>) {
        let item = change.item();
        self.written_slices.lock().saw(item.version());
        let labels = &item.meta().labels;
        if let Some(service) = labels.get(SERVICE_NAME)
            && let Some(manager) = labels.get(MANAGED_BY)
            && (manager == MANAGER || manager == mirror::MANAGER)
        {
            let namespace = item.namespace().unwrap_or_default();
            self.queue.add(Key::new(namespace, service));
        }
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(service) = self.store.lock().service(&key) else {
            return self.reconcile_foreign(&key).await;
        };
        let now = Instant::now();
        let waits = [&self.written_slices, &self.written_endpoints];
        if let Some(wait) = waits.iter().find_map(|one| one.lock().wait(&key, now)) {
            return Ok(Next::Retry(wait));
        }
        let known = self.endpoints.get(Some(&key.namespace), &key.name);
        let existing = self.slices_of(&key, MANAGER)?;
        // The Service may have had no selector before, so mirrored slices are deleted.
        let mirrored = mirror::plan(None, &self.slices_of(&key, mirror::MANAGER)?);
        self.write_mirrored(&key, mirrored).await?;
        let pods = self.pods_of(&service)?;
        let trigger = self.triggers.lock().next(&service, &pods);
        let zone = |node: &str| {
            let node = self.caches.nodes.get(None, node)?;
            Some(node.meta().labels.get(ZONE).cloned().unwrap_or_default())
        };
        let plan = slices::plan(&service, &pods, zone, &existing);
        let desired = subsets::desired(&service, &pods);
        let (sliced, listed) = future::join(
            self.requests.change_slices(&service, plan, trigger),
            self.requests
                .change_endpoints(&service, known.as_ref(), &desired, trigger),
        )
        .await;
        let now = Instant::now();
        let (versions, sliced) = sliced;
        for version in &versions {
            self.written_slices.lock().wrote(&key, version, now);
        }
        if let Some(version) = listed? {
            self.written_endpoints.lock().wrote(&key, &version, now);
        }
        sliced?;
        let is_incomplete = pods
            .iter()
            .any(|pod| pod.is_published() && zone(&pod.node).is_none());
        if is_incomplete && !service.publish_not_ready {
            return Ok(Next::Retry(NODE_RETRY));
        }
        Ok(Next::Done)
    }

    /// Mirrors the Endpoints of a Service without a selector, and deletes the Endpoints of a
    /// deleted Service.
    async fn reconcile_foreign(&self, key: &Key) -> Result<Next, Error> {
        let known = self.endpoints.get(Some(&key.namespace), &key.name);
        let exists = self.services.get(Some(&key.namespace), &key.name).is_some();
        if !exists {
            self.triggers.lock().forget(key);
            self.written_endpoints.lock().forget(key);
            if let Some(known) = &known {
                self.requests.delete_endpoints(key, known).await?;
            }
        }
        if let Some(wait) = self.written_slices.lock().wait(key, Instant::now()) {
            return Ok(Next::Retry(wait));
        }
        let known = known.filter(|_| exists);
        let endpoints: Option<Endpoints> = known.map(|item| item.typed()).transpose()?;
        let existing = self.slices_of(key, mirror::MANAGER)?;
        let plan = mirror::plan(endpoints.as_ref(), &existing);
        self.write_mirrored(key, plan).await?;
        if !exists {
            self.written_slices.lock().forget(key);
        }
        Ok(Next::Done)
    }

    async fn write_mirrored(&self, key: &Key, plan: Plan) -> Result<(), Error> {
        if plan == Plan::default() {
            return Ok(());
        }
        let mut versions = Vec::new();
        let trigger = |slice: &EndpointSlice| {
            let annotations = slice.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(trigger::ANNOTATION).cloned())
        };
        let requests = &self.requests;
        let done = requests
            .write_slices(&key.namespace, plan, trigger, &mut versions)
            .await;
        let now = Instant::now();
        for version in &versions {
            self.written_slices.lock().wrote(key, version, now);
        }
        done
    }

    /// The slices of a Service that a controller manages.
    fn slices_of(&self, service: &Key, manager: &str) -> Result<Vec<EndpointSlice>, Error> {
        let items = self.slices.by_label(SERVICE_NAME, &service.name);
        let items = items.iter().filter(|item| {
            let meta = item.meta();
            item.namespace() == Some(&service.namespace)
                && meta
                    .labels
                    .get(MANAGED_BY)
                    .is_some_and(|found| found == manager)
                && meta.deletion_timestamp.is_none()
        });
        items.map(Item::typed).collect()
    }

    /// The pods that a Service selects.
    fn pods_of(&self, service: &Service) -> Result<Vec<Arc<PodFacts>>, Error> {
        let selector = LabelSelector::exactly(&service.selector)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let items = self.caches.pods.matching(&selector);
        let items = items
            .iter()
            .filter(|item| item.namespace() == Some(&service.key.namespace));
        items.map(|item| self.facts(item, &service.key)).collect()
    }

    fn facts(&self, item: &Item<Pod>, service: &Key) -> Result<Arc<PodFacts>, Error> {
        let key = Key::of(item);
        let mut store = self.store.lock();
        if let Some(known) = store.pod(&key, item.uid(), item.version()) {
            return Ok(known);
        }
        let facts = PodFacts::of(item)?;
        let affected = store.put_pod(&key, item.version(), facts.clone());
        let others = affected.into_iter().filter(|other| other != service);
        others.for_each(|other| self.queue.add(other));
        Ok(Arc::new(facts))
    }
}
