#![no_main]
//! See `longshore_fuzz::streams`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::streams::check(data));
