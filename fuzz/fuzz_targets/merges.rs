#![no_main]
//! See `longshore_fuzz::merges`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::merges::check(data));
