//! The IPAddresses of Services, and the ServiceCIDR `kubernetes`, which is the range of
//! their addresses.
//!
//! In Kubernetes, the API server allocates addresses by creating IPAddresses. Here it
//! allocates them itself, and this controller publishes them.

mod controller;
mod range;
mod store;

pub(crate) use controller::run;
