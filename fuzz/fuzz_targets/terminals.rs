#![no_main]
//! See `terminals.rs` beside the other properties; it is no module there, for the
//! server's tests replay those, and know nothing of the launcher.

#[path = "../src/terminals.rs"]
mod terminals;

libfuzzer_sys::fuzz_target!(|data: &[u8]| terminals::check(data));
