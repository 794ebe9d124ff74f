//! The Endpoints and EndpointSlice controllers, which publish the addresses of the pods that a
//! Service selects, and mirror Endpoints that other clients write.
//!
//! Everything is pure except for the loop in [`controller`] and its [`requests`].

mod controller;
mod desired;
mod mirror;
mod pod;
mod requests;
mod service;
mod slices;
mod store;
mod subsets;
#[cfg(test)]
mod testing;
mod trigger;
mod written;

pub(crate) use controller::run;
