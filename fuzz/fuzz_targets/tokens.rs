#![no_main]
//! See `longshore_fuzz::tokens`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::tokens::check(data));
