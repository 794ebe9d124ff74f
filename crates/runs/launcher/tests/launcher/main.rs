//! Tests of the launcher, with simulated clusters and stores, and with real processes.
#![allow(clippy::unwrap_used)]

mod corpus;
mod fake;
mod follow;
mod follow_outages;
mod launch;
mod many_pods;
mod preflight;
mod room;
mod s3;
mod short_runs;
mod store;
mod submit;
mod supervise;
mod watched;
mod watched_pods;
