#![no_main]
//! See `longshore_fuzz::protobuf`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| longshore_fuzz::protobuf::check(data));
