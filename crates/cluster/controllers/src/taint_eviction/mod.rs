//! Deletes pods from nodes with taints of the effect NoExecute that they do not tolerate, or
//! tolerate only for a while.

mod controller;
mod decide;

pub(crate) use controller::run;
