#![no_main]
//! See `src/expressions.rs`. It is not a module of `longshore_fuzz`, because the API server's
//! tests include that library and do not depend on the crate `cel`.

#[path = "../src/expressions.rs"]
mod expressions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| expressions::check(data));
