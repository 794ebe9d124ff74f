//! The controllers of a cluster: scheduler, Deployment, ReplicaSet,
//! ReplicationController, StatefulSet, DaemonSet, Job, CronJob, endpoints, disruption
//! budgets, HorizontalPodAutoscalers, quotas, nodes, taints, garbage collectors of objects
//! and pods, namespace, volumes, certificate requests, aggregated ClusterRoles.
//!
//! The controllers are API clients that use only `longshore-client` and do not
//! depend on the server's implementation. Each consists of pure decision functions
//! and a small loop: changes of the shared caches add keys to a work queue; workers
//! take a key, decide and act. If a controller stops in the middle of its work, it
//! detects and completes the work after a restart.
//!
//! ```no_run
//! # async fn example(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
//! let controllers = longshore_controllers::Controllers::start(cluster).await?;
//! // …
//! controllers.stop().await;
//! # Ok(())
//! # }
//! ```

mod account_tokens;
mod aggregated;
mod autoscale;
mod caches;
mod certificates;
mod cluster_roles;
mod concurrent;
mod cron;
mod custom;
mod daemon;
mod deployment;
mod disruption;
mod endpoints;
mod events;
mod garbage;
mod guard;
mod history;
mod job;
mod key;
mod namespace;
mod node_lifecycle;
mod node_ttl;
mod owned;
mod percent;
mod pod_facts;
mod pod_fields;
mod pod_gc;
mod progress;
mod queue;
mod quota;
mod reconcile;
mod refusal;
mod replicas;
mod root_ca;
mod scheduler;
mod selector_text;
mod service_accounts;
mod service_addresses;
mod stateful;
mod taint_eviction;
mod volumes;
mod workload;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use longshore_client::{Cluster, Error};
use longshore_clock::Clock;
use tokio::task::JoinSet;

pub use crate::{
    account_tokens::{AccountTokenSigner, TokenSigner, TokenSubject},
    certificates::{CertificateFacts, CertificateSigner, Signer},
    node_lifecycle::taint_nodes,
    volumes::LocalVolumes,
};

use crate::{caches::Caches, events::Recorder, guard::supervised, job::BackoffLimits};

/// Starts a controller. Called again after a panic.
type Run = Box<dyn Fn(Cluster, Arc<Caches>, Recorder) -> BoxFuture<'static, ()> + Send + Sync>;

/// Settings that differ from Kubernetes, mainly for tests.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The delay before a Job replaces its first failed pod. Each further failure
    /// doubles it. The default is 10 seconds.
    pub first_pod_backoff: Duration,
    /// The maximum delay before a Job replaces a failed pod. The default is 10 minutes.
    pub longest_pod_backoff: Duration,
    /// The CA certificate of the API server, in PEM. Each namespace gets it in the
    /// ConfigMap `kube-root-ca.crt`. The default is none.
    pub root_ca: Option<String>,
    /// The interval at which orphaned pods are searched. The default is 20 seconds.
    pub pod_check_interval: Duration,
    /// The time after which pods of a missing node are deleted. The default is 40 seconds.
    pub missing_node_delay: Duration,
    /// The interval at which the reports of nodes are checked. The default is 5 seconds.
    pub node_check_interval: Duration,
    /// The time without a report after which a node's state is unknown. The default is 50 seconds,
    /// or 60 seconds for a node that has not reported yet.
    pub silent_node_delay: Option<Duration>,
    /// The interval at which the metrics of a HorizontalPodAutoscaler are read. The default is 15
    /// seconds.
    pub autoscaler_interval: Duration,
    /// The location of volumes for claims of the StorageClass `standard`. By default, no volumes
    /// are provisioned.
    pub local_volumes: Option<LocalVolumes>,
    /// Signs the tokens of Secrets for service accounts. By default, the Secrets get no tokens.
    pub token_signer: Option<TokenSigner>,
    /// True to publish the addresses of Services as IPAddresses, which Kubernetes' API server does
    /// itself. The default is true.
    pub service_addresses: bool,
    /// Signs CertificateSigningRequests. By default, they are only stored.
    pub signer: Option<Signer>,
    /// The clock of the controllers. The default is the system's clock.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        let BackoffLimits { first, longest } = BackoffLimits::default();
        Self {
            first_pod_backoff: first,
            longest_pod_backoff: longest,
            root_ca: None,
            pod_check_interval: pod_gc::Pace::default().interval,
            missing_node_delay: pod_gc::Pace::default().missing_node,
            node_check_interval: node_lifecycle::Pace::default().interval,
            silent_node_delay: None,
            autoscaler_interval: autoscale::Pace::default().interval,
            local_volumes: None,
            token_signer: None,
            service_addresses: true,
            signer: None,
            clock: Clock::system(),
        }
    }
}

/// The running controllers. Dropping the value also stops them, without waiting.
#[derive(Debug)]
pub struct Controllers {
    tasks: JoinSet<()>,
}

impl Controllers {
    /// Starts all controllers of a cluster. Returns after their caches are filled.
    ///
    /// # Errors
    /// An initial list failed.
    pub async fn start(cluster: Cluster) -> Result<Self, Error> {
        Self::start_with(cluster, Options::default()).await
    }

    /// Like [`Controllers::start`], with options.
    ///
    /// # Errors
    /// See [`Controllers::start`].
    pub fn start_with(
        cluster: Cluster,
        options: Options,
    ) -> BoxFuture<'static, Result<Self, Error>> {
        // Boxed, so that the future is compiled in this crate instead of in each crate that awaits
        // it.
        Box::pin(Self::begin(cluster, options))
    }

    async fn begin(cluster: Cluster, options: Options) -> Result<Self, Error> {
        let mut tasks = JoinSet::new();
        if let Some(local) = &options.local_volumes
            && let Err(error) = local.install(&cluster).await
        {
            tracing::warn!(%error, "cannot create the default storage class; trying again");
            tasks.spawn(local.clone().install_later(cluster.clone()));
        }
        let caches = Arc::new(Caches::open(&cluster, options.clock.clone()).await?);
        caches.follow_progress();
        let (events, writer) = events::channel(cluster.clone(), options.clock.clone());
        let limits = BackoffLimits {
            first: options.first_pod_backoff,
            longest: options.longest_pod_backoff,
        };
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
                let clock = caches.clock.clone();
                cron::run(cluster, caches, events, cron::Pace::of(clock)).boxed()
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
            "statefulset",
            Box::new(|cluster, caches, events| stateful::run(cluster, caches, events).boxed()),
        );
        start(
            "daemonset",
            Box::new(|cluster, caches, events| daemon::run(cluster, caches, events).boxed()),
        );
        start(
            "disruption",
            Box::new(|cluster, caches, events| disruption::run(cluster, caches, events).boxed()),
        );
        start(
            "endpoints",
            Box::new(|cluster, caches, events| endpoints::run(cluster, caches, events).boxed()),
        );
        start(
            "horizontalpodautoscaler",
            Box::new(move |cluster, caches, events| {
                let pace = autoscale::Pace {
                    interval: options.autoscaler_interval,
                };
                autoscale::run(cluster, caches, events, pace).boxed()
            }),
        );
        if options.service_addresses {
            start(
                "service addresses",
                Box::new(|cluster, caches, _| service_addresses::run(cluster, caches).boxed()),
            );
        }
        start(
            "serviceaccount",
            Box::new(|cluster, caches, _| service_accounts::run(cluster, caches).boxed()),
        );
        if let Some(signer) = options.token_signer {
            let certificate = options.root_ca.clone();
            start(
                "serviceaccount-token",
                Box::new(move |cluster, caches, _| {
                    let (signer, certificate) = (signer.clone(), certificate.clone());
                    account_tokens::run(cluster, caches, signer, certificate).boxed()
                }),
            );
        }
        start(
            "garbage",
            Box::new(|cluster, caches, events| {
                let recorder = events.named("garbage-collector-controller");
                garbage::run(cluster, caches, recorder).boxed()
            }),
        );
        let pace = pod_gc::Pace {
            interval: options.pod_check_interval,
            missing_node: options.missing_node_delay,
        };
        start(
            "pod-gc",
            Box::new(move |cluster, caches, _| pod_gc::run(cluster, caches, pace).boxed()),
        );
        let usual = node_lifecycle::Pace::default();
        let pace = node_lifecycle::Pace {
            interval: options.node_check_interval,
            running: options.silent_node_delay.unwrap_or(usual.running),
            starting: options.silent_node_delay.unwrap_or(usual.starting),
        };
        start(
            "node-lifecycle",
            Box::new(move |cluster, caches, events| {
                node_lifecycle::run(cluster, caches, events, pace).boxed()
            }),
        );
        start(
            "ttl",
            Box::new(|cluster, caches, _| node_ttl::run(cluster, caches).boxed()),
        );
        start(
            "taint-eviction",
            Box::new(|cluster, caches, events| {
                taint_eviction::run(cluster, caches, events).boxed()
            }),
        );
        start(
            "resourcequota",
            Box::new(|cluster, caches, _| quota::run(cluster, caches).boxed()),
        );
        if let Some(certificate) = options.root_ca {
            start(
                "root-ca",
                Box::new(move |cluster, caches, _| {
                    root_ca::run(cluster, caches, certificate.clone()).boxed()
                }),
            );
        }
        if let Some(signer) = options.signer {
            start(
                "certificates",
                Box::new(move |cluster, caches, _| {
                    certificates::run(cluster, caches, signer.clone()).boxed()
                }),
            );
        }
        start(
            "podcertificaterequest-cleaner",
            Box::new(|cluster, caches, _| certificates::run_cleaner(cluster, caches).boxed()),
        );
        start(
            "clusterrole-aggregation",
            Box::new(|cluster, caches, _| cluster_roles::run(cluster, caches).boxed()),
        );
        start(
            "persistent volumes",
            Box::new(|cluster, caches, events| {
                volumes::run_binder(cluster, caches, events).boxed()
            }),
        );
        start(
            "volume protection",
            Box::new(|cluster, caches, _| volumes::run_protection(cluster, caches).boxed()),
        );
        start(
            "ephemeral volumes",
            Box::new(|cluster, caches, events| {
                volumes::run_ephemeral(cluster, caches, events).boxed()
            }),
        );
        if let Some(local) = options.local_volumes {
            start(
                "local volumes",
                Box::new(move |cluster, caches, events| {
                    volumes::run_provisioner(cluster, caches, events, local.clone()).boxed()
                }),
            );
        }
        start(
            "namespace",
            Box::new(|cluster, caches, _| namespace::run(cluster, caches).boxed()),
        );
        Ok(Self { tasks })
    }

    /// Stops all controllers. Requests in flight may or may not reach the server.
    /// The next start completes unfinished work.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
