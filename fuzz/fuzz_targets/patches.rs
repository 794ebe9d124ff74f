#![no_main]
//! See `longshore_fuzz::patches`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::patches::check(data));
