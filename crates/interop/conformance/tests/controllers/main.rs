//! Tests of the controllers and the scheduler, which run on any control plane: the embedded
//! one, that of Kubernetes, or parts of both (`cargo xtask controllers`). The tests play the
//! part of the kubelets.
#![allow(clippy::unwrap_used)]

mod accounts;
mod autoscaling;
mod cron;
mod daemons;
mod deployments;
mod disruption;
mod endpoints;
mod garbage;
mod jobs;
mod kubelet;
mod namespaces;
mod nodes;
mod objects;
mod plane;
mod quotas;
mod replicas;
mod roles;
mod scheduler;
mod stateful;
mod volumes;
