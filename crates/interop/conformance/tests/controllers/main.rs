//! Tests of the controllers and the scheduler, which run on any control plane: the embedded one,
//! Kubernetes' own, or parts of both (`cargo xtask controllers`). The tests act as the kubelets.
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
