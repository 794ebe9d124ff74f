//! Connections to other servers: webhooks, pods, and aggregated API servers.

pub(crate) mod connect;
pub(crate) mod service;
pub(crate) mod trust;
