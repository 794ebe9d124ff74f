#![no_main]
//! See `longshore_fuzz::yaml`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::yaml::check(data));
