#![no_main]
//! See `plans.rs` beside the other properties; it is no module there, for the
//! server's tests replay those, and know nothing of the launcher.

#[path = "../src/plans.rs"]
mod plans;

libfuzzer_sys::fuzz_target!(|data: &[u8]| plans::check(data));
