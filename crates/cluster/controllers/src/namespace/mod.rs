//! The namespace controller. `conditions` is pure and describes the remaining
//! objects, `controller` watches, deletes and writes.

mod conditions;
mod controller;

pub(crate) use controller::run;
