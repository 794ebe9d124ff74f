//! The code that parses and writes the kinds that several crates use whole.
//!
//! A crate compiles the generic code that it uses for a type, unless a crate that it depends
//! on has already done so. Without these functions, each crate that parses a Pod would contain
//! the code for the types of all its fields, more than a hundred.

use k8s_openapi::api::{batch::v1, core::v1 as core};
use serde_json::{Result, Value, from_slice, to_value, to_vec};

macro_rules! compile {
    ($($name:ident: $kind:ty,)*) => {$(
        #[allow(missing_docs)]
        pub fn $name(text: &[u8]) -> Result<Value> {
            to_value(from_slice::<$kind>(text)?)
        }
    )*};
}

compile! {
    cron_job: v1::CronJob,
    job: v1::Job,
    pod: core::Pod,
    secret: core::Secret,
    service: core::Service,
}

#[allow(missing_docs)]
pub fn container(text: &[u8]) -> Result<Vec<u8>> {
    to_vec(&from_slice::<core::Container>(text)?)
}
