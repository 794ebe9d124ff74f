#![no_main]
//! See `src/sweeps.rs`. It is not a module of `longshore_fuzz`, because the API server's tests
//! include that library and do not depend on the launcher.

#[path = "../src/sweeps.rs"]
mod sweeps;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sweeps::check(data));
