//! StorageVersionMigrations: the objects of a resource are written again, so that
//! all are stored in its storage version.

mod controller;
mod definition;
mod facts;
mod objects;
mod requests;
mod resource;
mod step;

pub(crate) use controller::run;
