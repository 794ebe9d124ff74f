#![no_main]
//! See `src/archives.rs`. It is not a module of `longshore_fuzz`, because the API server's tests
//! include that library and do not depend on the launcher.

#[path = "../src/archives.rs"]
mod archives;

libfuzzer_sys::fuzz_target!(|data: &[u8]| archives::check(data));
