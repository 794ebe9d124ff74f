//! The addresses of the names of ExternalName Services.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use futures::{StreamExt as _, stream};
use tokio::{
    net::lookup_host,
    time::{sleep, timeout},
};

use crate::Shared;

/// The interval at which names are resolved again.
const INTERVAL: Duration = Duration::from_secs(30);
/// The maximum time to resolve a name.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The number of names that are resolved at the same time.
const CONCURRENT: usize = 8;

/// Keeps the addresses of external names up to date, forever.
pub(crate) async fn follow(shared: &Shared) {
    let mut known = BTreeSet::new();
    loop {
        let names = shared.table.lock().external_names();
        if names.is_empty() {
            known.clear();
            shared.external_changed.notified().await;
            continue;
        }
        resolve(shared, &names).await;
        known.clone_from(&names);
        // New names are resolved immediately, known ones after the interval.
        let changed = async {
            while shared.table.lock().external_names().is_subset(&known) {
                shared.external_changed.notified().await;
            }
        };
        tokio::select! {
            () = sleep(INTERVAL) => {}
            () = changed => {}
        }
    }
}

async fn resolve(shared: &Shared, names: &BTreeSet<String>) {
    let mut found = stream::iter(names.clone())
        .map(async |name| (addresses(&name).await, name))
        .buffer_unordered(CONCURRENT);
    while let Some((addresses, name)) = found.next().await {
        // A name that cannot be resolved for a moment keeps its addresses.
        let Some(addresses) = addresses else { continue };
        if shared.table.lock().set_external(&name, addresses) {
            shared.note_names();
        }
    }
}

async fn addresses(name: &str) -> Option<Vec<IpAddr>> {
    let found = timeout(TIMEOUT, lookup_host((name, 0))).await.ok()?;
    match found {
        Ok(found) => {
            let found: BTreeSet<IpAddr> = found.map(|address| address.ip()).collect();
            Some(found.into_iter().collect())
        }
        Err(error) => {
            tracing::debug!(name, %error, "cannot resolve an external name");
            None
        }
    }
}
