//! The namespace controller: `conditions` is pure and says what is left, `controller`
//! watches, deletes and writes.

mod conditions;
mod controller;

pub(crate) use controller::run;
