#![no_main]
//! See `longshore_fuzz::certificates`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::certificates::check(data));
