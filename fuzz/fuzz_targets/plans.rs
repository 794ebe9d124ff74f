#![no_main]
//! See `src/plans.rs`. It is not a module of `longshore_fuzz`, because the API server's tests
//! include that library and do not depend on the launcher.

#[path = "../src/plans.rs"]
mod plans;

libfuzzer_sys::fuzz_target!(|data: &[u8]| plans::check(data));
