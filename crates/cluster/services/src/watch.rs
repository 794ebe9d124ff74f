//! Follows Services and EndpointSlices, and forwards their ports.

use std::{collections::BTreeSet, time::Duration};

use longshore_client::{Change, Error, kinds};
use tokio::time::sleep;

use crate::{
    Shared,
    forward::Forwarder,
    objects::{Address, RawService, RawSlice, SERVICE_LABEL},
    report::{self, Reported},
    table::Key,
};

/// The delay after the API refused the watches.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// The interval at which listeners that could not be opened are tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Forwards the Services of the cluster until it is closed.
pub(crate) async fn run(shared: &Shared) {
    while let Err(error) = follow(shared).await {
        tracing::warn!(%error, "cannot watch Services; trying again");
        sleep(RESTART_DELAY).await;
    }
}

async fn follow(shared: &Shared) -> Result<(), Error> {
    let cluster = &shared.cluster;
    let services = cluster.services();
    let slices = cluster.endpointslices();
    let (services, slices) = futures::try_join!(services.cache(), slices.cache())?;
    let mut service_changes = services.subscribe();
    let mut slice_changes = slices.subscribe();
    let mut forwarder = Forwarder::new();
    let mut reported = Reported::default();
    loop {
        let mut changed = BTreeSet::new();
        while let Some(change) = service_changes.try_next() {
            changed.extend(note_service(shared, &change));
        }
        while let Some(change) = slice_changes.try_next() {
            changed.extend(note_slice(shared, &change));
        }
        shared
            .ready
            .send_if_modified(|ready| !std::mem::replace(ready, true));
        for key in changed {
            apply(shared, &mut forwarder, &mut reported, &key).await;
        }
        tokio::select! {
            change = service_changes.next() => match change {
                Some(change) => {
                    if let Some(key) = note_service(shared, &change) {
                        apply(shared, &mut forwarder, &mut reported, &key).await;
                    }
                }
                None => return Ok(()),
            },
            change = slice_changes.next() => match change {
                Some(change) => {
                    for key in note_slice(shared, &change) {
                        apply(shared, &mut forwarder, &mut reported, &key).await;
                    }
                }
                None => return Ok(()),
            },
            () = sleep(RETRY), if !reported.is_empty() => {
                for key in reported.services() {
                    apply(shared, &mut forwarder, &mut reported, &key).await;
                }
            }
        }
    }
}

/// Opens and closes the listeners of a Service, and reports those that cannot be opened.
async fn apply(shared: &Shared, forwarder: &mut Forwarder, reported: &mut Reported, key: &Key) {
    let (wanted, uid) = {
        let table = shared.table.lock();
        let uid = table.service(key).map(|service| service.uid.clone());
        (table.listeners(key, &shared.nodes), uid.unwrap_or_default())
    };
    let failed = forwarder.apply(key, wanted).await;
    let new = reported.replace(key, failed);
    if key.is_api_server() {
        return;
    }
    for failed in new {
        report::write(&shared.cluster, key, &uid, &failed, shared.clock.now()).await;
    }
}

/// Records a change of a Service. Returns its key.
fn note_service(shared: &Shared, change: &Change<kinds::Service>) -> Option<Key> {
    let item = change.item();
    let key = Key::new(item.namespace(), item.name());
    let service = match change {
        Change::Gone(_) => None,
        Change::Upsert(item) => match item.typed::<RawService>() {
            Ok(raw) => Some(raw.read(item.uid())),
            Err(error) => {
                tracing::warn!(?key, %error, "cannot read a Service");
                return None;
            }
        },
    };
    let mut table = shared.table.lock();
    let before = table.name(&key);
    match service {
        None => table.remove_service(&key),
        Some(service) => {
            if matches!(service.address, Address::External(_)) {
                shared.external_changed.notify_one();
            }
            table.put_service(key.clone(), service);
        }
    }
    let renamed = table.name(&key) != before;
    drop(table);
    if renamed {
        shared.note_names();
    }
    Some(key)
}

/// Records a change of an EndpointSlice. Returns the affected Services.
fn note_slice(shared: &Shared, change: &Change<kinds::EndpointSlice>) -> BTreeSet<Key> {
    let item = change.item();
    let key = Key::new(item.namespace(), item.name());
    let slice = match change {
        Change::Gone(_) => None,
        Change::Upsert(item) => match item.typed::<RawSlice>() {
            Ok(raw) => Some(raw.read()),
            Err(error) => {
                tracing::warn!(?key, %error, "cannot read an EndpointSlice");
                return BTreeSet::new();
            }
        },
    };
    let labels = &item.meta().labels;
    let mut table = shared.table.lock();
    let names = |table: &crate::table::Table, keys: &BTreeSet<Key>| -> Vec<_> {
        keys.iter().map(|key| table.name(key)).collect()
    };
    let service = labels.get(SERVICE_LABEL).map(String::as_str);
    let concerned = table.owners_of(&key, service);
    let before = names(&table, &concerned);
    match slice {
        None => table.remove_slice(&key),
        Some(slice) => table.put_slice(&key, service, slice),
    }
    let renamed = names(&table, &concerned) != before;
    drop(table);
    if renamed {
        shared.note_names();
    }
    concerned
}
