#![no_main]
//! See `longshore_fuzz::requests`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::requests::check(data));
