#![no_main]
//! See `src/terminals.rs`. It is not a module of `longshore_fuzz`, because the API server's tests
//! include that library and do not depend on the launcher.

#[path = "../src/terminals.rs"]
mod terminals;

libfuzzer_sys::fuzz_target!(|data: &[u8]| terminals::check(data));
