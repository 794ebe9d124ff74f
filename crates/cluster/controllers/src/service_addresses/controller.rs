//! The loop: watches Services and publishes their addresses.

use std::{net::IpAddr, sync::Arc};

use futures::future;
use longshore_client::{Cache, Change, Cluster, DeleteOptions, Error, View, kinds::Any};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::{range, store::Store};
use crate::{
    caches::Caches,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "service addresses";
/// The number of workers.
const WORKERS: usize = 2;
/// The label of addresses that belong to Services, and its value.
const MANAGED_BY: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";

/// An object to reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    Address(IpAddr),
    /// The ServiceCIDR `kubernetes`.
    Range,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Service {
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(rename = "clusterIPs")]
    cluster_ips: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Address {
    spec: AddressSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AddressSpec {
    parent_ref: Parent,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Parent {
    resource: String,
    namespace: String,
    name: String,
}

struct Controller {
    cluster: Cluster,
    view: View<Any>,
    addresses: Cache<Any>,
    ranges: Cache<Any>,
    store: Mutex<Store>,
    queue: Queue<Work>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let group = "networking.k8s.io";
    let (Some((_, services)), Some((kind, addresses)), Some((_, ranges))) = (
        caches.of("", "Service"),
        caches.of(group, "IPAddress"),
        caches.of(group, "ServiceCIDR"),
    ) else {
        return;
    };
    let controller = Controller {
        view: cluster.view_of::<Any>(kind.clone()),
        cluster,
        addresses: addresses.clone(),
        ranges: ranges.clone(),
        store: Mutex::default(),
        queue: Queue::new(&caches.clock),
    };
    controller.queue.add(Work::Range);
    let services = feed(NAME, services, |key, change| {
        controller.put_service(&key, change);
    });
    let addresses = feed(NAME, addresses, |key, _| {
        if let Ok(address) = key.name.parse() {
            controller.queue.add(Work::Address(address));
        }
    });
    let ranges = feed(NAME, ranges, |key, change| {
        if key.name == range::NAME && matches!(change, Change::Gone(_)) {
            controller.queue.add(Work::Range);
        }
    });
    let feeds = future::join3(services, addresses, ranges);
    let reconcile = async |work: Work| controller.reconcile(work).await;
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn put_service(&self, key: &Key, change: &Change<Any>) {
        let changed = match change {
            Change::Upsert(item) => match item.typed::<Service>() {
                Ok(service) => {
                    let addresses = service.spec.cluster_ips.iter();
                    let addresses = addresses.filter_map(|text| text.parse().ok());
                    self.store.lock().put(key, addresses.collect())
                }
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a Service");
                    return;
                }
            },
            Change::Gone(_) => self.store.lock().remove(key),
        };
        changed
            .into_iter()
            .for_each(|address| self.queue.add(Work::Address(address)));
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        match work {
            Work::Address(address) => self.publish(address).await?,
            Work::Range => {
                let known = self.ranges.get(None, range::NAME);
                range::publish(&self.cluster, known.as_ref(), self.queue.clock().now()).await?;
            }
        }
        Ok(Next::Done)
    }

    /// Creates the object of an address, or deletes it if no Service has the address.
    async fn publish(&self, address: IpAddr) -> Result<(), Error> {
        let owner = self.store.lock().owner(&address).cloned();
        let name = address.to_string();
        let Some(item) = self.addresses.get(None, &name) else {
            return match owner {
                Some(owner) => self.create(address, &owner).await,
                None => Ok(()),
            };
        };
        let label = item.meta().labels.get(MANAGED_BY.0);
        if label.is_none_or(|label| label != MANAGED_BY.1) {
            return Ok(());
        }
        let parent = item.typed::<Address>()?.spec.parent_ref;
        let is_right = owner.is_some_and(|owner| {
            parent.resource == "services"
                && parent.namespace == owner.namespace
                && parent.name == owner.name
        });
        if is_right {
            return Ok(());
        }
        // The parent of an address cannot be changed, so the object is created again.
        let options = DeleteOptions {
            uid: Some(item.uid().to_owned()),
            ..DeleteOptions::default()
        };
        match self.view.delete(&name, &options).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    async fn create(&self, address: IpAddr, owner: &Key) -> Result<(), Error> {
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let object = json!({
            "metadata": {
                "name": address.to_string(),
                "labels": {FAMILY: family, MANAGED_BY.0: MANAGED_BY.1},
            },
            "spec": {"parentRef": {
                "group": "", "resource": "services",
                "namespace": owner.namespace, "name": owner.name,
            }},
        });
        match self.view.create(&object).await {
            // The watch reports the object later.
            Err(error) if error.code() == Some(409) => Ok(()),
            done => done.map(drop),
        }
    }
}
