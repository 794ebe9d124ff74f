#![no_main]
//! See `src/answers.rs`. It is not a module of `longshore_fuzz`, because the API server's tests
//! include that library and do not depend on the client.

#[path = "../src/answers.rs"]
mod answers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| answers::check(data));
