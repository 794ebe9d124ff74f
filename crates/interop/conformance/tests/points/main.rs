//! The guarantees of the Rust client, which include the guarantees of the Python library `kube`.
//! The name of a test, `point_NN_what`, contains the number of the point in docs/client-points.md.
//! The tests run on the embedded server and on real kube-apiservers.
#![allow(clippy::unwrap_used)]

mod additions;
mod auth;
mod blocking;
mod cluster;
mod common;
mod copies;
mod items;
mod kubelet;
mod launcher;
mod own_server;
mod permissions;
mod proxy;
mod seed_gaps;
mod sessions;
mod status;
mod survival;
mod telemetry;
mod views;
mod watches;
