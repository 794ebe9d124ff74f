//! Pods on a real API server, bound by the tests, run as real processes.
#![allow(clippy::unwrap_used)]

mod addresses;
mod certificates;
mod cgroups;
mod claims;
mod collect;
mod contexts;
mod dns;
mod ephemeral;
mod fields;
mod fill;
mod gpus;
mod grace;
mod helpers;
mod hooks;
mod host_ports;
mod hostile;
mod lifecycle;
mod memory;
mod messages;
mod names;
mod ports;
mod probes;
mod resize;
mod stage;
mod teardown;
mod tokens;
mod trust;
mod unresponsive;

use std::{path::Path, sync::Arc, time::Duration};

use futures::StreamExt;
use longshore_apiserver::{ApiServer, NoLogs, NoStreams, TokenKey};
use longshore_client::{Cluster, DeleteOptions, WatchEvent};
use longshore_engine::Engine;
use longshore_node::{ApiAccess, CollectFiles, FillVolumes, LogLimits, NodeAgent, Options};
use longshore_node_api::{
    ContainerRef, LogError, LogRequest, NodeLogs as _, NodeStreams as _, StreamsWanted,
};
use serde_json::{Value, json};

use stage::*;
