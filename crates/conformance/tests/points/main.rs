//! What the Python library `kube` promised, point by point, of our client: a
//! test is named `point_NN_what`, after the point's number in
//! docs/client-points.md. They run on the embedded server and on a real
//! kube-apiserver alike.
#![allow(clippy::unwrap_used)]

mod auth;
mod beyond;
mod blocking;
mod cluster;
mod common;
mod copies;
mod items;
mod kubelet;
mod launcher;
mod measured;
mod own;
mod proxy;
mod rights;
mod seed_gaps;
mod sessions;
mod status;
mod survival;
mod views;
mod watching;
