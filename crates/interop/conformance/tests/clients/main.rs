//! Tests of the embedded cluster with third-party clients.
#![allow(clippy::unwrap_used)]

mod first_steps;
mod kube_rs;
mod python;
mod recording;
mod rollouts;
mod sessions;
mod streams;
mod transcript;
