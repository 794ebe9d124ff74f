//! The program as its users meet it: the real binary, each test with an
//! embedded cluster's folder of its own.

#![allow(clippy::unwrap_used)]

mod again;
mod bad_input;
mod cutter;
mod desk;
mod documents;
mod help;
mod history;
mod interrupt;
mod jobset;
mod lifecycle;
mod objects;
mod pods;
mod refusals;
mod resolve;
mod run;
#[path = "../../../launcher/tests/s3/mod.rs"]
mod s3;
mod schedules;
mod stores;
mod survival;
mod why;
mod zenml;
