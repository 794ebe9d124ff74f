#![no_main]
//! See `longshore_fuzz::selectors`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::selectors::check(data));
