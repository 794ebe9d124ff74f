//! The controllers against an API server in the same process. The tests play
//! the node: they write what a kubelet would write into the pods' status.

#![allow(clippy::unwrap_used)]

mod deployments;
mod fixture;
mod garbage;
mod jobs;
mod namespaces;
mod replicas;
mod scheduling;
