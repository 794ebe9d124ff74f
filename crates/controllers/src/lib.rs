//! The controllers of a cluster: scheduler, Deployment, ReplicaSet,
//! ReplicationController, Job, CronJob, garbage collector, namespace.
//!
//! Plain API clients over `longshore-client`: they know nothing of the server
//! behind it. Each is a pure decision and a thin loop around it: changes of
//! the shared caches put keys into a work queue, workers look at the key, decide
//! and act. Whatever is half done when they stop is found and finished when
//! they start again.
//!
//! ```no_run
//! # async fn example(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
//! let controllers = longshore_controllers::Controllers::start(cluster).await?;
//! // …
//! controllers.stop().await;
//! # Ok(())
//! # }
//! ```

mod caches;
mod concurrent;
mod cron;
mod custom;
mod deployment;
mod events;
mod garbage;
mod guard;
mod job;
mod key;
mod namespace;
mod queue;
mod reconcile;
mod refusal;
mod replicas;
mod root_ca;
mod scheduler;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use longshore_client::{Cluster, Error};
use tokio::task::JoinSet;

use crate::{caches::Caches, events::Recorder, guard::supervised, job::BackoffLimits};

/// Starts a controller; called again after a panic.
type Run = Box<dyn Fn(Cluster, Arc<Caches>, Recorder) -> BoxFuture<'static, ()> + Send + Sync>;

/// What may be set otherwise than in Kubernetes, for tests above all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How long a Job waits before it replaces its first failed pod; each
    /// further failure doubles it. 10 seconds by default.
    pub first_pod_backoff: Duration,
    /// The longest of these waits. 10 minutes by default.
    pub longest_pod_backoff: Duration,
    /// The certificate, in PEM, that the API server's own is signed with: each
    /// namespace gets it in the ConfigMap `kube-root-ca.crt`. None by default.
    pub root_ca: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        let BackoffLimits { first, longest } = BackoffLimits::default();
        Self {
            first_pod_backoff: first,
            longest_pod_backoff: longest,
            root_ca: None,
        }
    }
}

/// The running controllers. Dropping them stops them as well, without waiting.
#[derive(Debug)]
pub struct Controllers {
    tasks: JoinSet<()>,
}

impl Controllers {
    /// Starts all controllers on a cluster. Returns when their caches are
    /// filled.
    ///
    /// # Errors
    /// Whatever keeps the first lists from being read.
    pub async fn start(cluster: Cluster) -> Result<Self, Error> {
        Self::start_with(cluster, Options::default()).await
    }

    /// As [`Controllers::start`], with options.
    ///
    /// # Errors
    /// As there.
    pub async fn start_with(cluster: Cluster, options: Options) -> Result<Self, Error> {
        let caches = Arc::new(Caches::open(&cluster).await?);
        let (events, writer) = events::channel(cluster.clone());
        let limits = BackoffLimits {
            first: options.first_pod_backoff,
            longest: options.longest_pod_backoff,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run());
        let parts = (cluster, caches, events);
        let mut start = |what, run: Run| {
            let parts = parts.clone();
            tasks.spawn(supervised(what, move || {
                let (cluster, caches, events) = parts.clone();
                run(cluster, caches, events)
            }));
        };
        start(
            "scheduler",
            Box::new(|cluster, caches, events| scheduler::run(cluster, caches, events).boxed()),
        );
        start(
            "cronjob",
            Box::new(|cluster, caches, events| {
                cron::run(cluster, caches, events, cron::Pace::default()).boxed()
            }),
        );
        start(
            "job",
            Box::new(move |cluster, caches, events| {
                job::run(cluster, caches, events, limits).boxed()
            }),
        );
        for flavor in [&replicas::REPLICA_SET, &replicas::REPLICATION_CONTROLLER] {
            start(
                flavor.what,
                Box::new(move |cluster, caches, events| {
                    replicas::run(flavor, cluster, caches, events).boxed()
                }),
            );
        }
        start(
            "deployment",
            Box::new(|cluster, caches, events| deployment::run(cluster, caches, events).boxed()),
        );
        start(
            "garbage",
            Box::new(|cluster, caches, _| garbage::run(cluster, caches).boxed()),
        );
        if let Some(certificate) = options.root_ca {
            start(
                "root-ca",
                Box::new(move |cluster, caches, _| {
                    root_ca::run(cluster, caches, certificate.clone()).boxed()
                }),
            );
        }
        start(
            "namespace",
            Box::new(|cluster, caches, _| namespace::run(cluster, caches).boxed()),
        );
        Ok(Self { tasks })
    }

    /// Stops all controllers. Requests under way may or may not reach the
    /// server; the next start takes up what they left.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
