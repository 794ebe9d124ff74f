//! The IPAddresses of Services, and the ServiceCIDR `kubernetes`, which is the range of their
//! addresses.
//!
//! In Kubernetes, the API server allocates addresses by creating IPAddresses. The embedded API
//! server allocates addresses without these objects, and this controller publishes them.

mod controller;
mod range;
mod store;

pub(crate) use controller::run;
