//! The task of the aggregation: it maintains the APIServices of custom groups, and starts a task
//! for each aggregated version, which checks its server.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use longshore_engine::{Engine, Error, Watch, WatchRequest, WatchStart};
use longshore_model::kind::builtin;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    Aggregation, KIND,
    availability::Availability,
    checks::{Parts, check_repeatedly},
    index::Remote,
    registration, requests,
};
use crate::stopping::stopped;

/// The delay after the end of a watch.
const WATCH_DELAY: Duration = Duration::from_millis(5);
/// The delay after an error of this server.
const ERROR_DELAY: Duration = Duration::from_secs(1);

/// Runs the aggregation until the server is closed or dropped.
pub(crate) async fn run(
    aggregation: Arc<Aggregation>,
    engine: Engine,
    closing: watch::Receiver<bool>,
) {
    let parts = Parts {
        aggregation,
        engine,
    };
    tokio::select! {
        () = stopped(closing) => {}
        () = keep(&parts) => {}
    }
}

async fn keep(parts: &Parts) {
    let mut servers = Servers::default();
    loop {
        // Watch before reading the objects, so that no later change is missed.
        let watches = Watches::start(&parts.engine, !servers.tasks.is_empty());
        let kept = keep_services(parts).await;
        servers.follow(parts);
        let is_complete = servers.tasks.is_empty() || watches.has_services;
        match kept {
            Ok(()) if is_complete => watches.changed().await,
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot write APIServices");
                sleep(ERROR_DELAY).await;
            }
        }
        servers.recheck.send_replace(());
    }
}

/// Creates and deletes the APIServices of custom groups, and sets the condition of APIServices that
/// this server serves.
async fn keep_services(parts: &Parts) -> Result<(), Error> {
    let Some(kind) = KIND.first() else {
        return Ok(());
    };
    let engine = &parts.engine;
    let kinds = engine.kinds();
    let custom = kinds
        .iter()
        .filter(|kind| builtin(&kind.gvk.group, &kind.gvk.kind).is_none());
    let wanted: BTreeSet<_> = custom
        .map(|kind| (kind.gvk.group.to_string(), kind.gvk.version.to_string()))
        .collect();
    let index = parts.aggregation.index(engine);
    for change in registration::changes(&index.services, &wanted) {
        requests::execute(engine, kind, change).await?;
    }
    let local = Availability::local();
    let unset = index
        .services
        .iter()
        .filter(|service| service.backend.is_none() && !service.is_available);
    for service in unset {
        requests::set_condition(engine, kind, &service.name, &local).await?;
    }
    Ok(())
}

/// Watches of the kinds that matter.
struct Watches {
    all: Vec<Watch>,
    /// True if Services and their endpoints are watched.
    has_services: bool,
}

impl Watches {
    fn start(engine: &Engine, has_services: bool) -> Self {
        const OWN: [(&str, &str); 2] = [
            ("apiregistration.k8s.io", "APIService"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ];
        const SERVICES: [(&str, &str); 2] =
            [("", "Service"), ("discovery.k8s.io", "EndpointSlice")];
        let services = SERVICES.iter().filter(|_| has_services);
        let kinds = OWN.iter().chain(services);
        let start = WatchStart::After(engine.revision());
        let watches = kinds.filter_map(|(group, kind)| {
            let kind = Arc::new(builtin(group, kind)?.clone());
            engine.watch(&WatchRequest::of(kind, start)).ok()
        });
        Self {
            all: watches.collect(),
            has_services,
        }
    }

    /// Waits for a change of any object.
    async fn changed(mut self) {
        let mut changes: FuturesUnordered<_> = self.all.iter_mut().map(Watch::next).collect();
        match changes.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                // Expired, for example after a return to a snapshot: the objects are read again.
                tracing::debug!(%error, "a watch of the aggregation ended");
                sleep(WATCH_DELAY).await;
            }
            None => sleep(ERROR_DELAY).await,
        }
    }
}

/// The tasks that check servers, by the name of their APIService.
struct Servers {
    tasks: HashMap<String, (Arc<Remote>, JoinSet<()>)>,
    /// Changes when servers are to be checked again.
    recheck: watch::Sender<()>,
}

impl Default for Servers {
    fn default() -> Self {
        Self {
            tasks: HashMap::new(),
            recheck: watch::Sender::new(()),
        }
    }
}

impl Servers {
    /// Starts tasks for new or changed APIServices, and ends the tasks of deleted APIServices.
    fn follow(&mut self, parts: &Parts) {
        let index = parts.aggregation.index(&parts.engine);
        parts.aggregation.forget_others(&index);
        self.tasks.retain(|_, (remote, _)| {
            let service = &remote.service;
            let now = index.find(&service.group, &service.version);
            now.is_some_and(|now| now.service.is_registered_as(service))
        });
        for remote in index.remotes() {
            if self.tasks.contains_key(&remote.service.name) {
                continue;
            }
            let mut task = JoinSet::new();
            task.spawn(check_repeatedly(
                parts.clone(),
                remote.clone(),
                self.recheck.subscribe(),
            ));
            let name = remote.service.name.clone();
            self.tasks.insert(name, (remote.clone(), task));
        }
    }
}
