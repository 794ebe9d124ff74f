#![no_main]
//! See `src/recordings.rs`. It is not a module of `longshore_fuzz`, because the API server's
//! tests include that library and do not depend on recordings.

#[path = "../src/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|data: &[u8]| recordings::check(data));
