//! The ResourceQuota controller: it counts what the objects of a namespace use. The API
//! server charges new objects itself; the controller counts again when a quota changes or
//! objects end.

mod controller;
mod count;
mod watched;

pub(crate) use controller::run;
