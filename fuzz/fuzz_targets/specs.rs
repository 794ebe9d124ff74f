#![no_main]
//! See `src/specs.rs`. It is not a module of `longshore_fuzz`, because the API server's tests
//! include that library and do not depend on the resolver.

#[path = "../src/specs.rs"]
mod specs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| specs::check(data));
