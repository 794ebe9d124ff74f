//! The real binary from the user's point of view. Each test has its own data folder for an
//! embedded cluster.

#![allow(clippy::unwrap_used)]

mod all_containers;
mod attach;
mod bad_input;
mod bundles;
mod claims;
mod command;
mod completion;
mod contexts;
mod data;
mod detached_runs;
mod dev;
mod dev_attach;
mod dev_own_output;
mod down;
mod envtest;
mod error_messages;
mod excluded_files;
mod expectations;
mod file_permissions;
mod forward;
mod help;
mod hints;
mod history;
mod host_network;
mod hostile_environment;
mod interrupt;
mod jobset;
mod kept_logs;
mod killed_clients;
mod lifecycle;
mod lost_data;
mod machine;
mod names;
mod objects;
mod other_containers;
mod output_errors;
mod outputs;
mod owners;
mod page;
mod pods;
mod pseudoterminal;
mod recording;
mod resolve;
mod restarts;
mod roles;
mod run;
mod rust_launcher;
#[path = "../../../launcher/tests/launcher/s3/mod.rs"]
mod s3;
mod schedules;
mod shell;
mod signals;
mod ssh;
mod stored_outputs;
mod stores;
mod sweeps;
mod team;
mod terminal;
mod ui;
mod usage;
mod webhook;
mod why;
mod zenml;
