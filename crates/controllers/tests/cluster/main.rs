//! The controllers with an API server in the same process. The tests play the node: they
//! write the pod statuses that a kubelet would write.

#![allow(clippy::unwrap_used)]

mod deployments;
mod fixture;
mod garbage;
mod jobs;
mod namespaces;
mod replicas;
mod scheduling;
mod volumes;
