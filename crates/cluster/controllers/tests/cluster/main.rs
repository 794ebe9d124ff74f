//! The controllers with an API server in the same process. The tests play the node: they
//! write the pod statuses that a kubelet would write.

#![allow(clippy::unwrap_used)]

mod aggregated;
mod autoscale;
mod cluster_roles;
mod daemons;
mod deployments;
mod disruption;
mod endpoints;
mod fixture;
mod garbage;
mod jobs;
mod namespaces;
mod nodes;
mod orphans;
mod quotas;
mod replicas;
mod scheduling;
mod service_addresses;
mod stateful;
mod volumes;
