//! StorageVersionMigrations. The objects of a resource are written again, so that all of them are
//! stored in the storage version.

mod controller;
mod definition;
mod facts;
mod objects;
mod requests;
mod resource;
mod step;

pub(crate) use controller::run;
