//! Tests of Kubernetes' behavior after hours, with a clock that the tests advance.
#![allow(clippy::unwrap_used)]

mod autoscaler;
mod common;
mod http;
mod jobs;
mod nodes;
mod pods;
mod server;
mod settle;
mod workloads;
