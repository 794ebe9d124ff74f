#![no_main]
//! See `longshore_fuzz::crds`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::crds::check(data));
