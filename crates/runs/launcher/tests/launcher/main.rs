//! Tests of the launcher: with a cluster and stores that are stand-ins, and with real processes.
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
