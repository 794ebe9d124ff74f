//! The code that parses and writes the kinds that several crates use whole.
//!
//! A crate compiles the generic code that it uses for a type, unless a crate that it depends
//! on has already done so. Without these functions, each crate that parses a Pod would contain
//! the code for the types of all its fields, more than a hundred.

use k8s_openapi::api::{batch::v1, core::v1 as core};
use serde_json::{Result, Value, from_slice, to_value, to_vec};

macro_rules! compile {
    ($($name:ident: $kind:ty => $write:ident $written:ty,)*) => {$(
        #[allow(missing_docs)]
        pub fn $name(text: &[u8]) -> Result<$written> {
            $write(&from_slice::<$kind>(text)?)
        }
    )*};
}

compile! {
    cron_job: v1::CronJob => to_value Value,
    job: v1::Job => to_value Value,
    pod: core::Pod => to_value Value,
    secret: core::Secret => to_value Value,
    service: core::Service => to_value Value,
    container: core::Container => to_vec Vec<u8>,
}
