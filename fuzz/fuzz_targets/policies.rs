#![no_main]
//! See `longshore_fuzz::policies`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::policies::check(data));
