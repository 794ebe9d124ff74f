//! The ResourceQuota controller, which counts the usage of the objects of a namespace. The API
//! server charges new objects itself; the controller counts again when a quota changes or objects
//! end.

mod controller;
mod count;
mod watched;

pub(crate) use controller::run;
