#![no_main]
//! See `specs.rs` beside the other properties; it is no module there, for the
//! server's tests replay those, and know nothing of the resolver.

#[path = "../src/specs.rs"]
mod specs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| specs::check(data));
