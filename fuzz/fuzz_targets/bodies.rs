#![no_main]
//! See `longshore_fuzz::bodies`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::bodies::check(data));
